"""The bridge: upstreams of both eras that ask, over stdio and HTTP, behind clients of both eras that others wrote."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.upstream_launch import ERAS, UPSTREAMS, child, four
from tests.e2e.visits import FORMS, MODEL, NOBODY, PYTHON, Kind, SeekNode, call, every_kind, visit
from tests.e2e.wire import text_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

Target = Launch | HttpGoat
Reach = Callable[[str], Target]
ALL = ["elicitation", "roots", "sampling"]
A_WORD = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "goat"}}
every_transport = pytest.mark.parametrize("transport", ["stdio", "http"])
every_python = pytest.mark.parametrize("kind", PYTHON, ids=str)
every_era = pytest.mark.parametrize("era", ERAS)
every_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)


@pytest.fixture(scope="module")
def launch_of_four(tmp_path_factory: pytest.TempPathFactory) -> Generator[Launch]:
    """goat-mcp before four upstreams, each era over each transport, and one whose folder is the same for all."""
    folder = tmp_path_factory.mktemp("asking")
    with four("asking", allow=ALL) as entries:
        entries["fixed_stdio"] = child("asking", ERAS["old"], allow=ALL, cwd=str(folder))
        file = upstream_file(folder / "upstreams.json", **entries)
        yield Launch(folder, fill(folder / "workspace"), (*UNASKED, "--upstreams", str(file)))


@pytest.fixture(scope="module")
def http_of_four(launch_of_four: Launch) -> Generator[HttpGoat]:
    with http_goat(launch_of_four) as goat:
        yield goat


@pytest.fixture
def reach(request: pytest.FixtureRequest, launch_of_four: Launch) -> Reach:
    return lambda transport: request.getfixturevalue("http_of_four") if transport == "http" else launch_of_four


def accepts(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@every_transport
@every_kind
async def test_forms_and_the_clients_model_are_asked_whoever_stands_behind(
    reach: Reach, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    """ERA-4, the whole matrix: each upstream era and transport behind this client and transport."""
    tools = ("book", "think", "all", "twice")
    steps = [call(f"mcp__{upstream}__{tool}") for upstream in UPSTREAMS for tool in tools]
    forms = [accepts(day=f"day {number}") for number in range(3 * len(UPSTREAMS))]
    words = [A_WORD] * (3 * len(UPSTREAMS))

    seen = await visit(kind, reach(transport), steps, {FORMS: forms, MODEL: words}, node=seek_node)

    expected: list[str] = []
    for number, upstream in enumerate(UPSTREAMS):
        days = [f"accept {{'day': 'day {3 * number + one}'}}" for one in range(3)]
        state = {tool: f", state state of {tool}" if upstream.startswith("new") else "" for tool in tools}
        expected += [
            f"{days[0]}{state['book']}",
            f"goat{state['think']}",
            f"{days[1]}, goat{state['all']}",
            f"{days[2]}, goat",
        ]
    assert seen.texts == expected
    assert [form["message"] for form in seen.forms] == [f"{one}: Which day?" for one in UPSTREAMS for _ in range(3)]
    assert all(form["requestedSchema"]["properties"]["day"]["default"] == "Monday" for form in seen.forms)
    assert [prompt["systemPrompt"] for prompt in seen.prompts] == ["Be short."] * len(words)


@every_transport
@every_python
async def test_upstreams_hear_of_the_workspace_as_the_roots_of_a_client_that_has_some(
    reach: Reach, launch_of_four: Launch, transport: str, kind: Kind
) -> None:
    """ERA-4 for roots, ERA-6: a workspace that was named wins over what the client would say."""

    async def tells(ctx: Any) -> types.ListRootsResult:
        raise AssertionError("nobody needs to ask")

    async with connected(reach(transport), kind.era, list_roots_callback=tells) as client:
        texts = [
            text_of((await client.call_tool(f"mcp__{upstream}__where", {})).model_dump(by_alias=True))
            for upstream in UPSTREAMS
        ]

    assert [text.split(",")[0] for text in texts] == [launch_of_four.workspace.resolve().as_uri()] * 4


@every_transport
@every_kind
async def test_a_client_that_cannot_answer_is_told_what_is_missing_and_the_server_hears_at_once(
    reach: Reach, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    """ERA-3, ERA-6: undeclared requests get an error, -32021 goes to stateless clients, a tool error to others."""
    steps = [call(f"mcp__{upstream}__book") for upstream in UPSTREAMS]

    seen = await visit(kind, reach(transport), steps, NOBODY, node=seek_node)

    assert seen.texts[:2] == ["refused: -32601 goat-mcp declared no capability for elicitation/create"] * 2
    if kind.is_modern:
        assert [result["error"]["code"] for result in seen.results[2:]] == [-32021] * 2
    else:
        assert all("[E_CAPABILITY]" in text and "elicitation.form" in text for text in seen.texts[2:])


@every_transport
@every_python
@pytest.mark.parametrize(
    ("tool", "method", "needed"),
    [
        ("book", "elicitation/create", "elicitation.form"),
        ("pay", "elicitation/create", "elicitation.url"),
        ("think", "sampling/createMessage", "sampling"),
        ("use", "sampling/createMessage", "sampling.tools"),
        ("where", "roots/list", "roots"),
    ],
)
async def test_each_kind_of_question_names_what_the_client_lacks(
    reach: Reach, seek_node: SeekNode, transport: str, kind: Kind, tool: str, method: str, needed: str
) -> None:
    """ERA-6, all four pairs of eras: a handshake upstream hears at once that it may not ask, and says what it likes; a
    call of a stateless one ends in -32021 for a stateless client, and in a tool error for another."""
    steps = [call(f"mcp__{upstream}__{tool}") for upstream in UPSTREAMS]

    seen = await visit(kind, reach(transport), steps, NOBODY, node=seek_node)

    assert seen.texts[:2] == [f"refused: -32601 goat-mcp declared no capability for {method}"] * 2
    assert all(needed in text for text in seen.texts[2:])
    if kind.is_modern:
        assert [result["error"]["code"] for result in seen.results[2:]] == [-32021] * 2
    else:
        assert all(
            result["isError"] and "[E_CAPABILITY]" in text
            for result, text in zip(seen.results[2:], seen.texts[2:], strict=True)
        )


@every_transport
@every_python
async def test_a_model_without_tools_is_not_asked_to_use_any(reach: Reach, transport: str, kind: Kind) -> None:
    """ERA-6: a part of what the client can do is not enough."""

    async def thinks(context: Any, params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(A_WORD)

    said: list[str] = []
    async with connected(reach(transport), kind.era, sampling_callback=thinks) as client:
        for upstream in UPSTREAMS:
            try:
                result = await client.call_tool(f"mcp__{upstream}__use", {})
                said.append(text_of(result.model_dump(by_alias=True)))
            except MCPError as refused:
                said.append(f"{refused.error.code} {refused.error.data}")

    assert said[:2] == ["refused: -32601 goat-mcp declared no capability for sampling/createMessage"] * 2
    if kind.is_modern:
        assert said[2:] == ["-32021 {'requiredCapabilities': {'sampling': {'tools': {}}}}"] * 2
    else:
        assert all("[E_CAPABILITY]" in text and "sampling.tools" in text for text in said[2:])


@every_transport
@every_python
async def test_a_page_to_open_reaches_the_person_in_every_pair_of_eras(
    reach: Reach, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    """ERA-4: elicitation by URL."""
    steps = [call(f"mcp__{upstream}__pay") for upstream in UPSTREAMS]

    seen = await visit(kind, reach(transport), steps, {FORMS: [{"action": "accept"}] * 4}, node=seek_node)

    assert [text.split(",")[0] for text in seen.texts] == ["accept None"] * 4
    assert [(form["mode"], form["url"]) for form in seen.forms] == [("url", "https://pay.example/1")] * 4


@every_transport
@every_python
async def test_an_error_that_wants_a_page_opened_is_relayed_or_becomes_the_question(
    tmp_path: Path, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    """ERA-6: -32042 as it is for a client of 2025-11-25, a URL input and a second try for a stateless one."""
    file = upstream_file(tmp_path / "upstreams.json", up=child("asking", ERAS["old"]))
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--upstreams", str(file)))
    answers = {FORMS: [{"action": "accept"}]}

    if transport == "http":
        with http_goat(launch) as goat:
            seen = await visit(kind, goat, [call("mcp__up__locked")], answers, node=seek_node)
    else:
        seen = await visit(kind, launch, [call("mcp__up__locked")], answers, node=seek_node)

    if kind.is_modern:
        assert seen.texts == ["unlocked"]
        assert [form["url"] for form in seen.forms] == ["https://unlock.example/"]
    else:
        assert seen.results[0]["error"]["code"] == -32042


# ERA-3
async def test_what_the_entry_does_not_allow_is_not_asked(tmp_path: Path, seek_node: SeekNode) -> None:
    """R-UP-8: sampling is off until the user's word; elicitation can be switched off."""
    entries = {name: child("asking", era) for name, era in ERAS.items()}
    entries["shut"] = child("asking", ERAS["old"], allow=[])
    file = upstream_file(tmp_path / "upstreams.json", **entries)
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--upstreams", str(file)))
    answers = {FORMS: [accepts(day="x")] * 3, MODEL: [A_WORD] * 3}
    steps = [call("mcp__old__think"), call("mcp__new__think"), call("mcp__shut__book"), call("mcp__shut__where")]

    seen = await visit(PYTHON[0], launch, steps, answers, node=seek_node)

    assert seen.texts[0] == "refused: -32601 goat-mcp declared no capability for sampling/createMessage"
    assert "asks for sampling, which its entry does not allow" in seen.texts[1]
    assert seen.texts[2] == "refused: -32601 goat-mcp declared no capability for elicitation/create"
    assert seen.texts[3] == "refused: -32601 goat-mcp declared no capability for roots/list"
    assert seen.asked == []


