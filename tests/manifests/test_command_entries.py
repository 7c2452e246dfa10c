"""A tool whose entry is a program in any language: JSON on standard input, JSON on standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.manifests.deep_checks import program_problems
from goat_mcp.manifests.folder import ManifestFolders
from tests.manifests.declared import call, error_of, gateway_over, tool, write

pytestmark = pytest.mark.anyio


def over(tmp_path: Path, script: str, **spec: Any) -> Gateway:
    document = tool("probe", {"command": [sys.executable, "probe.py", "{export}"]}, "run", "other", **spec)
    write(tmp_path / "tools", document, probe_py=f"import json, os, sys, time\n{script}")
    return gateway_over(tmp_path, tmp_path / "tools")


async def test_the_program_gets_the_input_and_its_value_is_the_answer(tmp_path: Path) -> None:
    gateway = over(tmp_path, "print(json.dumps({'got': json.load(sys.stdin), 'export': sys.argv[1]}))")

    async with gateway.running():
        result = await call(gateway, "probe__other", city="Pärís")

    assert result.structured == {"got": {"city": "Pärís"}, "export": "other"}


async def test_it_knows_whose_call_it_is_and_runs_beside_its_manifest(tmp_path: Path) -> None:
    names = ("GOAT_EXPORT", "GOAT_TOOL", "GOAT_WORKDIR", "GOAT_CALL_ID")
    gateway = over(tmp_path, f"print(json.dumps([*(os.environ[name] for name in {names}), os.getcwd()]))")

    async with gateway.running():
        result = await call(gateway, "probe__run")

    place = str(tmp_path / "tools" / "probe")
    workspace = str(tmp_path / "workspace")
    assert result.structured == {"result": ["run", "probe__run", workspace, "call-1", place]}


async def test_a_script_beside_the_manifest_is_named_as_in_a_shell(tmp_path: Path) -> None:
    document = tool("probe", {"command": ["./probe.sh"]}, "run")
    write(tmp_path / "tools", document, probe_sh="#!/bin/sh\ncat >/dev/null\necho '[1]'\n")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        assert (await call(gateway, "probe__run")).text == "[1]"


async def test_its_variables_may_be_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "here")
    entry = {"command": [sys.executable, "probe.py"], "env": {"WHERE": "${env:PLACE}", "N": 3}}
    source = "import json, os\nprint(json.dumps([os.environ['WHERE'], os.environ['N']]))"
    write(tmp_path / "tools", tool("probe", entry, "run"), probe_py=source)
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        assert (await call(gateway, "probe__run")).text == '["here", "3"]'


FAILURES = {
    "an exit code": ("print('no such city', file=sys.stderr); sys.exit(4)", "E_TOOL", "exit code 4): no such city"),
    "a signal": ("os.kill(os.getpid(), 9)", "E_TOOL", "signal 9"),
    "nothing": ("pass", "E_TOOL", "printed nothing"),
    "no json": ("print('sunny')", "E_TOOL", "printed no JSON value on standard output, but 'sunny'"),
    "half a surrogate pair": (r"print('\"\\ud800\"')", "E_TOOL", "half of a surrogate pair"),
    "what lies too deep": ("print('[' * 300 + ']' * 300)", "E_TOOL", "more than 128 lists and objects"),
    "what lies deeper": (
        "print('[' * 90_000 + ']' * 90_000)",
        "E_TOOL",
        "printed JSON that cannot be used: its lists and objects lie too deep in one another",
    ),
    "an exit code and an answer": (
        "print('x' * 900 + '{\"error\": \"no such city\"}'); sys.exit(7)",
        "E_TOOL",
        "exit code 7): it said nothing on standard error, and last on standard output: xxx",
    ),
    "a member twice": (
        'print(\'{"a": 1, "a": 2}\')',
        "E_TOOL",
        "printed JSON that cannot be used: an object names 'a' twice",
    ),
    "two values": ("print('1\\n2')", "E_TOOL", "printed no JSON"),
    "too much": ("print(json.dumps('x' * (17 * 1024 ** 2)))", "E_TOOL", "printed more than"),
    "a flood of complaints": ("[print('x' * 1000, file=sys.stderr) for _ in range(10_000)]; sys.exit(1)", "E_TOOL", ""),
    "no end": ("time.sleep(600)", "E_TIMEOUT", "did not answer within"),
    "an end that leaves a child with its pipes": ("os.fork() or time.sleep(600)", "E_TOOL", "printed nothing"),
}


@pytest.mark.parametrize(("script", "code", "says"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_program_that_fails_is_an_error_and_the_next_call_works(
    tmp_path: Path, script: str, code: str, says: str
) -> None:
    gateway = over(tmp_path, f"if sys.argv[1] == 'run':\n    {script}\nelse:\n    print(1)", timeoutMs=4000)

    async with gateway.running():
        error = error_of(await call(gateway, "probe__run"))
        after = await call(gateway, "probe__other")

    assert error["code"] == code
    assert says in error["message"]
    assert after.text == "1"


async def test_a_program_that_is_done_has_answered_whatever_it_leaves_on_its_pipes(tmp_path: Path) -> None:
    # R-PROC-6
    gateway = over(tmp_path, "print(1, flush=True)\nos.fork() or (time.sleep(1.5), print(2))")

    async with gateway.running():
        assert (await call(gateway, "probe__run")).text == "1"


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    write(tmp_path / "tools", tool("probe", {"command": ["no-such-program-here"]}, "run"))
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__run"))

    assert error["code"] == "E_TOOL"
    assert error["message"] == "no-such-program-here cannot be started: No such file or directory"


FIRST_LINES = {
    "windows": (
        "#!/bin/sh\r\necho 1\r\n",
        "the lines of probe.sh end as on Windows, so the program that its first line names is not found",
        "save it with LF line ends: sed -i 's/\\r$//' {file}",
    ),
    "none": (
        "echo 1\n",
        "probe.sh does not say what runs it",
        "write #!/bin/sh, or what it is written in, as its first line",
    ),
    "gone": (
        "#!/bin/gone\n",
        "the first line of probe.sh names /bin/gone, which cannot be run here",
        "fix it, or install it",
    ),
}


@pytest.mark.parametrize("kind", FIRST_LINES)
async def test_a_script_that_the_system_does_not_run_is_told_why(tmp_path: Path, kind: str) -> None:
    text, what, remedy = FIRST_LINES[kind]
    place = write(tmp_path / "tools", tool("probe", {"command": ["./probe.sh"]}, "run"))
    (place / "probe.sh").write_bytes(text.encode())
    (place / "probe.sh").chmod(0o755)
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    (document,) = ManifestFolders([tmp_path / "tools"]).read().tools

    async with gateway.running():
        result = await call(gateway, "probe__run")
        problems = await program_problems(
            document, guard=gateway.guard, environment=gateway.environment, compiled=tmp_path / "compiled"
        )

    remedy = remedy.replace("{file}", str(place / "probe.sh"))
    assert [(problem.line, problem.what, problem.remedy) for problem in problems] == [(7, what, remedy)]
    assert error_of(result)["message"] == f"./probe.sh cannot be started: {what}"
    assert remedy in result.text
