"""What the chapter brings."""

from chapters.texts.studies import HATEXPLAIN, TEXTS
from chapters.texts.tasks import TASKS
from study.cell.column_groups import NUMBER
from study.parts import (
    register_columns,
    register_model,
    register_study,
    register_synonyms,
    register_task,
)

register_columns(
    "Of texts",
    "measured",
    dict.fromkeys(
        ("token_f1", "iou_f1", "auprc"),
        (NUMBER, "[plausibility](hatexplain.md#what-is-measured); `iou_f1` may exceed 1"),
    ),
)
for name, task in TASKS.items():
    register_task(name, task)
# The first and the second model of HateXplain.
register_model("embedding", TASKS, "chapters.texts.model:embedding")
register_model("self-attention", TASKS, "chapters.texts.model:self_attention")
register_study(HATEXPLAIN)
register_study(TEXTS)
register_synonyms({"majority": "most"})
