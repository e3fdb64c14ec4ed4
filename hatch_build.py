"""Gives the wheel the versions that pyproject.toml pins, as a file that `pip install -c` takes."""

import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Constraints(BuildHookInterface):
    """Writes constraints.txt beside the wheel and into it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        project = tomllib.loads((Path(self.root) / "pyproject.toml").read_text("utf-8"))
        file = Path(self.directory) / "constraints.txt"
        file.parent.mkdir(exist_ok=True)
        pins = project["tool"]["uv"]["constraint-dependencies"]
        file.write_text("".join(f"{pin}\n" for pin in pins), "utf-8")
        build_data["force_include"][str(file)] = "study/constraints.txt"
