"""How words on a command line become a call, and how its end becomes an exit status."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from goat_mcp.cli.call import (
    _choice,  # pyright: ignore[reportPrivateUsage]  # what a person types at its prompt
    ask_on_terminal,
)
from goat_mcp.cli.flags import json_object, key_value_pairs, typed_arguments
from goat_mcp.cli.terminal import escaped
from goat_mcp.core.elicitation import Answer, Form, Option, Question, Reply
from tests.cli.terminal_session import TerminalSession
from tests.quick_start import goat_command
from tests.upstreams.test_downloads import slow_program

SCHEMA = {"properties": {"n": {"type": "integer"}, "text": {"type": "string"}, "list": {"type": "array"}}}


def run(*words: str, cwd: Path, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(cwd),
        "GOAT_MCP_STATE_DIR": str(cwd / "state"),
        **(variables or {}),
    }
    return subprocess.run(
        goat_command(*words),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_values_are_text_unless_the_schema_wants_something_else() -> None:
    assert typed_arguments(key_value_pairs(["n=3", "text=3", "list=[1, 2]", "other=4"]), SCHEMA) == {
        "n": 3,
        "text": "3",
        "list": [1, 2],
        "other": "4",
    }


def test_a_value_may_hold_an_equals_sign() -> None:
    assert key_value_pairs(["text=a=b"]) == {"text": "a=b"}


def test_what_is_no_pair_or_no_object_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="'text' is neither a flag nor KEY=VALUE"):
        key_value_pairs(["text"])
    with pytest.raises(click.UsageError, match="not JSON"):
        json_object("{")
    with pytest.raises(click.UsageError, match="wants an object"):
        json_object("[]")


def test_what_a_server_prints_cannot_steer_the_terminal() -> None:
    assert escaped("a\x1b[2Jb\u202ec\td\n") == "a\\x1b[2Jb\\x202ec\td\n"


@pytest.mark.e2e
def test_a_call_prints_its_result_and_ends_well(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text("needle\n")

    done = run("call", "Grep", "pattern=needle", "--workspace", str(folder), "--json", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["content"][0]["text"] == str(folder / "a.txt")
    assert done.stderr == ""


@pytest.mark.e2e
def test_a_tool_error_is_status_5_and_wrong_usage_is_status_1(tmp_path: Path) -> None:
    failed = run("call", "Read", "file_path=/etc/passwd", "--workspace", str(tmp_path), cwd=tmp_path)
    unknown = run("call", "Raed", "--workspace", str(tmp_path), cwd=tmp_path)
    usage = run("call", "Read", "--nonsense", "--json", cwd=tmp_path)

    assert (failed.returncode, unknown.returncode, usage.returncode) == (5, 5, 1)
    assert "[E_PATH_OUTSIDE]" in failed.stdout
    assert "Did you mean Read?" in unknown.stdout
    assert json.loads(usage.stderr)["error"]["code"] == "E_USAGE"


@pytest.mark.e2e
def test_a_background_task_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    words = (
        "call",
        "Bash",
        "command=sleep 0.3; echo finished",
        "run_in_background=true",
        "--mode",
        "bypassPermissions",
    )

    done = run(*words, "--workspace", str(folder), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout


@pytest.mark.e2e
def test_a_background_task_is_waited_for_where_the_catalog_cannot_show_it(tmp_path: Path) -> None:
    words = ("call", "Bash", "command=sleep 0.3; echo finished", "run_in_background=true", "--preset", "core")

    done = run(*words, "--allowed-tool", "Bash", "--workspace", str(tmp_path), cwd=tmp_path)

    assert (done.returncode, "finished" in done.stdout) == (0, True), done.stdout


@pytest.mark.e2e
def test_a_background_task_that_fails_is_status_5(tmp_path: Path) -> None:
    words = ("call", "Bash", "command=exit 4", "run_in_background=true", "--mode", "bypassPermissions")

    done = run(*words, "--workspace", str(tmp_path), cwd=tmp_path)

    assert done.returncode == 5
    assert "exit code 4" in done.stdout


@pytest.mark.e2e
def test_arguments_that_look_like_flags_are_arguments(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text("Needle\n")

    done = run("call", "Grep", "pattern=needle", "-i=true", "--workspace", str(folder), cwd=tmp_path)
    wrong = run("call", "Grep", "needle", "--workspace", str(folder), cwd=tmp_path)

    assert (done.returncode, done.stdout.strip()) == (0, str(folder / "a.txt"))
    assert (wrong.returncode, "'needle' is neither a flag nor KEY=VALUE" in wrong.stderr) == (1, True)


@pytest.mark.e2e
def test_nobody_at_the_terminal_means_no(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()

    done = run("call", "Bash", "command=touch made", "--workspace", str(folder), cwd=tmp_path)

    assert done.returncode == 5
    named = re.search(r"allow it with `goat-mcp (rules allow .*)`, or all calls of Bash with", done.stdout)
    assert named is not None, done.stdout
    assert not (folder / "made").exists()

    # The command does what it says.
    assert run(*shlex.split(named[1]), cwd=tmp_path).returncode == 0
    assert run("call", "Bash", "command=touch made", "--workspace", str(folder), cwd=tmp_path).returncode == 0
    assert (folder / "made").exists()


@pytest.mark.e2e
def test_other_settings_than_the_users_own_file_get_no_command_that_changes_that_file(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("mode: dontAsk\n")
    (tmp_path / "ws").mkdir()

    selection = ("--workspace", "ws", "--config", "other.yaml")
    done = run("call", "Write", "file_path=@a", "content=a", *selection, cwd=tmp_path)

    assert "permissions.allow: [Write] (Write(//" in done.stdout
    assert "goat-mcp rules" not in done.stdout


@pytest.mark.e2e
@pytest.mark.parametrize(
    "words",
    [
        ("Write", "content=new new"),
        ("Edit", "old_string=old", "new_string=new", "replace_all=true"),
    ],
    ids=lambda words: words[0],
)
def test_a_person_may_change_a_file_that_no_call_has_read(words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "ws" / "a.txt"
    file.parent.mkdir()
    file.write_text("old old")
    tool, *arguments = words

    selection = ("--workspace", str(file.parent), "--mode", "acceptEdits")
    done = run("call", tool, f"file_path={file}", *arguments, *selection, cwd=tmp_path)

    assert done.returncode == 0, done.stdout
    assert file.read_text() == "new new"


@pytest.mark.e2e
def test_a_terminal_shows_what_a_call_waits_for(tmp_path: Path) -> None:
    (tmp_path / "upstreams.json").write_text(json.dumps({"mcpServers": {"npm": slow_program(tmp_path, "npx")}}))
    wait = "while [ ! -e go ]; do sleep 0.02; done; echo finished"
    variables = {"HOME": str(tmp_path), "GOAT_MCP_STATE_DIR": str(tmp_path / "state")}

    def on_a_terminal(*words: str) -> TerminalSession:
        command = goat_command("call", *words, "--mode", "bypassPermissions", "--workspace", str(tmp_path))
        return TerminalSession(command, cwd=tmp_path, variables=variables)

    with on_a_terminal("Bash", f"command={wait}") as running:
        running.wait_for("Bash started (")
        (tmp_path / "go").touch()
        assert running.end() == 0
    with on_a_terminal("mcp__npm__ping", "--upstreams", str(tmp_path / "upstreams.json")) as starting:
        starting.wait_for("waiting for the server of mcp__npm__ping to start (")
        (tmp_path / "downloaded").touch()
        assert starting.end() == 0

    assert "finished" in running.shown and "started" not in running.shown.splitlines()[-1]
    assert "pong" in starting.shown


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("1", "once"),
        ("y", "once"),
        ("Allow o", "once"),
        ("ALWAYS", "always"),
        ("no", "deny"),
        ("d", "deny"),
        ("a", None),
    ],
)
def test_a_choice_is_taken_by_number_by_its_beginning_and_by_yes_and_no(typed: str, chosen: str | None) -> None:
    options = (Option("once", "Allow once"), Option("always", "Allow always"), Option("deny", "Deny"))

    assert _choice(typed, Question("decision", "Decision", options=options)) == chosen


def test_a_choice_that_has_the_word_yes_is_meant_by_it() -> None:
    options = (Option("allow it", "Allow it"), Option("Yes, later"))

    assert _choice("yes", Question("when", "When?", options=options)) == "Yes, later"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("typed", "values"),
    [
        (["1"], {"decision": "allow_once"}),
        (["deny", "use uv"], {"decision": "deny", "reason": "use uv"}),
        (["deny", ""], {"decision": "deny"}),
    ],
)
async def test_a_question_that_belongs_to_another_answer_is_not_asked(
    typed: list[str], values: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (Option("allow_once", "Allow once"), Option("deny", "Deny"))
    form = Form(
        "Allow?",
        (
            Question("decision", "Decision", options=options, required=True),
            Question("reason", "Reason, if you deny", only_with="deny"),
        ),
    )
    lines = [f"{line}\n".encode() for line in typed]

    async def typed_line() -> bytes:
        return lines.pop(0)

    monkeypatch.setattr("goat_mcp.cli.call.typed_line", typed_line)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    assert await ask_on_terminal(form) == Answer(Reply.ACCEPTED, values)
    assert lines == []
