"""`goat-mcp secret` as a person uses it: values go in unseen and never come out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_store import SecretStore
from goat_mcp.state.system_keyring import SystemKeyring
from tests.cli.terminal_session import CTRL_C, TerminalSession
from tests.cli.test_undo import TIMEOUT_S, Shell
from tests.quick_start import goat_command

VALUE = "hunter2-and-more"


@pytest.fixture
def environment(shell: Shell) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")}
    return {
        **inherited,
        "GOAT_MCP_STATE_DIR": str(shell.state),
        "XDG_CONFIG_HOME": str(shell.state / "config"),
        # A machine with a keyring must not keep what a test stores.
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }


def piped(environment: dict[str, str], text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        goat_command("secret", *words), env=environment, input=text, capture_output=True, text=True, timeout=TIMEOUT_S
    )


def on_terminal(environment: dict[str, str], answers: list[tuple[str, str]], *words: str) -> tuple[int, str]:
    """Run it on a terminal, 80 columns wide, and answer what it asks. The exit code and all that was to be seen."""
    # A process of its own: a hidden answer is asked for on the terminal that controls it.
    command = [sys.executable, "-m", "goat_mcp", "secret", *words]
    with TerminalSession(command, cwd=Path(environment["GOAT_MCP_STATE_DIR"]).parent, variables=environment) as session:
        for asked, answer in answers:
            session.wait_for(asked)
            session.type(answer.encode())
        return session.end(TIMEOUT_S), session.shown


def kept(shell: Shell) -> SecretStore:
    return SecretStore(StateDirectory(shell.state), SystemKeyring())


def upstreams(shell: Shell, **env: str) -> Path:
    file = shell.state / "config" / "goat-mcp" / "upstreams.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"tickets": {"command": "cat", "env": env}}}))
    return file


def test_a_value_is_typed_unseen_and_the_reference_is_shown(shell: Shell, environment: dict[str, str]) -> None:
    code, shown = on_terminal(environment, [("(not shown): ", f"{VALUE}\n")], "set", "TICKETS_TOKEN")

    assert code == 0, shown
    assert kept(shell).get("TICKETS_TOKEN") == VALUE
    assert VALUE not in shown
    (reference,) = [line for line in shown.splitlines() if line.startswith("Write ${secret:TICKETS_TOKEN}")]
    assert len(reference.rstrip()) <= 80, reference
    assert "Stored TICKETS_TOKEN in" in shown


def test_ctrl_c_at_the_prompt_stores_nothing_and_shows_no_traceback(shell: Shell, environment: dict[str, str]) -> None:
    code, shown = on_terminal(environment, [("(not shown): ", CTRL_C.decode())], "set", "T")

    assert (code, kept(shell).names()) == (130, [])
    assert "Traceback" not in shown


def test_a_value_comes_from_stdin_without_its_line_end(shell: Shell, environment: dict[str, str]) -> None:
    first = piped(environment, f"{VALUE}\n", "set", "T", "--stdin")
    second = piped(environment, f"{VALUE}2\r\n", "set", "T", "--stdin", "--json")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert kept(shell).get("T") == f"{VALUE}2"
    document = json.loads(second.stdout)
    assert document | {"stored_at_s": 0} == {
        "name": "T",
        "kept_in": str(kept(shell).path),
        "stored_at_s": 0,
        "replaced": True,
        "reference": "${secret:T}",
    }


@pytest.mark.parametrize("words", [["T", VALUE], [f"T={VALUE}"]])
def test_a_value_is_no_argument_and_is_not_repeated(
    shell: Shell, environment: dict[str, str], words: list[str]
) -> None:
    done = piped(environment, "", "set", *words)

    assert done.returncode == 1
    assert "a secret is no argument" in done.stderr and "goat-mcp secret set T," in done.stderr
    assert VALUE not in done.stderr + done.stdout


def test_without_a_terminal_nobody_is_asked(environment: dict[str, str]) -> None:
    done = piped(environment, f"{VALUE}\n", "set", "T")

    assert done.returncode == 1
    assert "goat-mcp secret set T --stdin" in done.stderr


def test_a_mistake_is_one_json_line_with_json(environment: dict[str, str]) -> None:
    done = piped(environment, VALUE, "set", "my token", "--stdin", "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"]["message"].startswith("'my token' is no name for a secret")


def test_secrets_are_listed_with_what_uses_them_and_what_is_missing(shell: Shell, environment: dict[str, str]) -> None:
    upstreams(shell, T="${secret:TICKETS_TOKEN}", U="Bearer ${secret:OTHER}")
    piped(environment, VALUE, "set", "TICKETS_TOKEN", "--stdin")
    piped(environment, VALUE, "set", "UNUSED", "--stdin")

    text = piped(environment, "", "list")
    document = json.loads(piped(environment, "", "list", "--json").stdout)
    code, terminal = on_terminal(environment, [], "list")

    assert text.stdout.splitlines()[0] == "name\tkept in\tstored\tused by"
    assert [(one["name"], one["used_by"]) for one in document] == [
        ("TICKETS_TOKEN", ["upstream tickets"]),
        ("UNUSED", []),
    ]
    assert text.stderr == (
        "goat-mcp: upstream tickets wants OTHER, which is not stored; store it: goat-mcp secret set OTHER\n"
    )
    assert VALUE not in text.stdout + terminal + json.dumps(document)
    assert code == 0 and "TICKETS_TOKEN" in terminal
    assert max(map(len, terminal.splitlines()[:3])) <= 80, terminal


def test_settings_and_manifests_that_use_a_secret_are_named(shell: Shell, environment: dict[str, str]) -> None:
    piped(environment, VALUE, "set", "S", "--stdin")
    own = shell.state / "config" / "goat-mcp"
    (own / "manifests" / "notes").mkdir(parents=True)
    (own / "goat-mcp.yaml").write_text(
        "web: {search: {key: '${secret:S}'}}\ntools: {telegram: {token: '${secret:S}'}}\n"
    )
    (own / "manifests" / "notes" / "upstream.yaml").write_text(
        "apiVersion: goat-mcp/v1\nkind: Upstream\nmetadata: {name: notes}\n"
        "spec: {command: /bin/true, env: {T: '${secret:S}'}}\n"
    )

    (one,) = json.loads(piped(environment, "", "list", "--json").stdout)

    assert one["used_by"] == ["the setting web.search.key", "the setting tools.telegram", "upstream notes"]


def test_one_that_is_used_is_removed_if_the_user_says_so(shell: Shell, environment: dict[str, str]) -> None:
    upstreams(shell, T="${secret:T}")
    piped(environment, VALUE, "set", "T", "--stdin")

    refused = piped(environment, "", "remove", "T")
    said_no = on_terminal(environment, [("Type yes: ", "no\n")], "remove", "T")
    before = [one.name for one in kept(shell).names()]
    said_yes = on_terminal(environment, [("Type yes: ", "yes\n")], "remove", "T")

    assert refused.returncode == 1 and "T is used by upstream tickets" in refused.stderr and "--yes" in refused.stderr
    assert said_no[0] == 1 and before == ["T"]
    assert said_yes[0] == 0 and "tickets cannot be used until you store it again" in said_yes[1]
    assert kept(shell).names() == []


def test_one_that_nothing_uses_is_removed_at_once_and_a_wrong_name_is_an_error(
    shell: Shell, environment: dict[str, str]
) -> None:
    piped(environment, VALUE, "set", "TICKETS_TOKEN", "--stdin")

    wrong = piped(environment, "", "remove", "TICKET_TOKEN")
    removed = piped(environment, "", "remove", "TICKETS_TOKEN", "--json")

    assert wrong.returncode == 1
    assert "no secret 'TICKET_TOKEN' is stored; did you mean TICKETS_TOKEN?" in wrong.stderr
    assert json.loads(removed.stdout) == {"removed": "TICKETS_TOKEN", "used_by": []}


@pytest.mark.parametrize("words", [["set", "T", "--stdin"], ["list"], ["remove", "T", "--yes"]])
def test_a_models_command_can_use_none_of_it(shell: Shell, environment: dict[str, str], words: list[str]) -> None:
    piped(environment, VALUE, "set", "T", "--stdin")

    done = piped({**environment, "GOAT_MCP_CALL": "1.call"}, "other", *words)

    assert done.returncode == 1
    assert "a command that a model runs cannot" in done.stderr
    assert kept(shell).get("T") == VALUE


def test_an_upstream_whose_secret_is_missing_says_what_to_type(shell: Shell, environment: dict[str, str]) -> None:
    upstreams(shell, T="${secret:TICKETS_TOKEN}")

    done = subprocess.run(
        goat_command("list"),
        env=environment,
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )

    assert "config_error" in done.stdout + done.stderr
    assert "store it: goat-mcp secret set TICKETS_TOKEN" in done.stdout + done.stderr
