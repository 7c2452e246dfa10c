"""The fast path of calls over HTTP against the SDK's: the same answers, in both protocol eras (design 0019)."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Form, Question
from goat_mcp.core.errors import UpstreamError
from goat_mcp.core.result import ToolResult, text_block, text_result
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.http import fast_response
from goat_mcp.server.http.server import HttpServer, parse_address
from goat_mcp.server.plain_calls import PlainCalls
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.server.asking import AskingTool
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio
both_eras = pytest.mark.parametrize("era", ["handshake", "modern"])
WAIT_S = 30.0
PREFIX = "io.modelcontextprotocol/"
TOKEN, OTHERS = "t" * 40, "o" * 40
Tool = Any


class Counted(PlainCalls):
    """Counts the calls that took the fast path; without `short` all go the SDK's."""

    short = True
    taken = 0

    async def answer(self, ctx: Any, params: Any) -> Any:
        self.taken += 1
        return await super().answer(ctx, params)


class CountingAdapter(Adapter):
    counted: Counted
    short = True

    def plain_calls(self) -> PlainCalls:
        self.counted = Counted(self.server, self._call_tool, self._seal)
        self.counted.are_traced = not self.short
        return self.counted


@dataclass
class Http:
    """A client of raw requests in one era."""

    era: str
    http: httpx2.AsyncClient
    adapter: CountingAdapter
    url: str
    capabilities: Mapping[str, Any]
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def taken(self) -> int:
        return self.adapter.counted.taken

    @property
    def envelope(self) -> dict[str, Any]:
        if self.era == "handshake":
            return {}
        return {
            PREFIX + "protocolVersion": "2026-07-28",
            PREFIX + "clientInfo": {"name": "raw", "version": "1"},
            PREFIX + "clientCapabilities": dict(self.capabilities),
        }

    def of_call(self, request_id: Any, tool: str, arguments: Any = None, **meta: Any) -> dict[str, Any]:
        meta = {**self.envelope, **meta}
        params = {"name": tool, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
        return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}

    async def post(self, message: dict[str, Any], **headers: str) -> httpx2.Response:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(self.url, json=message, headers={**self.headers, **self.about(message), **more})

    def about(self, message: dict[str, Any]) -> dict[str, str]:
        if self.era == "handshake":
            return {}
        name = (message.get("params") or dict[str, Any]()).get("name", "")
        return {"mcp-method": message["method"], "mcp-name": name}

    async def call(self, request_id: Any, tool: str, arguments: Any = None, **meta: Any) -> Any:
        return messages(await self.post(self.of_call(request_id, tool, arguments, **meta)))[-1]

    @asynccontextmanager
    async def open_call(self, message: Any) -> AsyncGenerator[AsyncGenerator[Any]]:
        """The messages of a response, as they come."""
        headers = {**self.headers, **self.about(message)}
        async with self.http.stream("POST", self.url, json=message, headers=headers) as response:
            assert response.headers["content-type"] == "text/event-stream"

            async def events() -> AsyncGenerator[Any]:
                async for line in response.aiter_lines():
                    if line.startswith("data:") and line.removeprefix("data:").strip():
                        yield json.loads(line.removeprefix("data:"))

            yield events()

    async def open(self) -> None:
        """As a client of the era begins; the first call shows the server who calls."""
        self.headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        if self.era == "handshake":
            self.headers["mcp-protocol-version"] = "2025-11-25"
            info = {"name": "raw", "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": info}
            opened = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
            self.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await self.call("first", "plain")


def messages(response: httpx2.Response) -> list[Any]:
    if response.headers["content-type"] == "application/json":
        return [response.json()]
    data = [line.removeprefix("data:").strip() for line in response.text.split("\n") if line.startswith("data:")]
    return [json.loads(text) for text in data if text]


