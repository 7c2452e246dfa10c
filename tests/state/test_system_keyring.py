"""Which keyrings are used: those of the three systems; none that keeps nothing, or keeps it for everybody to read."""

from __future__ import annotations

from typing import Any

import pytest
from keyring.backends import fail, null

from goat_mcp.core import platform
from goat_mcp.state.system_keyring import KeyringTrouble, SystemKeyring


def backend_named(module: str, name: str = "Keyring", priority: float = 5.0, problem: Exception | None = None) -> Any:
    """One as the library names it. `problem`: it raises that."""
    kept: dict[tuple[str, str], str] = {}

    def get(self: Any, service: str, user: str) -> str | None:
        if problem is not None:
            raise problem
        return kept.get((service, user))

    def put(self: Any, service: str, user: str, secret: str) -> None:
        kept[service, user] = secret

    parts = {"__module__": module, "priority": priority, "get_password": get, "set_password": put}
    return type(name, (), parts)()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("keyring.backends.macOS", "Keyring"),
        ("keyring.backends.Windows", "WinVaultKeyring"),
        ("keyring.backends.SecretService", "Keyring"),
    ],
)
def test_the_keyring_of_each_system_is_used(module: str, name: str) -> None:
    keyring = SystemKeyring(backend_named(module, name))

    keyring.set("s", "u", "x")

    assert keyring.is_there() and keyring.get("s", "u") == "x"


def test_a_keyring_that_keeps_nothing_is_none() -> None:
    for backend in (fail.Keyring(), null.Keyring(), Chain(null.Keyring())):
        assert not SystemKeyring(backend).is_there()
        with pytest.raises(KeyringTrouble, match="is not there"):
            SystemKeyring(backend).set("s", "u", "x")


def test_a_keyring_in_plain_text_is_refused() -> None:
    plain = backend_named("keyrings.alt.file", "PlaintextKeyring", 0.5)

    for backend in (plain, Chain(plain)):
        assert not SystemKeyring(backend).is_there()
        with pytest.raises(KeyringTrouble, match=r"plain text \(keyrings\.alt\.file\.PlaintextKeyring\); uninstall"):
            SystemKeyring(backend).set("s", "u", "x")


def test_behind_the_keychain_others_may_wait() -> None:
    keychain = backend_named("keyring.backends.macOS")

    assert SystemKeyring(Chain(keychain, backend_named("keyrings.alt.file", "PlaintextKeyring"))).is_there()


@pytest.mark.parametrize(("system", "words"), [("macos", "Keychain Access"), ("linux", "keyring diagnose")])
def test_what_to_do_if_it_fails_is_said_in_the_words_of_the_system(
    system: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "SYSTEM", system)
    keyring = SystemKeyring(backend_named("keyring.backends.macOS", problem=RuntimeError("secret")))

    with pytest.raises(KeyringTrouble, match=rf"failed \(RuntimeError\); .*{words}") as refused:
        keyring.get("s", "u")

    assert "secret" not in str(refused.value)


class Chain:
    """Several, as the library puts them in a row: the first one takes what is stored."""

    priority = 10.0

    def __init__(self, *backends: Any) -> None:
        self.backends = list(backends)
