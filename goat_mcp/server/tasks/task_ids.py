"""The ids of our own tasks, as clients get them: on one of several replicas they end with its name."""

from __future__ import annotations

from goat_mcp.commands.tasks.records import TASK_ID


def given_id(task_id: str, replica: str) -> str:
    """`replica` is empty on a server that is alone."""
    return f"{task_id}.{replica}" if replica else task_id


def own_id(given: str) -> str:
    """Without the replica. It is one of a task if it is one of ours."""
    return given.partition(".")[0]


def replica_of_task(given: str) -> str:
    """The replica that gave this id, by its own word; empty if it names none, or is not ours."""
    task_id, _, replica = given.partition(".")
    return replica if TASK_ID.match(task_id) else ""
