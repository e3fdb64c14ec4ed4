"""What the chapter brings."""

from chapters.series.studies import SERIES as STUDY
from chapters.series.task import SERIES
from study.parts import register_model, register_study, register_task

register_task("series", SERIES)
register_model("conv1d", ("series",), "chapters.series.model:conv1d", adjustable=True)
register_study(STUDY)
