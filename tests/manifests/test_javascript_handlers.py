"""Handlers in JavaScript and TypeScript, in a process of Node.js: what they get, what they give back, how they end."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes.environment import LoginPath
from tests.agents.scripted import BOUND_S, ScriptedModel, ground, says
from tests.manifests.declared import call, error_of, eventually, gateway_over, tool, write
from tests.manifests.test_handler_processes import runs

NODE = shutil.which("node")
pytestmark = [pytest.mark.anyio, pytest.mark.skipif(NODE is None, reason="node is not installed")]

ECHO = "const echo = async (ctx, input) => input;\n"


def javascript(
    folder: Path, source: str, *exports: str | Mapping[str, Any], file: str = "index.js", **spec: Any
) -> Path:
    """A resource `probe` of handlers in that file, `echo` among them."""
    names = ["echo", *(export if isinstance(export, str) else export["name"] for export in exports)]
    place = write(folder, tool("probe", f"./{file}", "echo", *exports, **spec))
    end = (
        f"module.exports.handlers = {{{', '.join(names)}}};"
        if file.endswith(".cjs")
        else (f"export const handlers = {{{', '.join(names)}}};")
    )
    (place / file).write_text(f"{source}\n{ECHO}{end}\n")
    return place


def over(tmp_path: Path, source: str, *exports: str | Mapping[str, Any], **spec: Any) -> Gateway:
    javascript(tmp_path / "tools", source, *exports, **spec)
    return gateway_over(tmp_path, tmp_path / "tools")


@pytest.mark.parametrize("file", ["index.js", "tools/bash/index.mjs", "index.cjs"])
async def test_a_handler_gets_its_input_and_gives_back_json(tmp_path: Path, file: str) -> None:
    (tmp_path / "tools" / "probe" / Path(file).parent).mkdir(parents=True)
    gateway = over(tmp_path, "", file=file)

    async with gateway.running():
        result = await call(gateway, "probe__echo", city="Zürich", n=[1, None])

    assert result.structured == {"city": "Zürich", "n": [1, None]}
    assert json.loads(result.text) == result.structured


async def test_the_context_has_what_that_of_python_handlers_has(tmp_path: Path) -> None:
    source = """
const show = (ctx, input) => {
  ctx.logger.info("asked for %s", input.city, { n: 1 });
  ctx.logger.error("grave");
  const { workdir, toolCallId, tool_call_id, message, config } = ctx;
  return { workdir, toolCallId, tool_call_id, message, config, aborted: ctx.signal.aborted };
};
"""
    folder = tmp_path / "tools"
    javascript(folder, source, "show")
    gateway = gateway_over(tmp_path, folder, tools={"probe": {"unit": "C"}})
    logged: list[Mapping[str, Any]] = []
    gateway.services.telemetry.debug = lambda event, **fields: logged.append({"event": event, **fields})  # type: ignore[method-assign]  # a recorder
    gateway.services.telemetry.warning = lambda event, **fields: logged.append({"event": event, **fields})  # type: ignore[method-assign]  # a recorder

    async with gateway.running():
        result = await call(gateway, "probe__show", city="Paris")

    assert result.structured == {
        "workdir": str(tmp_path / "workspace"),
        "toolCallId": "call-1",
        "tool_call_id": "call-1",
        "message": None,
        "config": {"unit": "C"},
        "aborted": False,
    }
    lines = [(line["message"], line["level_of_handler"]) for line in logged if line["event"] == "a handler says"]
    assert lines == [("asked for Paris { n: 1 }", "info"), ("grave", "error")]


async def test_an_exception_is_an_error_with_its_own_name_words_and_suggestion(tmp_path: Path) -> None:
    source = """
