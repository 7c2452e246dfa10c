"""Background work by id: what runs beside the calls, and what of it is remembered."""

from goat_mcp.tasks.manager import TaskManager
from goat_mcp.tasks.task import Outcome, Task, TaskStatus, TaskWork

__all__ = ["Outcome", "Task", "TaskManager", "TaskStatus", "TaskWork"]
