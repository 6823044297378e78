"""Jobs: runs that survive a crash, because each finished request has a record.

A job is run again by the same command. The plan starts anew, but a statement that makes requests finds what
it has done before in the records of the job, and asks only for the rest.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.jobs.exchange import Exchange, StageRecord
    from aioflow.jobs.recording import JobRecords, RecordingContext, recorded_call
    from aioflow.jobs.store import JobError, JobState, JobStore

__all__ = [
    "Exchange",
    "JobError",
    "JobRecords",
    "JobState",
    "JobStore",
    "RecordingContext",
    "StageRecord",
    "recorded_call",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "exchange": ("Exchange", "StageRecord"),
        "recording": ("JobRecords", "RecordingContext", "recorded_call"),
        "store": ("JobError", "JobState", "JobStore"),
    },
)
