"""Config: what it answers, for whom a change holds, that it takes effect, and who is asked before."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.view import SETTABLE
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.session_settings import MemoryConfigStore
from goat_mcp.state.todos import MemoryTodoStore
from tests.agents.scripted import ScriptedModel
from tests.tool_doubles import fake
from tests.web.http.local_server import page, serving

pytestmark = pytest.mark.anyio

CTX = ToolContext(call_id="c", session_key="stdio")
MODERN = replace(CTX, session_key="principal:alice:client", principal="alice")


def now() -> ToolContext:
    """For calls that wait: the time a call may take counts from when its context was made."""
    return replace(CTX, started_at_s=time.monotonic())


def gateway(folder: Path, *, approval: Approval = Approval.HOST, **settings: Any) -> Gateway:
    tree = Settings.model_validate({"workspace": [folder], **settings})
    return Gateway(tree, approval=approval, state=StateDirectory(folder / "state"))


async def config(served: Gateway, setting: str, value: Any = None, *, ctx: ToolContext = CTX) -> ToolResult:
    arguments = {"setting": setting} if value is None else {"setting": setting, "value": value}
    return await served.call("Config", arguments, ctx)


async def value_of(served: Gateway, setting: str, *, ctx: ToolContext = CTX) -> Any:
    facts = (await config(served, setting, ctx=ctx)).facts
    assert facts is not None
    return facts["value"], facts["source"]


async def test_a_setting_is_read_set_and_reset(tmp_path: Path) -> None:
    served = gateway(tmp_path)

    answers = [
        await config(served, "output.max_chars"),
        await config(served, "output.max_chars", 5000),
        await config(served, "output.max_chars"),
        await config(served, "output.max_chars", "default"),
    ]

    assert [answer.text for answer in answers] == [
        "output.max_chars = 30000 (default)",
        "output.max_chars = 5000 (session), before 30000",
        "output.max_chars = 5000 (session)",
        "output.max_chars = 30000 (default), before 5000",
    ]
    assert answers[1].wire()["structuredContent"] == {
        "setting": "output.max_chars",
        "value": 5000,
        "previous": 30000,
        "source": "session",
    }


async def test_null_reads(tmp_path: Path) -> None:
    answer = await gateway(tmp_path).call("Config", {"key": "log_level", "value": None}, CTX)

    assert answer.text == "log_level = warning (default)"


async def test_cfg_001_security_keys_are_not_settable_and_nobody_is_asked(tmp_path: Path) -> None:
    asked: list[Form] = []

    async def ask(form: Form) -> Answer:
        asked.append(form)
        return Answer(Reply.ACCEPTED, {"decision": "allow_once"})

    served = gateway(tmp_path, approval=Approval.ELICIT)
    answer = await config(served, "permissions.allow", "Bash", ctx=replace(CTX, ask=ask))

    assert (answer.error_code, asked) == ("E_PERMISSION", [])
    assert await value_of(served, "permissions.allow") == ([], "default")


async def test_cfg_001_what_cannot_be_set_cannot_be_reset(tmp_path: Path) -> None:
    answer = await config(gateway(tmp_path, mode="acceptEdits"), "mode", "default")

    assert answer.error_code == "E_PERMISSION"


async def test_cfg_001_an_unknown_setting_is_an_error(tmp_path: Path) -> None:
    answer = await config(gateway(tmp_path), "nope.key", 1)

    assert (answer.is_error, answer.error_code) == (True, "E_SETTING")


async def test_a_change_holds_for_its_session_and_that_sessions_agents(tmp_path: Path) -> None:
    served = gateway(tmp_path, permissions={"allow": ["Config"]})  # nobody shows an agent's calls to a person
    other = replace(CTX, session_key="session:other")
    agent = replace(CTX, session_key="agent:1", rights=Rights(depth=1, client_session=CTX.session_key))

    await config(served, "output.max_chars", 5000)
    await config(served, "search.glob_limit", 7, ctx=agent)

    assert await value_of(served, "output.max_chars", ctx=other) == (30000, "default")
    assert await value_of(served, "output.max_chars", ctx=agent) == (5000, "session")
    assert await value_of(served, "search.glob_limit", ctx=agent) == (7, "session")
    assert await value_of(served, "search.glob_limit") == (100, "default")


async def test_a_new_process_starts_clean_but_for_clients_without_connections(tmp_path: Path) -> None:
    first = gateway(tmp_path)
    for ctx in (CTX, MODERN):
        await config(first, "output.max_chars", 5000, ctx=ctx)
        await config(first, "search.glob_limit", 7, ctx=ctx)
        await config(first, "search.glob_limit", "default", ctx=ctx)

    later = gateway(tmp_path)

    assert await value_of(later, "output.max_chars") == (30000, "default")
    assert await value_of(later, "output.max_chars", ctx=MODERN) == (5000, "session")
    assert await value_of(later, "search.glob_limit", ctx=MODERN) == (100, "default")
    assert await value_of(later, "output.max_chars", ctx=replace(MODERN, session_key="principal:bob:client")) == (
        30000,
        "default",
    )


async def test_an_embedder_may_bring_stores_of_its_own_and_nothing_is_on_disk(tmp_path: Path) -> None:
    tree, store = Settings.model_validate({"workspace": [tmp_path]}), MemoryConfigStore()
    stores: Any = {"config_store": store, "todo_store": MemoryTodoStore()}
    served = Gateway(tree, approval=Approval.HOST, state=StateDirectory(tmp_path / "state"), **stores)

    await config(served, "output.max_chars", 5000, ctx=MODERN)
    await config(served, "search.glob_limit", 7, ctx=MODERN)
    await config(served, "search.glob_limit", "default", ctx=MODERN)
    await served.call("TodoWrite", {"todos": []}, MODERN)

    assert await value_of(served, "output.max_chars", ctx=MODERN) == (5000, "session")
    assert await store.read(MODERN.session_key) == {"output.max_chars": 5000}
    assert not (tmp_path / "state" / "state.db").exists()


async def test_what_another_version_stored_is_left_out_with_a_line_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = gateway(tmp_path)
    await config(first, "output.max_chars", 5000, ctx=MODERN)
    await first.database.write(
        lambda connection: connection.execute("UPDATE session_settings SET key = 'mode', value = '\"bypass\"'")
    )

    later = gateway(tmp_path)

    assert await value_of(later, "mode", ctx=MODERN) == ("default", "default")
    assert "a stored setting of a session is left out" in capsys.readouterr().err


async def test_calls_go_on_where_the_database_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = gateway(tmp_path)
    (tmp_path / "state" / "state.db").mkdir(parents=True)

    read = await config(served, "log_level", ctx=MODERN)
    change = await config(served, "output.max_chars", 5000, ctx=MODERN)

    assert read.text == "log_level = warning (default)"
    assert change.error_code == "E_IO" and "state.db" in change.text
    assert "settings of a session could not be read" in capsys.readouterr().err


async def test_a_set_is_asked_about_where_nobody_else_asks_and_a_read_is_not(tmp_path: Path) -> None:
    served = gateway(tmp_path, approval=Approval.ELICIT)

    read = await config(served, "output.max_chars")
    change = await config(served, "output.max_chars", 5000)
    reset = await config(served, "output.max_chars", "default")

    assert not read.is_error
    assert (change.error_code, reset.error_code) == ("E_APPROVAL_PENDING", "E_APPROVAL_PENDING")
    assert "approval (mode default)" in change.text


async def test_a_session_that_plans_reads_and_does_not_set(tmp_path: Path) -> None:
    served = gateway(tmp_path, mode="plan")

    read = await config(served, "output.max_chars")
    change = await config(served, "output.max_chars", 5000)

    assert (read.is_error, change.error_code) == (False, "E_PLAN_MODE")


Effect = Callable[[Gateway, Path], Awaitable[None]]


async def output_max_chars(served: Gateway, folder: Path) -> None:
    served.registry.replace_source("upstream:x", [fake("long", answer=text_result("x" * 20_000))])

    async def lengths() -> list[int]:
        bash = await served.call("Bash", {"command": "printf 'y%.0s' {1..20000}"}, now())
        return [len((await served.call("long", {}, CTX)).text), len(bash.text)]

    assert await lengths() == [20_000, 20_000]
    await config(served, "output.max_chars", 5000)
    assert all(length < 5_500 for length in await lengths())


async def bash_auto_background_after_s(served: Gateway, folder: Path) -> None:
    await config(served, "bash.auto_background_after_s", 0.2)

    result = await served.call("Bash", {"command": "sleep 30"}, CTX)

    assert result.text.startswith("Task started: ")
    await served.services.tasks().stop_all()


async def bash_compress_output(served: Gateway, folder: Path) -> None:
    (folder / "listing").mkdir()
    for number in range(20):
        (folder / "listing" / f"file-{number}.txt").touch()
    listing = {"command": "ls -la listing"}
    # Its own time: that of CTX began when the tests were collected.
    before = await served.call("Bash", listing, replace(CTX, started_at_s=time.monotonic()))
    await config(served, "tools.bash.compress_output", True)

    result = await served.call("Bash", listing, replace(CTX, started_at_s=time.monotonic()))

    assert "file-0.txt" in before.text.split()
    assert before.text.split("\n")[0].startswith("total ")
    assert result.text.split("\n")[0] == "file-0.txt"


async def edit_allow_fuzz(served: Gateway, folder: Path) -> None:
    (folder / "a.py").write_text("if a:\n    b()   \n")
    await served.call("Read", {"file_path": f"{folder}/a.py"}, CTX)
    edit = {"file_path": f"{folder}/a.py", "old_string": "if a:\n    b()\n", "new_string": "c()\n"}

    await config(served, "tools.edit.allow_fuzz_on_edits", False)
    exact = await served.call("Edit", edit, CTX)
    await config(served, "edit.allow_fuzz", True)
    fuzzy = await served.call("Edit", edit, CTX)

    assert (exact.error_code, fuzzy.is_error) == ("E_NO_MATCH", False)


async def search_glob_limit(served: Gateway, folder: Path) -> None:
    for name in "abc":
        (folder / f"{name}.txt").write_text("")
    await config(served, "search.glob_limit", 2)

    usual = await served.call("Glob", {"pattern": "*.txt"}, CTX)
    asked = await served.call("Glob", {"pattern": "*.txt", "limit": 100}, CTX)

    assert "[2 of 3 shown, newest first]" in usual.text
    assert len(asked.text.splitlines()) == 3


async def search_grep_head_limit(served: Gateway, folder: Path) -> None:
    (folder / "a.txt").write_text("goat\n" * 5)
    grep = {"pattern": "goat", "output_mode": "content"}
    await config(served, "search.grep_head_limit", 2)

    usual = await served.call("Grep", grep, CTX)
    asked = await served.call("Grep", {**grep, "head_limit": 0}, CTX)

    assert usual.text.count("goat") == 2
    assert asked.text.count("goat") == 5


async def log_level(served: Gateway, folder: Path) -> None:
    other = replace(CTX, session_key="session:other")
    await config(served, "log_level", "debug")

    with contextlib.redirect_stderr(io.StringIO()) as log:
        await served.call("Glob", {"pattern": "*"}, CTX)
        await served.call("Grep", {"pattern": "x"}, other)

    assert [json.loads(line)["tool"] for line in log.getvalue().splitlines()] == ["Glob"]


async def agent_model(served: Gateway, folder: Path) -> None:
    model = ScriptedModel()
    task = {"description": "look", "prompt": "Look."}
    await config(served, "agent.model", "tiny")

    await served.call("Agent", task, replace(CTX, host_model=model))
    await served.call("Agent", {**task, "model": "opus"}, replace(CTX, host_model=model))

    assert [request.model for request in model.requests] == ["tiny", "opus"]


async def web_cache_s(served: Gateway, folder: Path) -> None:
    async with serving({"/": page("one")}) as server:
        entry = f"127.0.0.1:{server.port}"
        fetching = gateway(folder, web={"allow_hosts": entry})
        await fetching.call("WebFetch", {"url": server.url()}, now())
        kept = await fetching.call("WebFetch", {"url": server.url()}, now())
        await config(fetching, "web.cache_s", 0)
        fresh = await fetching.call("WebFetch", {"url": server.url()}, now())

    assert [result.facts and result.facts["from_cache"] for result in (kept, fresh)] == [True, False]


EFFECTS: dict[str, Effect] = {
    "agent.model": agent_model,
    "output.max_chars": output_max_chars,
    "bash.auto_background_after_s": bash_auto_background_after_s,
    "bash.compress_output": bash_compress_output,
    "edit.allow_fuzz": edit_allow_fuzz,
    "search.glob_limit": search_glob_limit,
    "search.grep_head_limit": search_grep_head_limit,
    "web.cache_s": web_cache_s,
    "log_level": log_level,
}


SHOWN_ELSEWHERE = {"web.search.max_results": ("test_web_search.py", "test_a_session_may_ask_for_fewer_results")}
"""By tests beside what they need; they set the key with Config too."""


@pytest.mark.parametrize(("file", "name"), SHOWN_ELSEWHERE.values(), ids=SHOWN_ELSEWHERE)
def test_the_test_that_shows_an_effect_elsewhere_is_there(file: str, name: str) -> None:
    assert f"\nasync def {name}(" in (Path(__file__).parent / file).read_text()


@pytest.mark.parametrize("key", sorted(SETTABLE - set(SHOWN_ELSEWHERE)))
async def test_a_set_takes_effect(tmp_path: Path, key: str) -> None:
    """A key without a test here is not one a session may set."""
    folder = tmp_path / "ws"
    folder.mkdir()

    await EFFECTS[key](gateway(folder), folder)