@every_transport
@every_python
@every_upstream
async def test_log_messages_reach_the_client_that_caused_them_at_the_level_it_wants(
    reach: Reach, transport: str, kind: Kind, upstream: str
) -> None:
    """FLW-4."""
    logged: list[tuple[str, str | None, Any]] = []

    async def takes(params: types.LoggingMessageNotificationParams) -> None:
        logged.append((params.level, params.logger, params.data))

    meta: Any = {"io.modelcontextprotocol/logLevel": "info"} if kind.is_modern else None
    async with connected(reach(transport), kind.era, logging_callback=takes) as client:
        await client.call_tool(f"mcp__{upstream}__noisy", {}, meta=meta)

    assert logged == [("info", f"{upstream}/engine", "info!"), ("error", f"{upstream}/engine", "error!")]


@every_transport
async def test_a_log_message_of_no_call_reaches_the_clients_of_the_connection(reach: Reach, transport: str) -> None:
    """FLW-4: a handshake upstream that says something when the call is over."""
    logged: list[Any] = []
    came = anyio.Event()

    async def takes(params: types.LoggingMessageNotificationParams) -> None:
        logged.append(params.data)
        came.set()

    async with connected(reach(transport), "legacy", logging_callback=takes) as client:
        await client.call_tool("mcp__old_stdio__later", {})
        with anyio.fail_after(60):
            await came.wait()

    assert logged == ["late!"]