class CityUnknown extends Error {
  name = "CityUnknown";
  suggestion = "Ask for a city of the list.";
  helpUrl = "https://example.org/cities";
}
const fail = async (ctx, input) => { throw new CityUnknown(`no such city: ${input.city}`); };
"""
    gateway = over(tmp_path, source, "fail")

    async with gateway.running():
        result = await call(gateway, "probe__fail", city="Atlantis")

    assert error_of(result) == {
        "code": "E_TOOL",
        "name": "CityUnknown",
        "message": "no such city: Atlantis",
        "suggestion": "Ask for a city of the list.",
        "helpUrl": "https://example.org/cities",
    }


async def test_a_long_message_is_cut_at_the_limit_of_the_manifest(tmp_path: Path) -> None:
    gateway = over(tmp_path, "const fail = () => { throw new Error('x'.repeat(50000)); };", "fail", errorMessageLimit=5)

    async with gateway.running():
        error = error_of(await call(gateway, "probe__fail"))

    assert len(error["message"]) == 100  # as the check says, 5 counts as 100


BREAKS = {
    "throws a text": ("throw 'no city'", "Error"),
    "throws nothing": ("throw undefined", "Error"),
    "rejects": ("return Promise.reject(new RangeError('far'))", "RangeError"),
    "exits": ("process.exit(3)", "Error"),
    "ends its process": ("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})", "ProcessEnded"),
    "throws where nobody waits": (
        "setImmediate(() => { throw new Error('x') }); await new Promise(() => {})",
        "ProcessEnded",
    ),
    "recurses": ("return wild(ctx, input)", "RangeError"),
    "eats memory": (
        "const all = []; for (;;) all.push(Buffer.alloc(1024 ** 3))",
        "",
    ),
    "gives back a function": ("return wild", "NotJson"),
    "gives back a big integer": ("return { n: 1n }", "NotJson"),
    "gives back itself": ("const a = []; a.push(a); return a", "NotJson"),
    "gives back half a surrogate pair": ("return { a: ['\\ud800'] }", "NotJson"),
    "gives back what lies too deep": ("let a = 1; for (let n = 0; n < 129; n += 1) a = [a]; return a", "NotJson"),
    "gives back what lies deeper": ("let a = 1; for (let n = 0; n < 2000; n += 1) a = { a }; return a", "NotJson"),
    "throws what cannot be told": (
        "class Mute extends Error { get message() { throw 1 } get name() { return 'Mute' } } throw new Mute()",
        "Mute",
    ),
    "gives back too much": ("return 'x'.repeat(20 * 1024 ** 2)", "AnswerTooLarge"),
    "writes where its answers go": (
        "const { writeSync } = await import('node:fs'); writeSync(4, 'junk\\n'); await new Promise(() => {})",
        "AnswerPipeBroken",
    ),
}


@pytest.mark.parametrize(("body", "name"), BREAKS.values(), ids=BREAKS.keys())
async def test_a_handler_that_breaks_is_an_error_and_the_next_call_works(tmp_path: Path, body: str, name: str) -> None:
    gateway = over(tmp_path, f"async function wild(ctx, input) {{ {body} }}", "wild")

    async with gateway.running():
        broken = await call(gateway, "probe__wild")
        after = await call(gateway, "probe__echo", n=1)

    error = error_of(broken)
    assert error["code"] == "E_TOOL"
    assert not name or error["name"] == name
    assert "    at " not in broken.text
    assert after.structured == {"n": 1}


async def test_a_process_that_ends_by_an_error_says_which(tmp_path: Path) -> None:
    body = "setImmediate(() => { throw new RangeError('far out') }); await new Promise(() => {})"
    gateway = over(tmp_path, f"async function wild(ctx, input) {{ {body} }}", "wild")

    async with gateway.running():
        message = error_of(await call(gateway, "probe__wild"))["message"]

    assert message == "the process of probe ended during the call (exit code 1): RangeError: far out"


async def test_a_rejection_that_nobody_waits_for_ends_nothing(tmp_path: Path) -> None:
    gateway = over(
        tmp_path, "const stray = () => { Promise.reject(new Error('stray')); return process.pid; };", "stray"
    )

    async with gateway.running():
        first = await call(gateway, "probe__stray")
        second = await call(gateway, "probe__stray")

    assert first.text == second.text


@pytest.mark.parametrize("body", ["await new Promise(() => {})", "for (;;) {}"], ids=["waiting", "spinning"])
async def test_a_handler_that_hangs_is_ended_and_the_next_call_works(tmp_path: Path, body: str) -> None:
    gateway = over(tmp_path, f"async function hang() {{ {body} }}", {"name": "hang", "timeoutMs": 700})

    async with gateway.running():
        await call(gateway, "probe__echo")
        hung = await call(gateway, "probe__hang")
        after = await call(gateway, "probe__echo", n=1)

    assert error_of(hung)["code"] == "E_TIMEOUT"
    assert after.structured == {"n": 1}


async def test_what_a_handler_starts_ends_with_it(tmp_path: Path) -> None:
    source = """
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
function start(ctx, input) {
  const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  writeFileSync(input.file, String(child.pid));
  for (;;) {}
}
"""
    gateway = over(tmp_path, source, {"name": "start", "timeoutMs": 3000})

    async with gateway.running():
        await call(gateway, "probe__echo")
        await call(gateway, "probe__start", file=str(tmp_path / "pid"))

    pid = int((tmp_path / "pid").read_text())
    await eventually(lambda: not runs(pid))


async def test_a_cancelled_call_aborts_its_signal(tmp_path: Path) -> None:
    source = """
