"""`goat-mcp doctor`: what is wrong, what to do about it, and an exit status by what must be repaired first (OBS-2)."""

from __future__ import annotations

import json
import stat
import sys
import threading
import time
from collections.abc import Generator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desktop import CLAUDE_DESKTOP
from tests.cli.terminal_runs import run_on_terminal
from tests.cli.test_call import run
from tests.upstreams.fleet import server

pytestmark = pytest.mark.e2e


@pytest.fixture
def refusing() -> Generator[str]:
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    served = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_address[1]}/mcp"
    served.shutdown()
    served.server_close()


def examined(folder: Path, entries: Mapping[str, Any], *words: str) -> tuple[int, list[dict[str, Any]]]:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    file.chmod(0o600)
    done = run("doctor", *words, "--json", "--upstreams", str(file), "--workspace", str(folder), cwd=folder)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert document["exit_status"] == done.returncode
    return done.returncode, [one for one in document["findings"] if one["severity"] != "info"]


def test_nothing_is_found_where_nothing_is_wrong_and_no_tool_is_called(tmp_path: Path) -> None:
    log = tmp_path / "calls.log"

    code, findings = examined(tmp_path, {"good": server("raw.py", "plain", log)})

    assert (code, findings) == (0, [])
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["start", "list"]


@pytest.mark.parametrize(
    ("entry", "code", "finding"),
    [
        ({"command": 3}, 1, "config_error"),
        ({"command": "no-such-command"}, 4, "command_not_found"),
        ({"url": "http://127.0.0.1:9/mcp"}, 4, "unreachable"),
        (server("troubled.py", "no-list"), 5, "list_failed"),
        (server("troubled.py", "large"), 6, "schema_too_large"),
        (server("raw.py", "inputs"), 0, "input_schema_unused"),
        (server("raw.py", "endless"), 0, "list_truncated"),
        (server("raw.py", tpyo=1), 0, "unknown_key"),
        ({"command": "x", "disabled": True}, 0, "disabled"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_trouble_has_its_finding_its_remedy_and_its_exit_status(
    tmp_path: Path, entry: Any, code: int, finding: str
) -> None:
    got, findings = examined(tmp_path, {"one": entry, "good": server("raw.py")})

    assert (got, [found["id"] for found in findings]) == (code, [finding])
    assert findings[0]["about"] == "one" and findings[0]["detail"] and findings[0]["fix"]
    assert findings[0]["severity"] == ("error" if code else "warning")


def test_a_refused_token_is_status_3_and_is_not_shown(tmp_path: Path, refusing: str) -> None:
    secret = "canary-0f1e2d3c4b5a"

    code, findings = examined(tmp_path, {"one": {"url": refusing, "headers": {"Authorization": f"Bearer {secret}"}}})

    assert (code, [found["id"] for found in findings]) == (3, ["auth_required"])
    assert secret not in json.dumps(findings)


def test_a_hook_that_guards_nothing_is_told_with_the_nearest_names(tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    hook = {"hooks": [{"type": "command", "command": ["/bin/true"]}]}
    matchers = ["Bsh|Edit", "mcp__good__.*", "mcp__good__nothing", "mcp__bad__nothing"]
    config.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": one, **hook} for one in matchers]}}))

    entries = {"good": server("raw.py"), "bad": {"command": "no-such-command"}}
    _, findings = examined(tmp_path, entries, "--config", str(config))

    told = [(found["about"], found["detail"], found["exit_code"]) for found in findings if found["id"] == "silent_hook"]
    assert [(about, detail.partition(";")[0], code) for about, detail, code in told] == [
        ("hooks.PreToolUse.0.hooks.0", "its matcher names Bsh, which is no tool", 0),
        ("hooks.PreToolUse.2.hooks.0", "its matcher names mcp__good__nothing, which is no tool", 0),
    ]
    assert told[0][1].endswith("did you mean Bash?")


def test_only_the_named_servers_are_examined_and_a_misspelt_one_is_wrong_usage(tmp_path: Path) -> None:
    entries = {"good": server("raw.py"), "gone": {"command": "no-such-command"}}

    assert examined(tmp_path, entries, "good") == (0, [])
    wrong = run("doctor", "god", "--upstreams", str(tmp_path / "upstreams.json"), cwd=tmp_path)

    assert wrong.returncode == 1 and "did you mean good?" in wrong.stderr


def test_files_that_others_may_read_or_change_are_told(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    entry = {"command": sys.executable, "args": ["-c", ""], "env": {"API_TOKEN": "s3cr3t-value-9876"}, "disabled": True}
    file.write_text(json.dumps({"mcpServers": {"one": entry}}))
    file.chmod(0o666)
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "left.json").write_text("{}")
    (state / "left.json").chmod(0o644)

    done = run("doctor", "--json", "--upstreams", str(file), "--workspace", str(tmp_path), cwd=tmp_path)

    findings = json.loads(done.stdout)["findings"]
    found = {(finding["id"], finding["about"]) for finding in findings if finding["severity"] != "info"}
    assert found == {
        ("disabled", "one"),
        ("config_writable", str(file)),
        ("secret_readable", str(file)),
        ("state_file_open", str(state)),
    }
    assert "left.json (mode 0644)" in done.stdout
    assert "s3cr3t-value-9876" not in done.stdout


HANDLERS = """
import json

def rise(ctx, input):
    return json.dumps("06:30")

handlers = {"rise": rise}
"""
MANIFEST = {
    "apiVersion": "goondan.ai/v1",
    "kind": "Tool",
    "metadata": {"name": "sun"},
    "spec": {
        "entry": "./handlers.py",
        "exports": [{"name": "rise", "description": "Say it.", "sideEffect": "none", "parameters": {"type": "object"}}],
    },
}


def test_what_python_compiles_for_a_declared_tool_is_no_finding(tmp_path: Path) -> None:
    folder = tmp_path / "manifests" / "sun"
    folder.mkdir(parents=True)
    (folder / "tool.yaml").write_text(json.dumps(MANIFEST))
    (folder / "handlers.py").write_text(HANDLERS)
    flags = ("--manifests", str(folder.parent), "--workspace", str(tmp_path))

    assert run("manifest", "check", str(folder.parent), cwd=tmp_path).returncode == 0
    assert run("call", *flags, "--allowed-tool", "sun__rise", "sun__rise", cwd=tmp_path).stdout == '"06:30"\n'
    done = run("doctor", "--json", *flags, cwd=tmp_path)

    assert list((tmp_path / "state" / "compiled_handlers").rglob("*.pyc"))
    assert [one for one in json.loads(done.stdout)["findings"] if one["severity"] != "info"] == []
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_manifest_and_a_skill_that_cannot_be_used_are_errors(tmp_path: Path) -> None:
    good, bad, skill = (tmp_path / name for name in ("manifests/sun", "manifests/moon", "skills/empty"))
    for folder in (good, bad, skill):
        folder.mkdir(parents=True)
    (good / "tool.yaml").write_text(json.dumps(MANIFEST))
    (good / "handlers.py").write_text(HANDLERS)
    (bad / "tool.yaml").write_text(json.dumps({**MANIFEST, "spec": {"exports": "none"}}))
    (skill / "SKILL.md").write_text("---\nname: [\n---\n")
    flags = ("--manifests", str(good.parent), "--set", f"skills={json.dumps([str(skill.parent)])}")

    code, findings = examined(tmp_path, {}, *flags)

    assert code == 1
    assert {(found["id"], found["about"], found["severity"]) for found in findings} == {
        ("broken_manifest", "tool.yaml", "error"),
        ("broken_skill", "empty", "error"),
    }
    assert all(str(bad) in found["detail"] or str(skill) in found["detail"] for found in findings)
    assert all(found["fix"] for found in findings)


def test_many_files_that_others_can_read_are_one_finding(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    for number in range(9):
        (tmp_path / "state" / f"{number}.json").touch(mode=0o644)

    _, (finding,) = examined(tmp_path, {})

    assert finding["id"] == "state_file_open" and "and 4 more" in finding["detail"]


def test_an_earlier_failure_is_shown_and_so_is_what_was_checked(tmp_path: Path) -> None:
    marker = tmp_path / "broken"
    marker.touch()
    script = tmp_path / "sometimes.py"
    good = server("raw.py")
    script.write_text(
        f"import os, sys\nif os.path.exists({str(marker)!r}):\n    sys.exit('no {{}}'.format('luck'))\n"
        f"os.execv({good['command']!r}, {[good['command'], *good['args']]!r})\n"
    )
    entries = {"one": {"command": sys.executable, "args": [str(script)]}}
    assert examined(tmp_path, entries)[0] == 4
    marker.unlink()
    flags = ("--upstreams", str(tmp_path / "upstreams.json"), "--workspace", str(tmp_path))

    done = run("doctor", *flags, cwd=tmp_path)
    document = json.loads(run("doctor", "--json", *flags, cwd=tmp_path).stdout)

    assert "one: ok (6 tools, 2025-11-25); failed " in done.stdout
    assert "ago (start_failed): the process exited with status 1" in done.stdout
    (upstream,) = document["upstreams"]
    assert upstream["last_run"]["worked_at_s"] > upstream["last_run"]["failed_at_s"]
    assert document["checked"] == [
        *("settings", "0 host files", "1 file of servers", "1 server"),
        *("hooks", "manifests", "sandbox", "state directory"),
    ]


def test_one_that_hangs_is_named_and_delays_the_rest_by_seconds_only(tmp_path: Path) -> None:
    entries = {"hangs": {"command": "/bin/sleep", "args": ["60"]}, "good": server("raw.py")}

    began_s = time.monotonic()
    code, findings = examined(tmp_path, entries)
    took_s = time.monotonic() - began_s

    assert (code, [(found["id"], found["about"]) for found in findings]) == (0, [("starting", "hangs")])
    assert took_s < 20


def test_on_a_terminal_it_is_shown_who_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"hangs": {"command": "/bin/sleep", "args": ["60"]}}}))

    code, shown = run_on_terminal("doctor", "--upstreams", str(file), "--workspace", str(tmp_path), cwd=tmp_path)

    assert code == 0
    assert "starting hangs (" in shown
    assert "hangs: starting (starting)" in shown


def test_how_long_a_server_has_failed_is_said(tmp_path: Path) -> None:
    examined(tmp_path, {"gone": {"command": "no-such-command"}})

    done = run("doctor", "--upstreams", "upstreams.json", "--workspace", ".", cwd=tmp_path)

    assert done.stdout.startswith("gone: command_not_found (waiting), for ")


def test_a_host_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text("{")

    _, (finding,) = examined(tmp_path, {})

    assert (finding["id"], finding["about"]) == ("host_file", str(tmp_path / ".cursor" / "mcp.json"))


def test_a_broken_upstreams_file_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text("{")

    done = run("doctor", "--json", "--upstreams", str(file), "--workspace", str(tmp_path), cwd=tmp_path)

    (finding,) = [one for one in json.loads(done.stdout)["findings"] if one["severity"] != "info"]
    assert (done.returncode, finding["id"]) == (1, "settings")
    assert "line 1, column 2" in finding["detail"]


def test_people_get_a_line_for_each_upstream_and_the_findings_below(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"good": server("raw.py"), "gone": {"command": "no-such-command"}}}))

    done = run("doctor", "--upstreams", str(file), "--workspace", str(tmp_path), cwd=tmp_path)

    assert "good: ok (6 tools, 2025-11-25)" in done.stdout
    assert "error: command_not_found: gone: command 'no-such-command' is not on PATH" in done.stdout
    assert done.stdout.endswith(
        "\nchecked: settings, 0 host files, 1 file of servers, 2 servers, hooks, manifests, sandbox, state directory: "
        "1 to fix, 0 to know\n"
    )
    assert (done.returncode, done.stderr) == (4, "")