@every_upstream
async def test_two_clients_of_one_server_are_each_asked_their_own(http_of_four: HttpGoat, upstream: str) -> None:
    """WSP-1: an upstream that asks has one connection for each session of a client."""
    asked: dict[str, int] = {}
    texts: dict[str, list[str]] = {}

    async def one(name: str) -> None:
        async def fills_in(ctx: Any, params: Any) -> types.ElicitResult:
            asked[name] = asked.get(name, 0) + 1
            await anyio.sleep(0.05)
            return types.ElicitResult(action="accept", content={"day": name})

        who = types.Implementation(name=name, version="1")
        async with connected(http_of_four, "legacy", client_info=who, elicitation_callback=fills_in) as client:
            for _ in range(4):
                result = await client.call_tool(f"mcp__{upstream}__book", {})
                texts.setdefault(name, []).append(text_of(result.model_dump(by_alias=True)))

    async with anyio.create_task_group() as group:
        for name in ("first", "second", "third"):
            group.start_soon(one, name)

    assert asked == {"first": 4, "second": 4, "third": 4}
    assert all(f"'day': '{name}'" in text for name, said in texts.items() for text in said)


@every_transport
@every_python
@every_upstream
async def test_a_question_of_one_of_two_calls_of_a_client_is_answered_to_it(
    reach: Reach, transport: str, kind: Kind, upstream: str
) -> None:
    """WSP-1: whatever else is in flight, and ends first."""
    texts: dict[str, str] = {}

    async def fills_in(ctx: Any, params: Any) -> types.ElicitResult:
        await anyio.sleep(0.8)  # the nap is over by then
        return types.ElicitResult(action="accept", content={"day": "x"})

    async with connected(reach(transport), kind.era, elicitation_callback=fills_in) as client:

        async def one(tool: str) -> None:
            result = await client.call_tool(f"mcp__{upstream}__{tool}", {})
            texts[tool] = text_of(result.model_dump(by_alias=True))

        async with anyio.create_task_group() as group:
            group.start_soon(one, "book")
            await anyio.sleep(0.1)
            group.start_soon(one, "nap")

    assert texts["nap"] == "slept"
    assert texts["book"].startswith("accept {'day': 'x'}")


