"""`goat-mcp audit`, from a call to the lines that tell of it."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.audit.log import AuditSettings
from tests.calls.audit.records import lines_of, write_calls
from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_call import run

pytestmark = pytest.mark.e2e


def audit(folder: Path, *words: str) -> Any:
    return json.loads(run("audit", *words, "--json", cwd=folder).stdout)


def test_a_call_is_shown_with_its_decision_and_its_end(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("hello\n")
    assert run("call", "Read", "file_path=@/a.txt", "-w", str(tmp_path / "work"), cwd=tmp_path).returncode == 0

    (call,) = audit(tmp_path, "show")["calls"]
    headers, row = run("audit", "show", cwd=tmp_path).stdout.splitlines()

    assert (call["tool"], call["decision"], call["error_code"]) == ("Read", "allow", None)
    assert call["duration_ms"] > 0
    assert headers.split("\t")[:5] == ["call", "time", "tool", "decision", "outcome"]
    assert row.split("\t")[:5] == [call["call_id"], call["ts"], "Read", "allow", "ok"]
    assert audit(tmp_path, "show", "--call", call["call_id"])["calls"] == [call]
    assert audit(tmp_path, "show", "--tool", "Grep")["calls"] == []


@pytest.mark.parametrize(
    ("by", "rule", "shown"),
    [
        ("rule", "rule Bash(ls)", "rule Bash(ls)"),
        ("user", "mode default, allowed once by the user", "user: mode default, allowed once by the user"),
        ("", "auto-allowed", "auto-allowed"),
    ],
)
def test_who_decided_is_shown_once(tmp_path: Path, by: str, rule: str, shown: str) -> None:
    event = {"event": "decision", "call_id": "call-1", "tool": "Bash", "decision": "allow", "by": by, "rule": rule}
    (tmp_path / "audit.jsonl").write_text(json.dumps(event) + "\n")

    headers, row = run("audit", "show", "--file", "audit.jsonl", cwd=tmp_path).stdout.splitlines()

    assert dict(zip(headers.split("\t"), row.split("\t"), strict=True))["rule"] == shown


def test_without_any_call_it_says_what_to_do(tmp_path: Path) -> None:
    empty = run("audit", "show", cwd=tmp_path)

    assert (empty.returncode, empty.stdout) == (0, "")
    assert empty.stderr.startswith("Nothing is recorded yet")
    assert "goat-mcp install HOST" in empty.stderr
    assert audit(tmp_path, "show") == {"calls": []}


def test_without_any_call_an_empty_chain_changes_nothing(tmp_path: Path) -> None:
    assert run("list", "-w", str(tmp_path), cwd=tmp_path).returncode == 0

    assert run("audit", "show", cwd=tmp_path).stderr.startswith("Nothing is recorded yet")
    assert run("audit", "show", "--denied", cwd=tmp_path).stderr == "No such calls.\n"


def test_denied_calls_clients_and_misspelt_tools(tmp_path: Path) -> None:
    run("call", "Glob", "pattern=*.md", "-w", str(tmp_path), cwd=tmp_path)
    run("call", "Bash", "command=rm -r /x", "-w", str(tmp_path), cwd=tmp_path)

    (denied,) = audit(tmp_path, "show", "--denied", "--since", "1h", "--host", "goat-mcp")["calls"]
    none = run("audit", "show", "--tool", "Golb", cwd=tmp_path)

    assert (denied["tool"], denied["arguments"], denied["client"]) == (
        "Bash",
        {"command": "rm -r /x"},
        "goat-mcp call",
    )
    assert (none.returncode, none.stderr) == (0, "No such calls. Did you mean Glob?\n")
    assert run("audit", "show", "--tool", "Glob", "--denied", cwd=tmp_path).stderr == "No such calls.\n"
    assert audit(tmp_path, "show", "--host", "cursor")["calls"] == []
    assert audit(tmp_path, "show", "--server", "files")["calls"] == []


def test_at_80_columns_nothing_is_cut(tmp_path: Path) -> None:
    arguments = ["pattern=**/*.{md,txt,rst,adoc,html,htm,xml,json,yaml,yml,toml,ini}", f"path={tmp_path}"]
    run("call", "Glob", *arguments, "-w", str(tmp_path), cwd=tmp_path)

    _, text = run_on_terminal("audit", "show", cwd=tmp_path)
    head, *below = [line.rstrip() for line in text.splitlines()]

    assert max(map(len, (head, *below))) <= COLUMNS
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  Glob  ok  \d+ ms", head)
    assert "pattern: **/*.{md,txt,rst,adoc,html,htm,xml,json,yaml,yml,toml,ini}" in " ".join(map(str.strip, below))
    assert "allow by " in text and "goat-mcp call" in text


def test_a_damaged_record_is_an_error_that_names_the_chain(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "calls.db").write_text("no database at all, by any means\n" * 100)

    failed = run("audit", "show", "--json", cwd=tmp_path)

    assert (failed.returncode, failed.stdout) == (1, "")
    error = json.loads(failed.stderr)["error"]
    assert error["code"] == "E_IO" and "--file" in error["suggestion"]


@pytest.mark.parametrize("stored", ["{broken", "[1]"])
def test_arguments_that_somebody_damaged_are_an_error_too(tmp_path: Path, stored: str) -> None:
    run("call", "Glob", "pattern=*.md", "-w", str(tmp_path), cwd=tmp_path)
    with closing(sqlite3.connect(tmp_path / "state" / "calls.db")) as connection:
        connection.execute("UPDATE calls SET arguments = ?", (stored,))
        connection.commit()

    done = run("audit", "show", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "are no JSON object" in done.stderr and "goat-mcp audit show --file" in done.stderr


def test_the_last_calls_are_shown_oldest_first(tmp_path: Path) -> None:
    write_calls(tmp_path / "audit.jsonl", 30)

    calls = audit(tmp_path, "show", "--last", "3", "--file", "audit.jsonl")["calls"]

    assert [call["call_id"] for call in calls] == ["call-27", "call-28", "call-29"]


def test_an_intact_record_has_a_head_to_keep(tmp_path: Path) -> None:
    write_calls(tmp_path / "audit.jsonl", 3)

    said = run("audit", "verify", "--file", "audit.jsonl", cwd=tmp_path)
    head = said.stdout.splitlines()[-1].removeprefix("head: ")

    assert said.returncode == 0
    assert said.stdout.splitlines()[0] == "intact: 6 events in 1 file, numbers 1 to 6"
    assert run("audit", "verify", "--file", "audit.jsonl", "--expect-head", head, cwd=tmp_path).returncode == 0
    assert audit(tmp_path, "verify", "--file", "audit.jsonl")["head"] == head


def test_R_AUDIT_3_a_changed_line_is_named_and_the_exit_code_says_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    write_calls(file, 3)
    file.write_text(file.read_text().replace('"tool":"Read"', '"tool":"Grep"', 3).replace('"Grep"', '"Read"', 2))

    said = run("audit", "verify", "--file", "audit.jsonl", cwd=tmp_path)

    assert said.returncode == 1
    assert said.stdout == (
        "not intact: audit.jsonl:3 is not as it was written: audit.jsonl:4 holds the hash of another line\n"
    )
    assert audit(tmp_path, "verify", "--file", "audit.jsonl")["bad"]["place"] == "audit.jsonl:3"


def test_events_are_exported_as_lines_and_as_a_table(tmp_path: Path) -> None:
    write_calls(tmp_path / "audit.jsonl", 2)
    events = lines_of(tmp_path / "audit.jsonl")

    as_lines = run("audit", "export", "--file", "audit.jsonl", cwd=tmp_path).stdout
    as_table = run("audit", "export", "--file", "audit.jsonl", "--format", "csv", cwd=tmp_path).stdout

    assert [json.loads(line) for line in as_lines.splitlines()] == events
    assert [row["call_id"] for row in csv.DictReader(as_table.splitlines())] == [event["call_id"] for event in events]


@pytest.mark.parametrize(("since", "count"), [("1h", 2), ("2000-01-01", 2), ("2999-01-01T00:00:00Z", 0)])
def test_an_export_begins_when_it_is_told_to(tmp_path: Path, since: str, count: int) -> None:
    write_calls(tmp_path / "audit.jsonl", 1)

    exported = run("audit", "export", "--file", "audit.jsonl", "--since", since, cwd=tmp_path)

    assert len(exported.stdout.splitlines()) == count


def test_a_name_that_a_spreadsheet_would_compute_is_text_in_the_export(tmp_path: Path) -> None:
    record = {"seq": 1, "event": "decision", "call_id": "c", "tool": '=HYPERLINK("http://evil")', "ts": "x"}
    (tmp_path / "audit.jsonl").write_text(json.dumps(record) + "\n")

    table = run("audit", "export", "--file", "audit.jsonl", "--format", "csv", cwd=tmp_path).stdout

    assert next(csv.DictReader(table.splitlines()))["tool"] == '\'=HYPERLINK("http://evil")'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "--file", "no.jsonl"), "there is none yet"),
        (("show", "--file", "no.jsonl", "--host", "cursor"), "--host cannot be used with --file"),
        (("show", "--since", "soon"), "--since 'soon' is no time"),
        (("verify", "--expect-head", "x"), "--expect-head 'x' is no head"),
        (("export", "--since", "soon"), "--since 'soon' is no time"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    failed = run("audit", *words, cwd=tmp_path)

    assert failed.returncode == 1
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_record_is_where_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir(mode=0o700)
    write_calls(tmp_path / "kept" / "calls.jsonl", 1)
    (tmp_path / "goat-mcp.yaml").write_text(f"audit:\n  path: {tmp_path / 'kept' / 'calls.jsonl'}\n")

    assert audit(tmp_path, "verify", "--config", "goat-mcp.yaml")["events"] == 2


def test_the_commands_of_the_document_work_one_after_the_other(tmp_path: Path) -> None:
    document = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    commands = [shlex.split(line[2:]) for line in document.splitlines() if line.startswith("$ goat-mcp ")]
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.md").write_text("x\n")

    own = {"GOAT_MCP_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    done = [run(*words[1:], cwd=tmp_path / "work", variables=own) for words in commands]

    assert [(found.returncode, found.stderr) for found in done] == [
        *[(0, "")] * 3,
        (0, "No such calls.\n"),
        *[(0, "")] * 2,
    ]
    assert [words[2] for words in commands[1:]] == ["show", "show", "show", "export", "verify"]
    assert "\tGlob\tallow\tok\t" in done[1].stdout
    assert json.loads(done[2].stdout)["calls"][0]["arguments"] == {"pattern": "*.md"}
    assert done[5].stdout.startswith("intact: 2 events in 1 file, numbers 1 to 2\nhead: 2:")


def test_the_settings_of_the_document_are_those_there_are() -> None:
    document = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()

    told = re.findall(r"^\| `(audit\.\w+)` \| (?:`?([\w]+)`?)", document, re.MULTILINE)
    fields = AuditSettings.model_fields
    assert [name for name, _ in told] == [f"audit.{name}" for name in fields]
    assert [default for _, default in told[1:]] == [str(field.default) for field in list(fields.values())[1:]]
