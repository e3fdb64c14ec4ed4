"""What the chapter brings."""

from study.parts import register_function

register_function("chapters.recorded.recorder:record")
