"""Background tasks by id: what runs beside the calls, and what is remembered of it."""

from goat_mcp.commands.tasks.manager import TaskManager, new_task_id
from goat_mcp.commands.tasks.task import Task, TaskOutcome, TaskStatus, TaskWork

__all__ = ["Task", "TaskManager", "TaskOutcome", "TaskStatus", "TaskWork", "new_task_id"]
