"""The settings `[jobs]`: the folder of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aioflow.config.sections import Section


@dataclass(frozen=True)
class JobsSettings:
    """`[jobs]`: where jobs are."""

    folder: Path = Path("aioflow-jobs")


JOBS = Section("jobs", JobsSettings)
