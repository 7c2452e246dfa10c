"""Where handlers in JavaScript behave as those in Python do: cancelled questions to agents, log calls, foreign errors.

And what a private copy of them may import."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from tests.agents.scripted import BOUND_S, ScriptedModel, ground, says
from tests.manifests.declared import call, error_of, gateway_over
from tests.manifests.test_javascript_handlers import javascript, over

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")]

WAITS_FOR_AN_AGENT = """
const ask = async (ctx) => {
  await ctx.runtime.spawn("explorer", { name: "scout", message: "Begin." });
  return await ctx.runtime.request("scout", "And then?");
};
const pid = () => process.pid;
"""


async def test_a_cancelled_call_that_waits_for_an_agent_leaves_its_process_alone(tmp_path: Path) -> None:
    javascript(tmp_path / "tools", WAITS_FOR_AN_AGENT, {"name": "ask", "timeoutMs": 1500}, "pid")
    never = anyio.Event()
    model = ScriptedModel([never, says("Late.")])

    async with ground(tmp_path, model, manifests=[str(tmp_path / "tools")]) as on:
        with anyio.fail_after(BOUND_S):
            before = await on.call("probe__pid", {})
            waited = await on.call("probe__ask", {})
            after = await on.call("probe__pid", {})
        never.set()

    assert error_of(waited)["code"] == "E_TIMEOUT"
    assert after.text == before.text


LOG_CALLS = {
    "a trace": "ctx.logger.trace('where')",
    "a value that cannot be shown": "ctx.logger.info('%s', { toString() { throw new Error('mute') } })",
}


@pytest.mark.parametrize("body", LOG_CALLS.values(), ids=LOG_CALLS)
async def test_a_log_call_fails_no_call(tmp_path: Path, body: str) -> None:
    gateway = over(tmp_path, f"const chat = (ctx) => {{ {body}; return 'said'; }};", "chat")

    async with gateway.running():
        assert (await call(gateway, "probe__chat")).text == "said"


async def test_an_error_of_another_realm_has_its_own_words_and_no_stack(tmp_path: Path) -> None:
    source = """
import { runInNewContext } from "node:vm";
const far = () => runInNewContext("throw new RangeError('far')");
"""
    gateway = over(tmp_path, source, "far")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__far"))

    assert (error["name"], error["message"]) == ("RangeError", "far")


LOADS = {
    "import": "const load = async (name) => (await import(name)).default;",
    "require": """
import { createRequire } from "node:module";
const load = createRequire(import.meta.url);
""",
    "a file's path": """
const load = async (name) => (await import(`../../../../node_modules/${name}/index.js`)).default;
""",
}
PACKAGES = """
const loaded = async (name) => {
  try { return await load(name); } catch (problem) { return problem.code.replace("ERR_", ""); }
};
const both = async () => [await loaded("planted"), await loaded("own")];
"""


def package(folder: Path, name: str) -> None:
    place = folder / "node_modules" / name
    place.mkdir(parents=True)
    (place / "index.js").write_text(f"module.exports = '{name}';\n")


@pytest.mark.parametrize("how", LOADS)
async def test_a_private_copy_imports_nothing_from_the_folders_above_it(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "workspace" / "tools"
    package(javascript(folder, LOADS[how] + PACKAGES, "both"), "own")
    package(tmp_path, "planted")  # Node.js looks there for what the copy in `state` imports
    gateway = gateway_over(tmp_path, folder)

    async with gateway.running():
        result = await call(gateway, "probe__both")

    own = "MODULE_NOT_FOUND" if how == "a file's path" else "own"
    assert result.structured == {"result": ["MODULE_NOT_FOUND", own]}
