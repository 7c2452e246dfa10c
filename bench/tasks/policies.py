"""Models that are scripted: what each would do for a task, turn by turn, through any way to the tools."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from bench.tasks.services import Services
from bench.tasks.task import Task
from bench.tasks.ways import READING, Call, Conversation, Habits, Scripted, TaskFailed, Way

_THOUGHT = (
    "Thought: I look at what was asked and at what I know so far, and decide which tool brings me nearer to it and "
    "with which arguments I should call it now.\n"
)
PERFECT = Habits("perfect", is_parallel=True)
HESITANT = Habits("hesitant", describes=True, looks_again=True)
WRONG_FIRST = Habits("wrong-first", is_parallel=True, errs_first=True)
REACT = Habits("ReAct", thought=_THOUGHT)
POLICIES = (PERFECT, HESITANT, WRONG_FIRST, REACT)


def needed_tools(script: str, services: Services) -> list[str]:
    """The tools that a script calls, in order."""
    called = [name for node in ast.walk(ast.parse(script)) if (name := _called(node, services))]
    return list(dict.fromkeys(called))


def _called(node: ast.AST, services: Services) -> str:
    """The tool that a piece of a script calls; empty if it calls none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in services.server_of:
        return node.func.id
    return ""


async def solve(task: Task, talk: Conversation, way: Way | Scripted) -> str:
    """Do the task. Returns the answer; raises `TaskFailed`."""
    talk.ledger.ask(task.prompt)
    needed = needed_tools(task.script, talk.services)
    if isinstance(way, Scripted):
        answer = await way.run(task.script, needed)
    else:
        await way.prepare(needed)
        answer = await _by_steps(task, talk, way)
    talk.ledger.turn(talk.habits.thought + (answer or "Done: all of it."))
    return answer


async def _by_steps(task: Task, talk: Conversation, way: Way) -> str:
    """Each call is a turn of the model. Calls whose answers it does not need go together, if it works in parallel."""
    waiting: list[Call] = []
    made: list[Call] = []

    async def send(name: str, arguments: dict[str, Any], is_needed: bool) -> Any:
        waiting.append(Call(name, arguments))
        if not is_needed and talk.habits.is_parallel:
            return None
        return await flush()

    async def flush() -> Any:
        calls = [*waiting]
        waiting.clear()
        if not calls:
            return None
        if not made and talk.habits.errs_first:
            await _wrong(calls[0], way)
        made.extend(calls)
        return (await way.call(calls))[-1]

    functions: dict[str, Callable[..., Any]] = {}
    for name in talk.services.server_of:
        functions[name] = partial(_from_thread, send, name, True)
        functions[f"{name}_"] = partial(_from_thread, send, name, False)
    code = compile(_marked(task.script, talk.services), task.name, "exec")
    scope: dict[str, Any] = {**functions}
    try:
        await anyio.to_thread.run_sync(exec, code, scope)
    except (LookupError, ValueError) as confused:
        raise TaskFailed(f"{type(confused).__name__}: {confused}") from None
    await flush()
    if talk.habits.looks_again and made and made[0].name.startswith(READING):
        await way.call([made[0]])
    return str(scope.get("answer", ""))


def _from_thread(send: Callable[..., Any], name: str, is_needed: bool, /, **arguments: Any) -> Any:
    return anyio.from_thread.run(send, name, arguments, is_needed)


def _marked(script: str, services: Services) -> ast.Module:
    """Calls whose answer is not used get another name."""
    tree = ast.parse(script)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (name := _called(node.value, services)):
            node.value.func = ast.Name(f"{name}_", ast.Load())
    return ast.fix_missing_locations(tree)


async def _wrong(call: Call, way: Way) -> None:
    """An argument has the wrong name: the gateway or the server says so."""
    *kept, last = call.arguments.items()
    try:
        await way.call([Call(call.name, {**dict(kept), "unknown": last[1]})])
    except TaskFailed:
        return
