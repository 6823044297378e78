"""Files of plans: where they may lie, and texts that programs for tables would take for formulas."""

from aioflow.files.access import FileAccess
from aioflow.files.formulas import neutral
from aioflow.files.settings import FILES, FileSettings, Formulas

__all__ = ["FILES", "FileAccess", "FileSettings", "Formulas", "neutral"]
