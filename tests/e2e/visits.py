"""One visit with a client that others wrote: the same steps and the same answers, whichever client it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio.to_thread
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.context import ClientRequestContext
from pydantic import BaseModel

from tests.e2e.goat import HttpGoat, Launch, connected
from tests.e2e.node_side import Node
from tests.e2e.wire import text_of

FORMS = "elicitation/create"
MODEL = "sampling/createMessage"
Answers = Mapping[str, Sequence[Mapping[str, Any]]]
"""What the client answers to the server's own requests, by method, in order; it can do what it has answers for.

`{"refuse": MESSAGE}` refuses, and so does a client whose answers have run out.
"""
NOBODY: Answers = {}


@dataclass(frozen=True)
class Kind:
    """A client and the era it speaks."""

    client: str
    era: str

    def __str__(self) -> str:
        return f"{self.client} {self.era}"

    @property
    def is_modern(self) -> bool:
        return self.era != "legacy"


SeekNode = Callable[[], Node]
PYTHON = (Kind("python", "legacy"), Kind("python", "2026-07-28"))
KINDS = (*PYTHON, Kind("v2", "legacy"), Kind("v2", "2026-07-28"), Kind("v1", "legacy"))
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@dataclass
class Visit:
    """What came of it: a result or `{"error": ...}` per call, and what the server asked meanwhile."""

    results: list[Any] = field(default_factory=list[Any])
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def texts(self) -> list[str]:
        return [result["error"]["message"] if "error" in result else text_of(result) for result in self.results]

    @property
    def forms(self) -> list[dict[str, Any]]:
        return [asked["params"] for asked in self.asked if asked["method"] == FORMS]

    @property
    def prompts(self) -> list[dict[str, Any]]:
        return [asked["params"] for asked in self.asked if asked["method"] == MODEL]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """One step."""
    return {"call": tool, "arguments": arguments}


async def visit(
    kind: Kind,
    target: Launch | HttpGoat,
    steps: Sequence[Mapping[str, Any]],
    answers: Answers,
    *,
    node: SeekNode,
    name: str = "e2e-visit",
) -> Visit:
    """Connect, make the calls one after the other, leave."""
    if kind.client == "python":
        return await _with_python(kind, target, steps, answers, name)
    session = partial(node().session, kind.client, kind.era, target, steps, answers, name)
    done = await anyio.to_thread.run_sync(session)
    return Visit(done["results"], done["asked"])


async def _with_python(
    kind: Kind, target: Launch | HttpGoat, steps: Sequence[Mapping[str, Any]], answers: Answers, name: str
) -> Visit:
    seen = Visit()
    left = {method: list(given) for method, given in answers.items()}

    def next_answer(method: str, params: BaseModel) -> Mapping[str, Any]:
        seen.asked.append({"method": method, "params": params.model_dump(mode="json", by_alias=True)})
        return left[method].pop(0) if left[method] else {"refuse": "no answer is left"}

    async def fills_in(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        given = next_answer(FORMS, params)
        return _refusal(given) or types.ElicitResult.model_validate(given)

    async def thinks(ctx: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        given = next_answer(MODEL, params)
        kind = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return _refusal(given) or kind.model_validate(given)

    abilities: dict[str, Any] = {"client_info": types.Implementation(name=name, version="1.0.0")}
    if FORMS in answers:
        abilities["elicitation_callback"] = fills_in
    if MODEL in answers:
        abilities["sampling_callback"] = thinks
        abilities["sampling_capabilities"] = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with connected(target, kind.era, **abilities) as client:
        for step in steps:
            try:
                result = await client.call_tool(step["call"], step["arguments"])
                seen.results.append(result.model_dump(by_alias=True, mode="json", exclude_none=True))
            except MCPError as refused:
                seen.results.append({"error": {"code": refused.error.code, "message": refused.error.message}})
    return seen


def _refusal(given: Mapping[str, Any]) -> types.ErrorData | None:
    return types.ErrorData(code=-1, message=given["refuse"]) if "refuse" in given else None
