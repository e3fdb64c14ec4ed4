"""What the chapter brings."""

from chapters.paths import columns, studies
from chapters.paths.one_shot.tasks import TASKS
from chapters.paths.one_shot.transformer import TransformerSettings
from study.parts import (
    register_columns,
    register_command,
    register_kind,
    register_model,
    register_section,
    register_settings,
    register_study,
    register_synonyms,
    register_task,
)
from study.reported import SectionOf

register_settings(TransformerSettings)
for name, task in TASKS.items():
    register_task(name, task)
register_model("attention-paths", TASKS, "chapters.paths.one_shot.model:attention_paths")
register_kind("posterior", "chapters.paths.posterior.posterior_kind:POSTERIOR")
register_kind("heads", "chapters.paths.heads.heads_kind:HEADS")
register_study(studies.ATTENTION_PATHS)
register_study(studies.ONE_SHOT)
for heading, group in columns.GROUPS.items():
    register_columns(heading, *group)
register_section(
    SectionOf(
        "chapters.paths.section.theory_section", "attention-paths[a-z-]*", kinds=("posterior",)
    )
)
register_section(
    SectionOf(
        "chapters.paths.section.heads_section",
        "heads[a-z-]*",
        kinds=("heads",),
        tasks=tuple(TASKS),
    )
)
register_command("prune", "chapters.paths.prune", "scores the heads of a network in a file")
register_synonyms(
    {
        "layers": "depth",
        "temperature": "tau",
        "one-shot": "heads pruning transformer",
        "attention-paths": "theory",
    }
)
