"""`[files]` of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from aioflow.dataclass import dataclass
from aioflow.section import Section

Formulas: TypeAlias = Literal["neutral", "keep"]


@dataclass(frozen=True)
class FileSettings:
    """Which files plans may read and write, and how CSV is written."""

    allow: tuple[Path, ...] = ()  # folders and files besides those in the folder of the plan
    formulas: Formulas = "neutral"  # what becomes of texts in CSV that a spreadsheet would compute


FILES = Section("files", FileSettings)