@asynccontextmanager
async def served(
    folder: Path,
    era: str,
    *tools: Tool,
    short: bool = True,
    capabilities: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Http]:
    values = Settings.model_validate({"workspace": [folder], "profiles": {"narrow": {}}, **settings})
    gateway = Gateway(values, approval=Approval.ELICIT, state=StateDirectory(folder / "state"))
    gateway.registry.replace_source("test", [fake("plain"), *tools])
    adapter = CountingAdapter(gateway, "http")
    adapter.short = short
    server = HttpServer(adapter, parse_address("127.0.0.1:0"), TOKEN, values.limits, {"narrow": OTHERS})
    server.bind()
    listening, urls = anyio.Event(), list[str]()

    def listens(url: str) -> None:
        urls.append(url)
        listening.set()

    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with anyio.create_task_group() as serving:
            serving.start_soon(server.serve, listens)
            await listening.wait()
            async with httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=WAIT_S) as http:
                client = Http(era, http, adapter, urls[0], capabilities or {})
                await client.open()
                yield client
            server.stop()
        group.cancel_scope.cancel()
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)  # a server that stops is silenced, in all the process


async def both_ways(
    folder: Path,
    era: str,
    script: Callable[[Http], Awaitable[Any]],
    tools: Callable[[], Sequence[Tool]] = list,
    *,
    taken: int = 1,
) -> Any:
    """What the script returns on the fast path, which is compared with the SDK's."""
    seen: list[Any] = []
    for short in (True, False):
        async with served(folder, era, *tools(), short=short) as client:
            seen.append(await script(client))
            assert client.taken == (taken if short else 0)
    assert seen[0] == seen[1]
    return seen[0]


ANSWERS: dict[str, ToolResult | Exception] = {
    "text": text_result("hello"),
    "not ASCII": text_result("grüß 🐐\u2028"),
    "facts": text_result("hello", facts={"lines": 3}),
    "two blocks and a picture": ToolResult(
        content=(text_block("a"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}, text_block("b"))
    ),
    "structured": ToolResult(content=(text_block("t"),), structured={"deep": [1, 2.5, None, {"x": None}]}),
    "own meta": ToolResult(content=(text_block("t"),), meta={"example.com/x": 1}),
    "failed": ToolResult(content=(text_block("no luck"),), is_error=True),
    "upstream's error": UpstreamError(-32055, "not today", {"why": "monday"}),
    "an error that has a status": UpstreamError(-32602, "no such thing", None),
}


@both_eras
async def test_answers_have_the_same_message_and_status_on_both_ways(tmp_path: Path, era: str) -> None:
    names = {case: f"case{number}" for number, case in enumerate(ANSWERS)}

    async def script(client: Http) -> Any:
        seen: dict[str, Any] = {}
        for case, name in names.items():
            response = await client.post(client.of_call(1, name, {"text": "hi"}))
            seen[case] = response.status_code, messages(response), response.headers.get("mcp-session-id") is not None
        return seen

    tools = [fake(names[case], answer=answer) for case, answer in ANSWERS.items()]
    seen = await both_ways(tmp_path, era, script, lambda: tools, taken=len(ANSWERS))

    assert all([one["id"] for one in answers] == [1] for _, answers, _ in seen.values())


@both_eras
async def test_what_is_wrong_with_a_call_is_said_alike(tmp_path: Path, era: str) -> None:
    async def script(client: Http) -> Any:
        responses = [await client.post(client.of_call("x", tool, {"file_path": 5})) for tool in ("Raed", "Read")]
        return [(response.status_code, messages(response)) for response in responses]

    # An unknown tool has no schema that says what is repeated in headers: in one era it is left to the SDK.
    await both_ways(tmp_path, era, script, taken=1 if era == "modern" else 2)


@both_eras
async def test_an_answer_that_comes_alone_is_plain_json(tmp_path: Path, era: str) -> None:
    async with served(tmp_path, era) as client:
        response = await client.post(client.of_call(1, "plain"))

        assert response.headers["content-type"] == "application/json"
        assert client.taken == 1


