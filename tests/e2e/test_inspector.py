"""The Inspector's command line before goat-mcp with upstreams behind it: what it lists, calls, reads and gets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.node_side import Node
from tests.e2e.wire import text_of
from tests.server.apps.test_apps_of_upstreams import CSP, UPSTREAM
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]
Target = Launch | HttpGoat
LISTED_WITHIN_S = 60


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    folder = tmp_path_factory.mktemp("inspector")
    weather = {"command": sys.executable, "args": [str(UPSTREAM)]}
    file = upstream_file(folder / "upstreams.json", shelf=server("shelf.py", "a"), weather=weather)
    return Launch(folder, fill(folder / "workspace"), (*UNASKED, "--upstreams", str(file)))


@pytest.fixture(scope="module")
def over_http(launch: Launch) -> Generator[HttpGoat]:
    with http_goat(launch) as goat:
        yield goat


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, launch: Launch) -> Target:
    return request.getfixturevalue("over_http") if request.param == "http" else launch


def until(look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """A first list does not wait for upstreams that are slow to start (LIF-2)."""
    ends_at_s = time.monotonic() + LISTED_WITHIN_S
    while not holds(found := look()):
        assert time.monotonic() < ends_at_s, found
        time.sleep(0.1)
    return found


# ERA-1
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_lists_calls_reads_and_gets_what_upstreams_have(node: Node, target: Target, era: str) -> None:
    def ask(method: str, *options: str) -> Any:
        return node.inspect(target, "--protocol-era", era, "--method", method, *options)

    def names(method: str, member: str, key: str) -> set[str]:
        return {one[key] for one in ask(method)[member]}

    tools = until(lambda: names("tools/list", "tools", "name"), lambda found: "mcp__shelf__give" in found)
    uris = until(lambda: names("resources/list", "resources", "uri"), lambda found: "a://one" in found)
    templates = names("resources/templates/list", "resourceTemplates", "uriTemplate")
    prompts = until(lambda: names("prompts/list", "prompts", "name"), lambda found: "mcp__shelf__greet" in found)
    called = ask("tools/call", "--tool-name", "mcp__weather__weather")
    read = ask("resources/read", "--uri", "a://one")
    got = ask("prompts/get", "--prompt-name", "mcp__shelf__greet", "--prompt-args", "who=goat")

    assert {"Read", "mcp__shelf__touch", "mcp__weather__refresh"} <= tools
    assert {"a://one", "a://two", "ui://weather/card"} <= uris
    assert "a://page/{number}" in templates
    assert "mcp__shelf__all_kinds" in {name[:21] for name in prompts}
    assert text_of(called) == "sunny"
    assert [(one["uri"], one["text"]) for one in read["contents"]] == [("a://one", "first")]
    assert [one["content"]["text"] for one in got["messages"]] == ["Hello goat"]


# ERA-7
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_finds_the_app_of_an_upstreams_tool_with_its_policy(node: Node, target: Target, era: str) -> None:
    def app_of(tool: str) -> Any:
        asked = ("--method", "tools/call", "--tool-name", tool, "--app-info", "--advertise-apps")
        return node.inspect(target, "--protocol-era", era, *asked)

    def listed() -> set[str]:
        answer = node.inspect(target, "--protocol-era", era, "--method", "tools/list")
        return {one["name"] for one in answer["tools"]}

    until(listed, lambda found: "mcp__weather__weather" in found)
    of_upstream, of_ours = app_of("mcp__weather__weather"), app_of("show_approvals")

    assert of_upstream["resourceUri"] == "ui://weather/card"
    assert of_upstream["csp"] == CSP
    assert of_ours["resourceUri"] == "ui://goat/approvals"