def test_the_commands_of_a_remedy_name_the_server(tmp_path: Path) -> None:
    _, findings = examined(tmp_path, {"my one": {"command": "false"}})

    assert "`goat-mcp logs 'my one'`" in findings[0]["fix"]


@pytest.mark.linux_only("the file of Claude Desktop is elsewhere")
def test_an_entry_of_goat_in_a_hosts_file_that_cannot_work_is_found(tmp_path: Path) -> None:
    file = tmp_path / CLAUDE_DESKTOP
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"goat": {"command": "/gone/goat-mcp", "args": ["serve"]}}}))

    code, findings = examined(tmp_path, {})

    assert code == 1
    assert [(finding["id"], finding["severity"]) for finding in findings] == [
        ("host_entry_command", "error"),
        ("host_entry_workspace", "warning"),
    ]
    assert findings[1]["fix"] == "Name one: goat-mcp install claude-desktop --workspace DIR"


def test_one_that_hangs_is_named_after_some_seconds_and_the_others_are_examined(tmp_path: Path) -> None:
    began_s = time.monotonic()
    code, findings = examined(tmp_path, {"hangs": server("raw.py", "hang"), "good": server("raw.py")})

    assert [(found["id"], found["about"], found["severity"]) for found in findings] == [
        ("starting", "hangs", "warning")
    ]
    assert code == 0
    assert time.monotonic() - began_s < 20, "it was waited for as long as it may take to start"
