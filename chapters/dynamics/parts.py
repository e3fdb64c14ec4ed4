"""What the chapter brings."""

from chapters.dynamics import studies
from chapters.dynamics.task import LINEAR_ORTHOGONAL, TASK
from study.cell.column_groups import NUMBER
from study.parts import (
    register_columns,
    register_model,
    register_section,
    register_study,
    register_synonyms,
    register_task,
)
from study.reported import SectionOf

register_task(TASK, LINEAR_ORTHOGONAL)
register_model("linear", (TASK,), "chapters.dynamics.model:linear")
register_study(studies.FIXED_FOCUS)
register_study(studies.LINEAR_ORTHOGONAL)
register_columns(
    "Of linear models",
    "measured",
    dict.fromkeys(
        ("mu", "nu", "flow_time"),
        (NUMBER, "place and time in the [theory](dynamics.md#the-setting-solved)"),
    ),
)
register_section(
    SectionOf("chapters.dynamics.section.fixed_focus", "fixed-focus[a-z-]*", held=True)
)
register_section(
    SectionOf(
        "chapters.dynamics.section.trajectories",
        "(trajectories|curvature)[a-z-]*(-[0-9]+)?|illustration",
        tasks=(TASK,),
        held=False,
    )
)
register_synonyms({"num_classes": "classes"})
