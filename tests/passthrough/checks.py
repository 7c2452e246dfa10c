"""One check for each row of the table: what a client sees through a gateway is what the server behind it does.

A check raises if something did not pass; the text of the error says what.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

import anyio
import mcp_types as types
from mcp import StdioServerParameters
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

from tests.conformance.fixture.one_era import HANDSHAKE, STATELESS
from tests.passthrough.client import ROOT, WAIT_S, Seen, connected, text_of
from tests.passthrough.extension_checks import check_skills, check_tasks
from tests.passthrough.upstream import APP_META, KEPT_KEY, PAGE, PAGE_META, PAGE_TYPE, VENDOR_KEY, WATCHED

_BIG = 12345678901234567890


async def _tools(seen: Seen) -> None:
    tool = await seen.tool("add")
    assert tool.annotations is not None, "annotations are missing"
    assert tool.annotations.title == "Add", "annotations are missing"
    assert tool.output_schema is not None, "the output schema is missing"
    result = await seen.call("add", {"a": 2, "b": 3})
    assert result.structured_content == {"sum": 5}, "the structured content is missing"
    kinds = [block.type for block in (await seen.call("blocks")).content]
    assert kinds == ["image", "audio", "resource_link", "resource"], f"blocks arrive as {kinds}"


async def _resources(seen: Seen) -> None:
    for uri in ("test://text", "test://data"):
        await seen.resource(uri)
    text = (await seen.client.read_resource("test://text")).contents[0]
    data = (await seen.client.read_resource("test://data")).contents[0]
    assert isinstance(text, types.TextResourceContents), "the text is missing"
    assert text.text == "content of test://text", "the text is another"
    assert isinstance(data, types.BlobResourceContents), "the data is missing"
    assert data.blob == "AAEC", "the data is another"


async def _templates(seen: Seen) -> None:
    async def look() -> bool | None:
        listed = (await seen.client.list_resource_templates()).resource_templates
        return "test://item/{id}" in {one.uri_template for one in listed} or None

    await seen.listed(look, "not listed")
    content = (await seen.client.read_resource("test://item/7")).contents[0]
    assert isinstance(content, types.TextResourceContents), "no text"
    assert content.text == "content of test://item/7", "another text"


async def _prompt(seen: Seen) -> types.Prompt:
    async def look() -> types.Prompt | None:
        for prompt in (await seen.client.list_prompts()).prompts:
            if prompt.name == "greet" or prompt.name.endswith("_greet"):
                return prompt
        return None

    return await seen.listed(look, "not listed")


async def _prompts(seen: Seen) -> None:
    prompt = await _prompt(seen)
    assert prompt.title == "Greet", "the title is missing"
    content = (await seen.client.get_prompt(prompt.name, {"name": "Ada"})).messages[0].content
    assert isinstance(content, types.TextContent), "no text"
    assert content.text == "Greet Ada.", "another text"


async def _completion(seen: Seen) -> None:
    prompt = types.PromptReference(type="ref/prompt", name=(await _prompt(seen)).name)
    argument = {"name": "name", "value": "A"}
    values = (await seen.client.complete(prompt, argument, {"before": "x"})).completion.values
    assert values == ["greet:A:x"], f"of a prompt: {values}"
    template = types.ResourceTemplateReference(type="ref/resource", uri="test://item/{id}")
    values = (await seen.client.complete(template, {"name": "id", "value": "7"})).completion.values
    assert values == ["test://item/{id}:7:"], f"of a template: {values}"


async def _subscriptions(seen: Seen) -> None:
    if seen.era == HANDSHAKE:
        await seen.client.subscribe_resource(WATCHED)  # pyright: ignore[reportDeprecated]  # of this era
        await seen.call("touch")
        await seen.until(lambda: any(_is_update(one) for one in seen.heard), "the update")
        return
    async with seen.client.listen(resource_subscriptions=[WATCHED]) as events:
        await seen.call("touch")
        with anyio.fail_after(WAIT_S):
            async for event in events:
                assert event == ResourceUpdated(WATCHED), f"another event: {event}"
                return


def _is_update(message: Any) -> bool:
    return isinstance(message, types.ResourceUpdatedNotification) and str(message.params.uri) == WATCHED


async def _list_changes(seen: Seen) -> None:
    if seen.era == HANDSHAKE:
        await seen.call("grow")
        await seen.until(
            lambda: any(isinstance(one, types.ToolListChangedNotification) for one in seen.heard), "the notice"
        )
    else:
        async with seen.client.listen(tools_list_changed=True) as events:
            await seen.call("grow")
            with anyio.fail_after(WAIT_S):
                async for event in events:
                    assert event == ToolsListChanged(), f"another event: {event}"
                    break
    await seen.tool("grown")


async def _logging(seen: Seen) -> None:
    if seen.era == HANDSHAKE:
        await seen.client.set_logging_level("info")  # pyright: ignore[reportDeprecated]  # of this era
    await seen.call("log")
    await seen.until(lambda: any(one.data == "noted" for one in seen.logs), "the entry")


async def _progress(seen: Seen) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    await seen.call("count", progress_callback=on_progress)
    assert (2.0, 3.0, "step 2") in steps, f"heard {steps}"


async def _cancel(seen: Seen) -> None:
    began = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        if total == 2:  # the server's own: a gateway may report the start of the call as well
            began.set()

    name = (await seen.tool("wait")).name
    async with anyio.create_task_group() as group:
        group.start_soon(_ignore_errors, seen.client.call_tool, name, on_progress)
        with anyio.move_on_after(WAIT_S / 4):
            await began.wait()
        group.cancel_scope.cancel()
    with anyio.move_on_after(WAIT_S / 4):
        while True:
            if text_of(await seen.call("cancelled")) != "0":
                return
            await anyio.sleep(0.05)
    raise AssertionError("the server was not told")


async def _ignore_errors(call: Callable[..., Awaitable[Any]], name: str, on_progress: Any) -> None:
    await call(name, progress_callback=on_progress)


def _asks(tool: str, kind: str, answer: str) -> Check:
    async def run(seen: Seen) -> None:
        result = await seen.call(tool)
        assert kind in seen.asked, f"the client was not asked; the server got: {text_of(result)}"
        assert answer in text_of(result), f"the server got: {text_of(result)}"

    return run


async def _metadata(seen: Seen) -> None:
    result = await seen.call("meta", meta={VENDOR_KEY: "abc"})
    assert text_of(result) == "abc", f"the server got {text_of(result)!r}"
    assert (result.meta or {}).get(KEPT_KEY) == {"n": _BIG, "list": []}, f"the client got {result.meta}"


async def _apps(seen: Seen) -> None:
    meta = (await seen.tool("board")).meta
    assert _holds(meta, APP_META), f"of the tool: {meta}"
    listed = await seen.resource(PAGE)
    assert _holds(listed.meta, PAGE_META), f"of the listed page: {listed.meta}"
    page = (await seen.client.read_resource(PAGE)).contents[0]
    assert page.mime_type == PAGE_TYPE, f"of the page: {page.mime_type}"
    assert _holds(page.meta, PAGE_META), f"of the page: {page.meta}"
    assert (await seen.call("board")).meta, "the result's `_meta` is missing"


def _holds(meta: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> bool:
    """Whether all of `wanted` is there. A gateway may add keys of its own."""
    return all((meta or {}).get(key) == value for key, value in wanted.items())


Check = Callable[[Seen], Coroutine[Any, Any, None]]
CHECKS: Mapping[str, Check] = {
    "tools": _tools,
    "resources": _resources,
    "templates": _templates,
    "prompts": _prompts,
    "completion": _completion,
    "subscriptions": _subscriptions,
    "list changes": _list_changes,
    "logging": _logging,
    "progress": _progress,
    "cancel": _cancel,
    "sampling": _asks("ask_model", "sampling", "hello from the model"),
    "elicitation, form": _asks("ask_form", "form", "Ada"),
    "elicitation, URL": _asks("ask_url", "url", "action=accept"),
    "roots": _asks("ask_roots", "roots", ROOT),
    "`_meta`": _metadata,
    "apps": _apps,
    "tasks": check_tasks,
    "skills": check_skills,
}
PAIRS = tuple((client, server) for client in (HANDSHAKE, STATELESS) for server in (HANDSHAKE, STATELESS))
"""Eras of the client and of the server."""
_NO_FIELD = "the handshake revisions have no field in which a server declares an extension"
UNDEFINED: Mapping[tuple[str, str, str], str] = {
    (row, *pair): _NO_FIELD for row in ("tasks", "skills") for pair in PAIRS if HANDSHAKE in pair
}
"""Why there is nothing to check, by row and eras of client and server."""
CELLS = tuple((row, *pair) for row in CHECKS for pair in PAIRS if (row, *pair) not in UNDEFINED)


async def problem(target: StdioServerParameters, era: str, check: Check) -> str:
    """Run one check with a process of its own; empty if it passed."""
    try:
        with anyio.fail_after(3 * WAIT_S):
            async with connected(target, era) as seen:
                await check(seen)
    except Exception as error:
        return _said(error)
    return ""


def _said(error: Exception) -> str:
    if isinstance(error, ExceptionGroup):
        return _said(cast("ExceptionGroup[Exception]", error).exceptions[0])
    return " ".join(f"{type(error).__name__}: {error}".removeprefix("AssertionError: ").split())
