"""Where secrets come from, what is refused on the way, and that nothing of them is shown (R-SECRET-1)."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.substitution import Unresolved, secret_reference_in
from goat_mcp.state import system_keyring
from goat_mcp.state.secret_references import SecretReferences

CANARY = "canary7Kx93zQ1"


def why(reference: str, **environ: str) -> str:
    with pytest.raises(Unresolved) as caught:
        SecretReferences(environ).resolve(reference)
    return str(caught.value)


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{CANARY}\n")
    file.chmod(0o600)
    return file


def test_a_private_file_gives_its_text_without_the_line_end(secret_file: Path) -> None:
    redactor = Redactor()

    found = SecretReferences({}, redactor).resolve({"headers": {"A": f"Bearer ${{file:{secret_file}}}"}, "n": [1]})

    assert found == {"headers": {"A": f"Bearer {CANARY}"}, "n": [1]}
    assert redactor.text(f"x {CANARY}") == "x [redacted]"


@pytest.mark.parametrize("fault", ["mode", "link", "folder", "missing", "empty", "directory"])
def test_R_CONF_2_a_file_that_others_could_have_read_or_written_is_no_secret(secret_file: Path, fault: str) -> None:
    match fault:
        case "mode":
            secret_file.chmod(0o644)
        case "link":
            secret_file.rename(secret_file.with_name("real"))
            secret_file.symlink_to(secret_file.with_name("real"))
        case "folder":
            secret_file.parent.chmod(0o777)
        case "missing":
            secret_file.unlink()
        case "empty":
            secret_file.write_text("\n")
        case _:
            secret_file.unlink()
            secret_file.mkdir()

    said = why(f"${{file:{secret_file}}}")

    assert said.startswith(f"${{file:{secret_file}}}: ")
    assert CANARY not in said


@pytest.fixture
def keyring_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real package keyring, with a backend that keeps its secrets in a file of this test."""
    backend = tmp_path / "kept_in_a_file.py"
    backend.write_text(
        "import json, pathlib\n"
        "from keyring.backend import KeyringBackend\n"
        "FILE = pathlib.Path(__file__).with_suffix('.json')\n"
        "class Backend(KeyringBackend):\n"
        "    priority = 9\n"
        "    def _all(self):\n"
        "        return json.loads(FILE.read_text()) if FILE.exists() else {}\n"
        "    def get_password(self, service, username):\n"
        "        if service == 'locked':\n"
        f"            raise RuntimeError('{CANARY}')\n"
        "        return self._all().get(f'{service}|{username}')\n"
        "    def set_password(self, service, username, password):\n"
        "        FILE.write_text(json.dumps({**self._all(), f'{service}|{username}': password}))\n"
        "    def delete_password(self, service, username): ...\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "kept_in_a_file.Backend")
    import keyring
    from keyring import core

    monkeypatch.setattr(core, "_keyring_backend", None)
    monkeypatch.delitem(sys.modules, "kept_in_a_file", raising=False)
    keyring.set_password("my-service/api", "me", CANARY)
    return backend.with_suffix(".json")


# CFG-3
def test_the_systems_keyring_gives_a_users_secret_of_a_service(keyring_file: Path) -> None:
    redactor = Redactor()

    assert SecretReferences({}, redactor).secret("${keyring:my-service/api/me}") == CANARY
    assert redactor.text(CANARY) == "[redacted]"


def test_what_the_keyring_does_not_have_is_said_with_the_command_to_store_it(keyring_file: Path) -> None:
    assert why("${keyring:my-service/you}") == (
        "${keyring:my-service/you}: the keyring has none; store it: keyring set my-service you"
    )


def test_a_keyring_that_fails_says_nothing_of_its_own_words(keyring_file: Path) -> None:
    said = why("${keyring:locked/me}")

    assert said.startswith("${keyring:locked/me}: the keyring failed (RuntimeError)")
    assert CANARY not in said


def test_a_keyring_that_waits_for_its_owner_is_not_waited_for_long(
    keyring_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring

    never = threading.Event()
    monkeypatch.setattr(system_keyring, "WAIT_S", 0.05)

    def wait() -> None:
        never.wait(60)

    monkeypatch.setattr(keyring, "get_keyring", wait)

    assert "did not answer" in why("${keyring:a/b}")
    never.set()


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert why("${keyring:a/b}") == ("${keyring:a/b}: the keyring needs the package keyring; install goat-mcp[keyring]")


@pytest.mark.parametrize("reference", ["${keyring:a}", "${keyring:/a}", "${keyring:a/}", "${keyring:}"])
def test_a_keyring_reference_names_service_and_user(reference: str) -> None:
    assert why(reference) == f"{reference}: write ${{keyring:SERVICE/USER}}"


def test_a_variable_that_holds_a_secret_is_not_shown_and_one_that_holds_a_path_is() -> None:
    redactor = Redactor()

    SecretReferences({"API_TOKEN": CANARY, "HOME": "/home/me"}, redactor).resolve(["${API_TOKEN}", "${env:HOME}"])

    assert redactor.text(f"{CANARY} /home/me/x") == "[redacted] /home/me/x"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (["--token", "${env:GITHUB_TOKEN}"], "${env:GITHUB_TOKEN}"),
        ({"a": ["x", "--key=${file:/k}"]}, "${file:/k}"),
        ("${keyring:a/b}", "${keyring:a/b}"),
        (["${HOME}/x", "${env:PORT:-80}"], ""),
        (5, ""),
    ],
)
def test_which_references_are_to_secrets(value: object, found: str) -> None:
    assert secret_reference_in(value) == found


def test_on_windows_the_remedy_is_a_command_of_windows(secret_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")
    monkeypatch.setenv("USERNAME", "ada")

    with pytest.raises(
        Unresolved, match=r"must be yours alone: icacls FILE /inheritance:r /grant:r ada:F, in a folder"
    ):
        SecretReferences({}, Redactor()).resolve(f"${{file:{secret_file}}}")
