"""Background work by id: what runs beside the calls, and what of it is remembered."""

from goat_mcp.commands.tasks.manager import TaskManager, new_task_id
from goat_mcp.commands.tasks.task import Outcome, Task, TaskStatus, TaskWork

__all__ = ["Outcome", "Task", "TaskManager", "TaskStatus", "TaskWork", "new_task_id"]