@every_era
async def test_clients_of_two_projects_have_an_upstream_each_that_works_in_theirs(tmp_path: Path, era: str) -> None:
    """WSP-1, WSP-2: two clients, two projects, one configuration."""
    entry = child("asking", ERAS[era], cwd="${workspace}")
    entry["env"]["FOLDER"] = "${workspace}/src"
    file = upstream_file(tmp_path / "upstreams.json", up=entry)
    projects = [fill(tmp_path / name).resolve() for name in ("one", "two")]
    home = fill(tmp_path / "workspace").resolve()
    launch = Launch(tmp_path, home, (*UNASKED, "--upstreams", str(file)), names_workspace=False)
    said: list[list[str]] = []

    with http_goat(launch) as goat:
        for project in (*projects, projects[0], None):

            async def tells(ctx: Any, project: Path | None = project) -> types.ListRootsResult:
                assert project is not None
                return types.ListRootsResult(roots=[types.Root.model_validate({"uri": project.as_uri()})])

            roots: dict[str, Any] = {} if project is None else {"list_roots_callback": tells}
            async with connected(goat, "legacy", **roots) as client:
                result = await client.call_tool("mcp__up__folder", {})
                said.append(text_of(result.model_dump(by_alias=True)).split(" "))

    folders = [(folder, source) for folder, source, _ in said]
    worked_in = [*projects, projects[0], home]
    assert folders == [(str(folder), str(folder / "src")) for folder in worked_in]
    pids = [pid for _, _, pid in said]
    assert pids[0] == pids[2]
    assert len(set(pids)) == 3


