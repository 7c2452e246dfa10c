"""A server that was started with nothing in its environment has what programs expect."""

from __future__ import annotations

import pytest

from goat_mcp.cli.own_environment import fill_in
from goat_mcp.core import platform, posix

pytestmark = pytest.mark.posix_only("variables of Unix")
ME = posix.UserRecord("me", "/home/me", "/bin/zsh")


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "linux")


FILLED = {
    "HOME": "/home/me",
    "USER": "me",
    "LOGNAME": "me",
    "SHELL": "/bin/zsh",
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
}


@pytest.fixture(autouse=True)
def not_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "linux")


def test_what_is_missing_is_filled_in() -> None:
    environment: dict[str, str] = {}

    fill_in(environment, ME)

    assert environment == FILLED


def test_a_mac_has_a_language_and_a_folder_of_the_user_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "macos")
    monkeypatch.setattr(posix, "users_temporary_folder", lambda: "/var/folders/ab/T/")
    environment = {"HOME": "", "PATH": "/mine"}

    fill_in(environment, ME)

    assert environment == {**FILLED, "PATH": "/mine", "LANG": "en_US.UTF-8", "TMPDIR": "/var/folders/ab/T/"}


@pytest.mark.parametrize(("found", "language"), [("C.UTF-8", "C.UTF-8"), ("UTF-8", None), ("de_DE.UTF-8", None)])
def test_elsewhere_the_language_is_the_one_that_python_has_found(found: str, language: str | None) -> None:
    environment = {"LC_CTYPE": found}

    fill_in(environment, ME)

    assert environment.get("LANG") == language


def test_a_user_whom_the_system_does_not_know_gets_no_empty_values() -> None:
    environment: dict[str, str] = {}

    fill_in(environment, posix.UserRecord())

    assert environment == {"PATH": FILLED["PATH"]}
