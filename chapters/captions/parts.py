"""What the chapter brings."""

from chapters.captions.settings import DecoderSettings
from chapters.captions.studies import MSCOCO as STUDY
from chapters.captions.task import MSCOCO
from study.cell.column_groups import NUMBER, TEXT
from study.parts import (
    register_columns,
    register_model,
    register_settings,
    register_study,
    register_synonyms,
    register_task,
)

register_settings(DecoderSettings)
register_columns(
    "Of captions",
    "set up",
    {
        "optimiser": (TEXT, "of the first phase"),
        "encoder_lr": (NUMBER, "the encoder's learning rate in the first phase; missing: frozen"),
        "teacher_forcing": (NUMBER, "the least of all phases"),
    },
)
_BLEU = (NUMBER, "[Bleu-1 to Bleu-4](captions.md#what-is-measured)")
register_columns(
    "Of written captions",
    "evaluated",
    {
        **dict.fromkeys([f"bleu_{n}" for n in (1, 2, 3, 4)], _BLEU),
        "cider": (NUMBER, "CIDEr, on its own scale"),
        "caption_length": (NUMBER, "mean number of words"),
    },
)
register_task("mscoco", MSCOCO)
register_model("show-attend-tell", ("mscoco",), "chapters.captions.model:show_attend_tell")
register_study(STUDY)
register_synonyms({"mscoco": "captions"})
