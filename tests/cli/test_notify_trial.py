"""`goat-mcp approvals --test-notify` and `goat-mcp doctor`: whether the entries of `approval.notify` work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from goat_mcp.processes.process_guard import MARKER_VARIABLE
from tests.cli.test_call import run

KEEPS = "import json,sys; open(sys.argv[1], 'w').write(json.dumps(json.load(sys.stdin)))"

pytestmark = [pytest.mark.e2e, pytest.mark.posix_only(reason="programs of POSIX")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def variables(home: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(home / "config")}


def configure(home: Path, *entries: object) -> None:
    file = home / "config" / "goat-mcp" / "goat-mcp.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"approval": {"notify": list(entries)}}))
    file.chmod(0o600)


def test_each_entry_gets_a_test_message_and_what_became_of_it_is_said(home: Path) -> None:
    out = home / "out.json"
    chat = {"token": "${env:NO_SUCH_TOKEN}", "chat": 1, "user": 1}
    configure(home, {"program": [sys.executable, "-c", KEEPS, str(out)]}, {"telegram": chat})

    done = run("approvals", "--test-notify", "--json", cwd=home, variables=variables(home))

    results = json.loads(done.stdout)
    assert (done.returncode, json.loads(out.read_text())["event"]) == (1, "test")
    assert results[0] == {"entry": "approval.notify.0 (program)", "result": "sent"}
    assert results[1]["entry"] == "approval.notify.1 (telegram)"
    assert "NO_SUCH_TOKEN" in results[1]["result"] and results[1]["result"].startswith("failed: ")


def test_without_entries_it_says_so(home: Path) -> None:
    done = run("approvals", "--test-notify", cwd=home)

    assert (done.returncode, "approval.notify names nobody" in done.stdout + done.stderr) == (0, True)


def test_a_model_sends_no_messages(home: Path) -> None:
    done = run("approvals", "--test-notify", cwd=home, variables={MARKER_VARIABLE: "1"})

    assert done.returncode != 0 and "a command that a model runs cannot send messages" in done.stderr


def test_it_stands_alone(home: Path) -> None:
    assert "--test-notify stands alone" in run("approvals", "--test-notify", "--all", cwd=home).stderr


def test_doctor_finds_an_entry_that_cannot_be_used_and_sends_nothing(home: Path) -> None:
    out = home / "out.json"
    configure(home, {"program": [sys.executable, "-c", KEEPS, str(out)]}, {"program": ["/no/such/program"]})

    document = json.loads(run("doctor", "--json", cwd=home, variables=variables(home)).stdout)

    found = [one for one in document["findings"] if one["id"] == "notify"]
    assert [(one["about"], one["detail"], one["severity"]) for one in found] == [
        ("approval.notify.1 (program)", "there is no program /no/such/program", "warning")
    ]
    assert not out.exists()