@both_eras
async def test_what_comes_before_the_answer_makes_it_a_stream(tmp_path: Path, era: str) -> None:
    async def reports(ctx: ToolContext) -> str:
        await ctx.progress(1, 2, "half")
        return "done"

    async with served(tmp_path, era, AskingTool(reports)) as client:
        response = await client.post(client.of_call(1, "Asks", progressToken="p"))

        *before, answer = messages(response)
        assert response.headers["content-type"] == "text/event-stream" and client.taken == 1
        assert [one["params"]["progressToken"] for one in before] == ["p"] * len(before) and len(before) >= 1
        assert answer["result"]["content"][0]["text"] == "done"


@both_eras
async def test_a_response_that_is_silent_for_long_becomes_a_stream(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_response, "PING_AFTER_S", 0.02)
    slow = fake("slow", release=anyio.Event())
    async with served(tmp_path, era, slow) as client:
        async with client.open_call(client.of_call(1, "slow")) as events:
            assert slow.release is not None
            slow.release.set()
            answers = [one async for one in events]

        assert [one["id"] for one in answers] == [1] and client.taken == 1


def asks_for_a_name() -> AskingTool:
    async def body(ctx: ToolContext) -> str:
        answer = await ctx.ask(Form(message="Who?", questions=(Question("name", "Name"),)))
        return f"{answer}"

    return AskingTool(body)


async def test_a_question_reaches_a_handshake_client_on_the_calls_own_stream(tmp_path: Path) -> None:
    capabilities: Mapping[str, Any] = {"elicitation": {}}
    async with served(tmp_path, "handshake", asks_for_a_name(), capabilities=capabilities) as client:
        async with client.open_call(client.of_call(1, "Asks")) as events:
            question = await anext(events)
            answer = {"action": "accept", "content": {"name": "Ada"}}
            accepted = await client.post({"jsonrpc": "2.0", "id": question["id"], "result": answer})
            result = await anext(events)

        assert question["method"] == "elicitation/create" and accepted.status_code == 202
        assert "Ada" in result["result"]["content"][0]["text"] and client.taken == 1


async def test_a_question_is_answered_by_its_own_principal_only(tmp_path: Path) -> None:
    capabilities: Mapping[str, Any] = {"elicitation": {}}
    async with served(tmp_path, "handshake", asks_for_a_name(), capabilities=capabilities) as client:
        async with client.open_call(client.of_call(1, "Asks")) as events:
            question = await anext(events)
            forged = {
                "jsonrpc": "2.0",
                "id": question["id"],
                "result": {"action": "accept", "content": {"name": "Eve"}},
            }
            refused = await client.post(forged, authorization=f"Bearer {OTHERS}")
            await client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
            result = await anext(events)

        assert refused.status_code == 404
        assert "Eve" not in result["result"]["content"][0]["text"]


async def test_a_modern_client_gets_the_question_as_a_result(tmp_path: Path) -> None:
    capabilities: Mapping[str, Any] = {"elicitation": {"form": {}}}
    async with served(tmp_path, "modern", asks_for_a_name(), capabilities=capabilities) as client:
        [asked] = messages(await client.post(client.of_call(1, "Asks")))

        assert asked["result"]["resultType"] == "input_required" and asked["result"]["requestState"]
        assert client.taken == 1


async def test_a_cancelled_call_of_a_session_ends_and_says_so(tmp_path: Path) -> None:
    slow = fake("slow", release=anyio.Event())
    async with served(tmp_path, "handshake", slow) as client, anyio.create_task_group() as group:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await client.call(7, "slow"))

        group.start_soon(call)
        await slow.started.wait()
        about = {"requestId": 7, "reason": "enough"}
        cancelled = await client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": about})
        assert cancelled.status_code == 202
        with anyio.fail_after(WAIT_S):
            while not answers:  # noqa: ASYNC110  # bounded
                await anyio.sleep(0.01)

        assert answers[0]["error"]["code"] == -32800 and client.taken == 1


