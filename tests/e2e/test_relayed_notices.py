"""What notices say beside what the protocol reads passes, in every pair of eras and over both transports (REL-5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.upstream_launch import ERAS, UPSTREAMS, four
from tests.e2e.wire import text_of
from tests.server.handlers.test_resources import subscribe

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.matrix,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

Target = Launch | HttpGoat
Reach = Callable[[str], Target]
WAIT_S = 60
PROGRESS, UPDATED = "notifications/progress", "notifications/resources/updated"
every_transport = pytest.mark.parametrize("transport", ["stdio", "http"])
every_era = pytest.mark.parametrize("era", ERAS.values())
every_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Generator[Launch]:
    folder = tmp_path_factory.mktemp("notices")
    with four("notices") as entries:
        file = upstream_file(folder / "upstreams.json", **entries)
        yield Launch(folder, fill(folder / "workspace"), (*UNASKED, "--upstreams", str(file)))


@pytest.fixture(scope="module")
def goat_over_http(launch: Launch) -> Generator[HttpGoat]:
    with http_goat(launch) as goat:
        yield goat


@pytest.fixture
def reach(request: pytest.FixtureRequest, launch: Launch) -> Reach:
    return lambda transport: request.getfixturevalue("goat_over_http") if transport == "http" else launch


class Heard:
    """The params of all notices of one method that a client gets, as they travel: its own models have no room."""

    def __init__(self, client: Client, method: str) -> None:
        self.params: list[dict[str, Any]] = []
        self.came = anyio.Event()
        dispatcher: Any = client.session._dispatcher  # pyright: ignore[reportPrivateUsage]
        passed_on = dispatcher._on_notify_intercept

        def take(name: str, params: Any) -> bool:
            if name == method:
                self.params.append(dict(params))
                self.came.set()
            return bool(passed_on is not None and passed_on(name, params))

        dispatcher._on_notify_intercept = take


async def nothing(progress: float, total: float | None, message: str | None) -> None:
    """A client that wants progress."""


# REL-5, FLW-1
@every_transport
@every_era
@every_upstream
async def test_progress_keeps_its_meta_but_for_what_only_the_protocol_may_say(
    reach: Reach, transport: str, era: str, upstream: str
) -> None:
    async with connected(reach(transport), era) as client:
        heard = Heard(client, PROGRESS)
        await client.call_tool(f"mcp__{upstream}__work", {}, progress_callback=nothing)

    reports = [(one["progress"], one.get("message"), one["_meta"]) for one in heard.params if "_meta" in one]
    assert reports == [(1.0, "step 1", {"vendor/step": 1}), (2.0, "step 2", {"vendor/step": 2})]
    assert {one["progressToken"] for one in heard.params} == {heard.params[0]["progressToken"]}


# REL-5, CHG-4
@every_transport
@every_era
@every_upstream
async def test_an_update_of_a_resource_keeps_its_meta(reach: Reach, transport: str, era: str, upstream: str) -> None:
    uri = f"note://{upstream}"
    async with connected(reach(transport), era) as client:
        heard = Heard(client, UPDATED)
        with anyio.fail_after(WAIT_S):
            while uri not in {str(one.uri) for one in (await client.list_resources()).resources}:  # noqa: ASYNC110  # far away
                await anyio.sleep(0.1)
        if era == "legacy":
            await subscribe(client, uri)
            await client.call_tool(f"mcp__{upstream}__touch", {})
            with anyio.fail_after(WAIT_S):
                await heard.came.wait()
        else:
            async with client.listen(resource_subscriptions=[uri]):
                await client.call_tool(f"mcp__{upstream}__touch", {})
                with anyio.fail_after(WAIT_S):
                    await heard.came.wait()

    metas = [{k: v for k, v in one["_meta"].items() if "subscriptionId" not in k} for one in heard.params]
    assert metas == [{"vendor/update": {"by": "somebody"}}]


# REL-5, FLW-2
@every_transport
@every_era
@pytest.mark.parametrize("upstream", UPSTREAMS[:3])
@pytest.mark.parametrize("wants_progress", [False, True])
async def test_an_upstream_hears_why_a_call_was_cancelled(
    reach: Reach, transport: str, era: str, upstream: str, wants_progress: bool
) -> None:
    """In the stateless era over HTTP a closed stream is all there is to say it with."""
    said = {"reason": "the user pressed escape", "_meta": {"vendor/key": 7}}
    async with connected(reach(transport), era) as client:
        dispatcher: Any = client.session._dispatcher  # pyright: ignore[reportPrivateUsage]
        notify = dispatcher.notify

        async def with_reason(method: str, params: Any, *args: Any, **options: Any) -> None:
            more = said if method == "notifications/cancelled" else {}
            await notify(method, {**params, **more} if more else params, *args, **options)

        dispatcher.notify = with_reason
        await client.call_tool(f"mcp__{upstream}__touch", {})  # the calls after it take the fast path
        async with anyio.create_task_group() as group:
            progress = nothing if wants_progress else None
            group.start_soon(lambda: client.call_tool(f"mcp__{upstream}__hang", {}, progress_callback=progress))
            await client.call_tool(f"mcp__{upstream}__hanging", {})
            group.cancel_scope.cancel()
        result = await client.call_tool(f"mcp__{upstream}__cancelled", {})
        heard = json.loads(text_of(result.model_dump(by_alias=True)))

    if era == ERAS["new"] and transport == "http":
        assert heard["reason"]
    else:
        assert heard == said