import { writeFileSync } from "node:fs";
function wait(ctx, input) {
  writeFileSync(input.begun, "");
  return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => {
    writeFileSync(input.ended, "");
    reject(ctx.signal.reason);
  }));
}
"""
    gateway = over(tmp_path, source, "wait")
    begun, ended = tmp_path / "begun", tmp_path / "ended"

    async with gateway.running(), anyio.create_task_group() as group:
        group.start_soon(lambda: call(gateway, "probe__wait", begun=str(begun), ended=str(ended)))
        await eventually(begun.exists)
        group.cancel_scope.cancel()

    assert ended.exists()


async def test_what_a_handler_prints_is_no_answer(tmp_path: Path) -> None:
    source = """
import { execFileSync } from "node:child_process";
const forged = '{"id": 1, "value": "forged"}';
function noisy() {
  console.log(forged);
  process.stdout.write(`${forged}\\n`);
  execFileSync("echo", [forged], { stdio: "inherit" });
  return "real";
}
"""
    gateway = over(tmp_path, source, "noisy")

    async with gateway.running():
        assert (await call(gateway, "probe__noisy")).text == "real"


async def test_calls_of_one_resource_run_side_by_side_in_one_process(tmp_path: Path) -> None:
    source = """
let meet;
const met = new Promise((resolve) => { meet = resolve; });
const first = async () => { await met; return "met"; };
const second = () => { meet(); };
"""
    gateway = over(tmp_path, source, "first", "second")
    results: list[str] = []

    async with gateway.running(), anyio.create_task_group() as group:

        async def first() -> None:
            results.append((await call(gateway, "probe__first")).text)

        group.start_soon(first)
        await anyio.lowlevel.checkpoint()
        results.append((await call(gateway, "probe__second")).text)

    assert sorted(results) == ["met", "null"]


BROKEN_FILES = {
    "a syntax error": ("const = 1;", "SyntaxError"),
    "no handlers": ("export const x = 1;", "ReferenceError"),
    "handlers that are a list of names": ("export const handlers = ['echo'];", "TypeError"),
    "a handler that is no function": ("export const handlers = { echo: 7 };", "TypeError"),
    "an import that fails": ("import 'no-such-module-at-all'; export const handlers = {};", "Error"),
    "an exit while it is loaded": ("process.exit(1);", "Error"),
    "a missing export": ("export const handlers = { other() {} };", "ReferenceError"),
}


@pytest.mark.parametrize(("source", "name"), BROKEN_FILES.values(), ids=BROKEN_FILES.keys())
async def test_a_file_that_cannot_be_loaded_says_so_to_the_caller(tmp_path: Path, source: str, name: str) -> None:
    place = javascript(tmp_path / "tools", "")
    (place / "index.js").write_text(source)
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__echo"))

    assert (error["code"], error["name"]) == ("E_TOOL", name)


async def test_a_handler_sees_none_of_the_servers_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "canary-4711")
    gateway = over(tmp_path, "const look = () => JSON.stringify(process.env);", "look")

    async with gateway.running():
        assert "canary-4711" not in (await call(gateway, "probe__look")).text


async def test_a_changed_file_is_used_by_the_next_call(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    javascript(folder, "const say = () => 'old';", "say")
    gateway = gateway_over(tmp_path, folder)

    async with gateway.running():
        before = await call(gateway, "probe__say")
        javascript(folder, "const say = () => 'newer';", "say")
        after = await call(gateway, "probe__say")

    assert (before.text, after.text) == ("old", "newer")


async def test_a_handler_may_leave_another_directory_behind(tmp_path: Path) -> None:
    gateway = over(
        tmp_path, "const go = () => { process.chdir('/'); };\nconst where = () => process.cwd();", "go", "where"
    )

    async with gateway.running():
        await call(gateway, "probe__go")
        where = await call(gateway, "probe__where")

    assert where.text == str(tmp_path / "tools" / "probe")


async def test_a_long_log_is_cut_and_the_call_works(tmp_path: Path) -> None:
    gateway = over(tmp_path, "const chat = (ctx) => { for (let n = 0; n < 5000; n += 1) ctx.logger.info(n); };", "chat")
    dropped: list[Mapping[str, Any]] = []
    gateway.services.telemetry.warning = lambda event, **fields: dropped.append(fields)  # type: ignore[method-assign]  # a recorder

    async with gateway.running():
        result = await call(gateway, "probe__chat")

    assert not result.is_error
    assert [fields["lines"] for fields in dropped] == [4800]


AGENTS = """
const ask = async (ctx) => {
  const agents = ctx.runtime;
  const started = await agents.spawn("explorer", { name: "scout", message: "Begin." });
  const first = await agents.request("scout", "", { correlationId: started.correlationId });
  const second = await agents.request("scout", "And then?", { timeoutMs: 20000 });
  const live = (await agents.list()).map((agent) => agent.name);
  const types = (await agents.catalog()).map((one) => one.type);
  return { first, second, live, types };
};
const fail = (ctx) => ctx.runtime.request("nobody", "?");
"""


async def test_a_handler_starts_and_asks_agents(tmp_path: Path) -> None:
    javascript(tmp_path / "tools", AGENTS, "ask", "fail")
    model = ScriptedModel([says("Started."), says("The end.")])
    async with ground(tmp_path, model, manifests=[str(tmp_path / "tools")]) as on:
        with anyio.fail_after(BOUND_S):
            asked = await on.call("probe__ask", {})
            failed = await on.call("probe__fail", {})

    assert asked.structured is not None, asked.text
    assert asked.structured["first"]["answer"] == "Started."
    assert asked.structured["second"]["answer"] == "The end."
    assert asked.structured["live"] == ["scout"]
    assert "explorer" in asked.structured["types"]
    assert error_of(failed)["code"] == "E_TOOL" and "nobody" in failed.text


TYPESCRIPT = "const say = (ctx: { workdir: string }, input: { n: number }): number => input.n * 2;"


def _node_runs_typescript() -> bool:
    done = subprocess.run(
        [NODE or "node", "-p", "process.features.typescript"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip() in ("strip", "transform")


def _nothing(path: LoginPath) -> list[str]:
    return []


def use_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a PATH whose `node` is this script; empty for one without any."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if script:
        (folder / "node").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "node").chmod(0o755)
    monkeypatch.setattr(LoginPath, "_ask_shell", _nothing)
    monkeypatch.setenv("PATH", str(folder))


async def test_typescript_runs_if_node_strips_its_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _node_runs_typescript():
        pytest.skip("this node cannot run TypeScript")
    use_node(tmp_path, monkeypatch, f'exec {NODE} "$@"')
    gateway = over(tmp_path, TYPESCRIPT, "say", file="index.ts")

    async with gateway.running():
        assert (await call(gateway, "probe__say", n=21)).text == "42"


async def test_a_node_that_cannot_run_typescript_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = "--no-experimental-strip-types " if _node_runs_typescript() else ""
    use_node(tmp_path, monkeypatch, f'exec {NODE} {flag}"$@"')
    gateway = over(tmp_path, TYPESCRIPT, "say", file="index.ts")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__say", n=21))

    assert error["code"] == "E_NOT_CONFIGURED"
    assert "cannot run TypeScript" in error["message"]
    assert "install Node.js 22.18 or newer" in error["suggestion"]


async def test_a_machine_without_node_says_so_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_node(tmp_path, monkeypatch, "")
    gateway = over(tmp_path, "")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__echo"))

    place = tmp_path / "tools" / "probe" / "index.js"
    assert error == {
        "code": "E_NOT_CONFIGURED",
        "name": error["name"],
        "message": f"{place} is run by Node.js, and there is no `node` on the PATH",
        "suggestion": "Tell the user: install Node.js 22.18 or newer, and have `node` on the PATH.",
        "helpUrl": "goat://errors/E_NOT_CONFIGURED",
    }


async def test_its_process_has_the_limits_of_python_handlers(tmp_path: Path) -> None:
    source = """
import { readFileSync } from "node:fs";
const limits = () => readFileSync("/proc/self/limits", "utf8");
"""
    gateway = over(tmp_path, source, "limits")

    async with gateway.running():
        limits = (await call(gateway, "probe__limits")).text

    rows = {line[:26].strip(): line[26:].split() for line in limits.splitlines()}
    assert rows["Max data size"][0] == str(4 * 1024**3)
    assert rows["Max core file size"][0] == "0"
