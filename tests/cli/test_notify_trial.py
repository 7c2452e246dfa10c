"""`goat-mcp approvals --test-notify` and `goat-mcp doctor`: whether the entries of `approval.notify` work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from goat_mcp.cli import notify_trial
from tests.cli.test_call import run

KEEPS = "import json,sys; open(sys.argv[1], 'w').write(json.dumps(json.load(sys.stdin)))"

pytestmark = pytest.mark.posix_only(reason="programs of POSIX")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(home: Path, *entries: object) -> None:
    file = home / "config" / "goat-mcp" / "goat-mcp.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"approval": {"notify": list(entries)}}))
    file.chmod(0o600)


def test_each_entry_gets_a_test_message_and_what_became_of_it_is_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = home / "out.json"
    chat = {"token": "${env:NO_SUCH_TOKEN}", "chat": 1, "user": 1}
    configure(home, {"program": [sys.executable, "-c", KEEPS, str(out)]}, {"telegram": chat})

    code = notify_trial.test_notify(as_json=True)

    results = json.loads(capsys.readouterr().out)
    assert (code, json.loads(out.read_text())["event"]) == (1, "test")
    assert results[0] == {"entry": "approval.notify.0 (program)", "result": "sent"}
    assert results[1]["entry"] == "approval.notify.1 (telegram)"
    assert "NO_SUCH_TOKEN" in results[1]["result"] and results[1]["result"].startswith("failed: ")


def test_without_entries_it_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert notify_trial.test_notify(as_json=False) == 0
    captured = capsys.readouterr()
    assert "approval.notify names nobody" in captured.out + captured.err


@pytest.mark.e2e
def test_doctor_finds_an_entry_that_cannot_be_used_and_sends_nothing(home: Path) -> None:
    out = home / "out.json"
    configure(home, {"program": [sys.executable, "-c", KEEPS, str(out)]}, {"program": ["/no/such/program"]})

    document = json.loads(run("doctor", "--json", cwd=home, variables={"XDG_CONFIG_HOME": str(home / "config")}).stdout)

    found = [one for one in document["findings"] if one["id"] == "notify"]
    assert [(one["about"], one["detail"], one["severity"]) for one in found] == [
        ("approval.notify.1 (program)", "there is no program /no/such/program", "warning")
    ]
    assert not out.exists()