@pytest.mark.parametrize("client_era", ERAS.values())
@every_era
async def test_an_entry_without_a_folder_works_in_that_of_the_client_over_http_too(
    tmp_path: Path, era: str, client_era: str
) -> None:
    """WSP-2: clients that name no folder of this machine share the process where goat-mcp was started, and so do those
    of the stateless era, which are not asked with each call."""
    file = upstream_file(tmp_path / "upstreams.json", up=child("asking", ERAS[era]))
    projects = [fill(tmp_path / name).resolve() for name in ("one", "two")]
    home = fill(tmp_path / "workspace").resolve()
    launch = Launch(tmp_path, home, (*UNASKED, "--upstreams", str(file)), names_workspace=False)
    elsewhere = tmp_path / "on another machine"
    said: list[list[str]] = []

    with http_goat(launch) as goat:
        for roots in ([*projects], [projects[1]], [projects[0]], [elsewhere], [elsewhere, projects[1]], []):

            async def tells(ctx: Any, roots: list[Path] = roots) -> types.ListRootsResult:
                return types.ListRootsResult(
                    roots=[types.Root.model_validate({"uri": root.as_uri()}) for root in roots]
                )

            async with connected(goat, client_era, list_roots_callback=tells) as client:
                texts = [
                    text_of((await client.call_tool(f"mcp__up__{tool}", {})).model_dump(by_alias=True))
                    for tool in ("folder", "where")
                ]
                said.append([texts[0].split(" ")[0], texts[1].partition(",")[0]])

    def uris(*roots: Path) -> str:
        return " ".join(root.as_uri() for root in roots)

    asked = [uris(*projects), uris(projects[1]), uris(projects[0]), uris(elsewhere), uris(elsewhere, projects[1]), ""]
    folders = [projects[0], projects[1], projects[0], home, projects[1], home]
    if client_era == ERAS["new"]:
        folders = [home] * len(asked)
    assert said == [[str(folder), roots] for folder, roots in zip(folders, asked, strict=True)]


@every_transport
@pytest.mark.parametrize("upstream", ["fixed_stdio", "old_http"])
async def test_an_upstream_hears_that_its_clients_roots_have_changed_and_is_told_the_new_ones(
    launch_of_four: Launch, tmp_path: Path, transport: str, upstream: str
) -> None:
    """ERA-6: where no workspace was named, the client's count, as they are now."""
    projects = [fill(tmp_path / name).resolve() for name in ("one", "two")]
    current = [projects[0]]

    async def tells(ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": current[0].as_uri()})])

    async def said(client: Any, tool: str) -> str:
        return text_of((await client.call_tool(f"mcp__{upstream}__{tool}", {})).model_dump(by_alias=True))

    launch = replace(launch_of_four, workspace=fill(tmp_path / "workspace"), names_workspace=False)
    async with AsyncExitStack() as stack:
        target = stack.enter_context(http_goat(launch)) if transport == "http" else launch
        client = await stack.enter_async_context(connected(target, "legacy", list_roots_callback=tells))
        before = await said(client, "where")
        current[0] = projects[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.send_roots_list_changed()  # pyright: ignore[reportDeprecated]  # of the older era
        moved = await said(client, "moved")
        after = await said(client, "where")

    assert [before, moved, after] == [projects[0].as_uri(), projects[1].as_uri(), projects[1].as_uri()]


async def test_an_upstream_that_needs_a_workspace_does_not_start_without_one(
    tmp_path: Path, seek_node: SeekNode
) -> None:
    """WSP-2: unknown is an error, never `/`."""
    up, other = child("asking", ERAS["old"], cwd="${workspace}"), child("asking", ERAS["old"])
    file = upstream_file(tmp_path / "upstreams.json", up=up, other=other)
    launch = Launch(tmp_path, Path("/"), (*UNASKED, "--upstreams", str(file)), names_workspace=False)

    seen = await visit(PYTHON[0], launch, [call("mcp__up__folder"), call("mcp__other__folder")], NOBODY, node=seek_node)

    assert "no_workspace" in seen.texts[0] or "name one" in seen.texts[0]
    assert seen.texts[1].split(" ")[0] == str(Path.home())