async def test_a_foreign_token_cancels_no_call(tmp_path: Path) -> None:
    slow = fake("slow", release=anyio.Event())
    async with served(tmp_path, "handshake", slow) as client, anyio.create_task_group() as group:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await client.call(7, "slow"))

        group.start_soon(call)
        await slow.started.wait()
        forged = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        refused = await client.post(forged, authorization=f"Bearer {OTHERS}")
        assert slow.release is not None
        slow.release.set()
        with anyio.fail_after(WAIT_S):
            while not answers:  # noqa: ASYNC110  # bounded
                await anyio.sleep(0.01)

        assert refused.status_code == 404
        assert answers[0]["result"]["content"][0]["text"] == "done"


@both_eras
async def test_a_client_that_hangs_up_cancels_its_call(tmp_path: Path, era: str) -> None:
    ended = anyio.Event()

    async def waits(ctx: ToolContext) -> str:
        try:
            await anyio.sleep_forever()
            return "never"
        finally:
            ended.set()

    tool = AskingTool(waits)
    async with served(tmp_path, era, tool) as client:
        with anyio.move_on_after(0.3):
            await client.post(client.of_call(1, "Asks"))
        with anyio.fail_after(WAIT_S):
            await ended.wait()

        assert client.taken == 1


async def test_a_session_that_its_client_ends_takes_its_calls_along(tmp_path: Path) -> None:
    slow = fake("slow", release=anyio.Event())
    async with served(tmp_path, "handshake", slow) as client, anyio.create_task_group() as group:
        answers: list[httpx2.Response] = []

        async def call() -> None:
            answers.append(await client.post(client.of_call(7, "slow")))

        group.start_soon(call)
        await slow.started.wait()
        await client.http.delete(client.url, headers=client.headers)
        with anyio.fail_after(WAIT_S):
            while not answers:  # noqa: ASYNC110  # bounded
                await anyio.sleep(0.01)

        assert answers[0].status_code == 500 and client.taken == 1
        assert (await client.post(client.of_call(8, "plain"))).status_code == 404


@both_eras
async def test_headers_that_the_sdk_refuses_are_refused_after_any_number_of_good_calls(
    tmp_path: Path, era: str
) -> None:
    async with served(tmp_path, era) as client:
        await client.call(1, "plain")
        refused = await client.post(client.of_call(2, "plain"), accept="application/json")
        other = await client.post(client.of_call(3, "plain"), mcp_protocol_version="2031-01-01")

        assert refused.status_code == 406 and other.status_code == 400
        assert client.taken == 1


async def test_headers_that_name_another_tool_or_method_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path, "modern") as client:
        tool = await client.post(client.of_call(1, "plain"), mcp_name="Read")
        method = await client.post(client.of_call(2, "plain"), mcp_method="tools/list")

        assert (tool.status_code, method.status_code) == (400, 400)
        assert client.taken == 0


async def test_a_tool_whose_arguments_are_repeated_in_headers_is_left_to_the_sdk(tmp_path: Path) -> None:
    tool = fake("mirrored")
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    object.__setattr__(tool.spec, "input_schema", schema)
    async with served(tmp_path, "modern", tool) as client:
        wrong = await client.post(client.of_call(1, "mirrored", {"region": "eu"}), mcp_param_region="us")
        none = await client.post(client.of_call(2, "mirrored", {"region": "eu"}))
        right = await client.post(client.of_call(3, "mirrored", {"region": "eu"}), mcp_param_region="eu")

        assert [one.status_code for one in (wrong, none, right)] == [400, 400, 200]
        assert client.taken == 0


async def test_after_another_message_of_the_session_a_call_goes_the_sdks_way_first(tmp_path: Path) -> None:
    async with served(tmp_path, "handshake") as client:
        await client.call(1, "plain")
        await client.post({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "error"}})
        await client.call(3, "plain")
        assert client.taken == 1
        await client.call(4, "plain")

        assert client.taken == 2


async def test_a_session_of_another_principal_is_unknown_however_often_it_was_used(tmp_path: Path) -> None:
    async with served(tmp_path, "handshake") as client:
        await client.call(1, "plain")
        refused = await client.post(client.of_call(2, "plain"), authorization=f"Bearer {OTHERS}")

        assert refused.status_code == 404 and client.taken == 1
