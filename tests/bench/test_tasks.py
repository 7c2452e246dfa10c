"""The tasks of the benchmark: each can be done, none is done before, and the bill adds up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.tasks.families import all_tasks
from bench.tasks.gateways import GOAT, Contender, Mode
from bench.tasks.ledger import SYSTEM, Ledger, tokens
from bench.tasks.policies import PERFECT
from bench.tasks.run import cells
from bench.tasks.services import Services
from bench.tasks.task import Task
from bench.tasks.worlds.fillers import filler_tools
from bench.tasks.worlds.shop import Item
from bench.workbench import Workbench

TASKS = {task.name: task for task in all_tasks()}


def done_by_hand(task: Task, services: Services) -> str:
    """Run the task's script with the services themselves. Returns the answer."""

    def called(tool: Any) -> Any:
        def call(**arguments: Any) -> Any:
            if "items" in arguments:
                arguments["items"] = [Item(**item) for item in arguments["items"]]
            return json.loads(json.dumps(tool(**arguments)))

        return call

    scope = {tool.__name__: called(tool) for world in services.worlds for tool in world.tools}
    exec(task.script, scope)
    return str(scope.get("answer", ""))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_task_is_solved_by_its_script_and_not_before(task: Task) -> None:
    services = Services(20)
    services.reset(task.is_large)

    before = task.check(services.state, "")
    answer = done_by_hand(task, services)

    assert not before
    assert task.check(services.state, answer)


def test_there_are_sixty_tasks_and_a_third_of_them_is_large() -> None:
    assert len(TASKS) == 60
    assert sum(task.is_large for task in TASKS.values()) == 20


def test_a_larger_catalog_begins_with_the_smaller_one() -> None:
    names = [tool.name for _, tool in filler_tools(980)]

    assert len(set(names)) == 980
    assert [tool.name for _, tool in filler_tools(180)] == names[:180]


def test_each_turn_pays_for_what_is_new_and_a_tenth_for_what_was_sent_before() -> None:
    ledger = Ledger(definitions=1000)
    ledger.ask("x" * 40)
    begin = tokens(SYSTEM) + 10

    ledger.turn("y" * 80, "z" * 400)
    ledger.turn("done")

    first = 1000 + begin
    assert (ledger.turns, ledger.input_new, ledger.input_cached, ledger.output) == (2, first + 20 + 100, first, 21)
    assert ledger.billed == pytest.approx(first + 120 + 0.1 * first + 21)
    assert ledger.billed - ledger.billed_warm == pytest.approx(900)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["direct", "host search", "search", "search again", "code"])
async def test_a_task_is_done_through_goat_mcp_in_each_mode(tmp_path: Path, mode: Mode) -> None:
    bench = Workbench(tmp_path, quick=True)
    tasks = [TASKS["refund_all-0"], TASKS["actions_to_issues-0"]]

    async with cells(bench, 20, [Contender(GOAT, mode)], [PERFECT], tasks) as found:
        (cell,) = [cell async for cell in found]

    assert [attempt.why for attempt in cell.attempts] == ["", ""]
    assert cell.solved == 2


@pytest.mark.anyio
async def test_what_was_used_before_needs_no_search(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, quick=True)
    modes: tuple[Mode, ...] = ("search", "search again")

    async with cells(bench, 20, [Contender(GOAT, mode) for mode in modes], [PERFECT], [TASKS["refund_all-0"]]) as found:
        first, again = [cell async for cell in found]

    assert first.solved == again.solved == 1
    assert again.listed_tokens > first.listed_tokens and again.turns == first.turns - 1
