"""All tasks through all gateways in all modes, for each scripted model and size of the catalog."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import mean, median

from bench.tasks.gateways import Contender, Running, running
from bench.tasks.ledger import Ledger
from bench.tasks.model import Endpoint, solve_with_model
from bench.tasks.policies import solve
from bench.tasks.services import Services, serving
from bench.tasks.task import Task
from bench.tasks.ways import (
    HOST_SEARCH_TOKENS,
    Conversation,
    Direct,
    Habits,
    HostSearched,
    Scripted,
    Searched,
    TaskFailed,
    Way,
    definition_text,
    definition_tokens,
)
from bench.workbench import Workbench


@dataclass(frozen=True)
class Attempt:
    """One task, done by one model through one gateway."""

    task: str
    is_solved: bool
    why: str
    billed: float
    billed_warm: float
    input_new: int
    input_cached: int
    output: int
    turns: int
    seconds: float


@dataclass(frozen=True)
class Cell:
    """All tasks of one contender, model and size."""

    gateway: str
    mode: str
    policy: str
    tools: int
    listed_tokens: int
    attempts: Sequence[Attempt]

    @property
    def solved(self) -> int:
        return sum(attempt.is_solved for attempt in self.attempts)

    @property
    def per_solved(self) -> float:
        """Billed tokens of all attempts, the failed ones too, for each task that was solved."""
        return sum(attempt.billed for attempt in self.attempts) / max(1, self.solved)

    @property
    def per_solved_warm(self) -> float:
        """The same if the list of tools was in the provider's cache before."""
        return sum(attempt.billed_warm for attempt in self.attempts) / max(1, self.solved)

    @property
    def turns(self) -> float:
        return mean(attempt.turns for attempt in self.attempts)

    @property
    def seconds(self) -> float:
        return median(attempt.seconds for attempt in self.attempts)


async def attempt(
    task: Task,
    habits: Habits,
    contender: Contender,
    gateway: Running,
    services: Services,
    endpoint: Endpoint | None = None,
) -> Attempt:
    """Do one task from a fresh state, and look how the services are left."""
    services.reset(task.is_large)
    ledger = Ledger(listed_tokens(contender, gateway))
    talk = Conversation(gateway.client, services, contender.names, habits, ledger)
    began_s = time.monotonic()
    why, answer = "", ""
    try:
        if endpoint is None:
            answer = await solve(task, talk, _way(contender, talk, gateway))
        else:
            answer = await solve_with_model(task.prompt, talk, endpoint, gateway.listed)
    except TaskFailed as failed:
        why = str(failed)[:300]
    answer = _last_line(answer)
    is_solved = not why and task.check(services.state, answer)
    return Attempt(
        task.name,
        is_solved,
        why or ("" if is_solved else f"left in another state; answered {answer[:80]!r}"),
        ledger.billed,
        ledger.billed_warm,
        ledger.input_new,
        ledger.input_cached,
        ledger.output,
        ledger.turns,
        time.monotonic() - began_s,
    )


def _last_line(said: str) -> str:
    """What was asked for. The result of a script may come as JSON."""
    last = said.strip().rpartition("\n")[2].strip()
    try:
        value = json.loads(last)
    except ValueError:
        return last
    return value if isinstance(value, str) else str(value)


def listed_tokens(contender: Contender, gateway: Running) -> int:
    return HOST_SEARCH_TOKENS if contender.mode == "host search" else definition_tokens(gateway.listed)


def _way(contender: Contender, talk: Conversation, gateway: Running) -> Way | Scripted:
    match contender.mode:
        case "direct":
            return Direct(talk)
        case "host search":
            return HostSearched(talk, {one["name"]: definition_text(one) for one in gateway.listed})
        case "search" | "search again":
            return Searched(talk, frozenset(one["name"] for one in gateway.listed))
        case "code":
            return Scripted(talk)


@asynccontextmanager
async def cells(
    bench: Workbench,
    tools: int,
    contenders: Sequence[Contender],
    policies: Sequence[Habits],
    tasks: Sequence[Task],
    endpoint: Endpoint | None = None,
) -> AsyncGenerator[AsyncGenerator[Cell]]:
    """Run all of it for one size; what has been measured comes as it is done. `endpoint`: a real model, in place of
    `policies`.
    """
    async with serving(tools) as services:
        yield _cells(bench, contenders, policies, tasks, services, endpoint)


async def _cells(
    bench: Workbench,
    contenders: Sequence[Contender],
    policies: Sequence[Habits],
    tasks: Sequence[Task],
    services: Services,
    endpoint: Endpoint | None,
) -> AsyncGenerator[Cell]:
    models = policies if endpoint is None else [Habits(endpoint.model)]
    for contender in contenders:
        async with running(contender, bench, services) as gateway:
            listed = listed_tokens(contender, gateway)
            for model in models:
                attempts = [await attempt(task, model, contender, gateway, services, endpoint) for task in tasks]
                yield Cell(contender.gateway, contender.mode, model.name, services.tool_count, listed, attempts)
