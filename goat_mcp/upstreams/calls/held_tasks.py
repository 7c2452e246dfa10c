"""The tasks of one upstream: requests about them, and for callers that know none, waiting for the end (ERA-7)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import anyio

from goat_mcp.core.calling_client import RootsOf
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.spec import ToolSpec
from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
from goat_mcp.upstreams.calls.task_answers import (
    CANCELLED,
    COMPLETED,
    ENDS,
    FAILED,
    INPUT_REQUIRED,
    task_id_in,
    task_members,
)
from goat_mcp.upstreams.calls.task_requests import TaskRequests
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.transports.server_requests import KIND_OF, ROOTS, RoundAnswers, roots_result

LEAST_POLL_S, MOST_POLL_S, DEFAULT_POLL_S = 0.1, 10.0, 1.0
_CANCEL_S = 2.0
MAX_ROUNDS = 10
"""How often one task may ask (ERA-4)."""


class UpstreamTasks:
    """`roots` are as in `Callers`."""

    def __init__(self, config: UpstreamConfig, requests: ResourceRequests, roots: RootsOf) -> None:
        self.requests = TaskRequests(config, requests)
        self._config = config
        self._roots = roots

    def known_answers(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Those that are ours to give, by key: the roots, where a workspace is named (ERA-6)."""
        if not (roots := self._roots(True)):
            return {}
        return {key: roots_result(roots) for key, one in questions.items() if KIND_OF[one["method"]] == ROOTS}

    async def held(self, spec: ToolSpec, created: Mapping[str, Any], ctx: ToolContext) -> Mapping[str, Any]:
        """The result that the task brings. If the caller gives up, so does the upstream, as far as it heeds that.

        Raises `ToolError`, and `UpstreamError` for a task that failed.
        """
        name = self._config.name
        task_id = task_id_in(name, created.get("taskId"))
        state = task_members(name, created)
        left_s = self._config.timeout_s
        answered: set[str] = set()
        rounds = 0
        try:
            with ctx.while_elsewhere(spec):
                while True:
                    began_s = time.monotonic()
                    await anyio.sleep(min(_poll_s(state), left_s))
                    state = await self.requests.get(task_id, ctx)
                    left_s -= time.monotonic() - began_s  # what a person thinks does not count
                    if state["status"] == INPUT_REQUIRED:
                        # A question stays there until the upstream has read the answer.
                        questions = {key: one for key, one in state["inputRequests"].items() if key not in answered}
                        if questions:
                            rounds += 1
                            if rounds > MAX_ROUNDS:
                                said = f"the task of upstream {name} asked more than {MAX_ROUNDS} times"
                                raise ToolError(ErrorCode.UPSTREAM, said)
                            answers = RoundAnswers(name, self._config.allow, self._roots, ctx.client)
                            given = await answers.to_result({**state, "inputRequests": questions})
                            await self.requests.update(task_id, given.get("inputResponses", {}), ctx)
                            answered |= questions.keys()
                    elif state["status"] == COMPLETED:
                        return state["result"]
                    elif state["status"] == FAILED:
                        error = state["error"]
                        raise UpstreamError(error["code"], error["message"], error.get("data"))
                    elif state["status"] == CANCELLED:
                        raise ToolError(ErrorCode.CANCELLED, f"upstream {name} has cancelled the task of this call")
                    if left_s <= 0:
                        raise self._too_late()
        except BaseException:
            if state["status"] not in ENDS:
                with anyio.move_on_after(_CANCEL_S, shield=True):
                    await self._cancel(task_id, ctx)
            raise

    def _too_late(self) -> ToolError:
        name, limit_s = self._config.name, self._config.timeout_s
        return ToolError(
            ErrorCode.TIMEOUT,
            f"the task of upstream {name} did not end within {limit_s:g} s; it was cancelled but may have taken effect",
            "Check its outcome before calling again; the operator can raise timeout_s of this upstream.",
            facts={"upstream": name, "outcome": "unknown"},
        )

    async def _cancel(self, task_id: str, ctx: ToolContext) -> None:
        try:
            await self.requests.cancel(task_id, ctx)
        except (ToolError, UpstreamError):
            return  # nobody waits for it any more


def _poll_s(state: Mapping[str, Any]) -> float:
    wanted_s = state.get("pollIntervalMs", DEFAULT_POLL_S * 1000) / 1000
    return min(MOST_POLL_S, max(LEAST_POLL_S, wanted_s))
