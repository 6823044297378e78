"""The long-running form of aioflow: plans that run on a schedule.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.service.schedules.schedule import parse_schedule
    from aioflow.service.service import MonitorService
    from aioflow.service.staged_requests import TaskRequests
    from aioflow.service.task import TaskDefinition, default_name

__all__ = ["MonitorService", "TaskDefinition", "TaskRequests", "default_name", "parse_schedule"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "schedules.schedule": ("parse_schedule",),
        "service": ("MonitorService",),
        "staged_requests": ("TaskRequests",),
        "task": ("TaskDefinition", "default_name"),
    },
)
