"""Secrets that are stored by name: where they are kept, who can read them, and what a reference to one gives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from goat_mcp.core.redaction import Redactor
from goat_mcp.core.substitution import Unresolved, secret_reference_in, stored_secrets_in
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.secret_store import SecretStore, SecretTrouble
from goat_mcp.state.system_keyring import SystemKeyring

CANARY = "canary5Lx81zQ7"


class Backend:
    """A keyring in memory. `fails`: it is locked."""

    priority = 5.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.fails = False

    def get_password(self, service: str, user: str) -> str | None:
        if self.fails:
            raise RuntimeError(CANARY)
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, secret: str) -> None:
        if self.fails:
            raise RuntimeError(CANARY)
        self.kept[service, user] = secret

    def delete_password(self, service: str, user: str) -> None:
        del self.kept[service, user]


class NoBackend(Backend):
    """What the library finds where there is no keyring."""

    priority = 0.0


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


@pytest.fixture
def in_file(state: StateDirectory) -> SecretStore:
    return SecretStore(state, SystemKeyring(NoBackend()))


@pytest.mark.posix_only("modes are POSIX's")
def test_without_a_keyring_a_secret_is_in_a_file_that_only_its_owner_can_read(
    in_file: SecretStore, state: StateDirectory
) -> None:
    stored = in_file.set("TOKEN", CANARY)

    assert (stored.name, stored.kept_in) == ("TOKEN", "file")
    assert in_file.get("TOKEN") == CANARY
    assert in_file.path.stat().st_mode & 0o777 == 0o600
    assert in_file.path.parent.stat().st_mode & 0o777 == 0o700
    assert in_file.path == state.stored_secrets


def test_with_a_keyring_the_file_holds_the_name_alone(state: StateDirectory) -> None:
    backend = Backend()
    store = SecretStore(state, SystemKeyring(backend))

    stored = store.set("TOKEN", CANARY)

    assert stored.kept_in == "keyring"
    assert backend.kept == {("goat-mcp", "TOKEN"): CANARY}
    assert CANARY not in store.path.read_text()
    assert store.get("TOKEN") == CANARY
    assert store.remove("TOKEN") and backend.kept == {} and store.names() == []


def test_a_keyring_that_fails_leaves_the_secret_in_the_file_and_no_older_value_counts(state: StateDirectory) -> None:
    backend = Backend()
    store = SecretStore(state, SystemKeyring(backend))
    store.set("TOKEN", "older-value")
    backend.fails = True

    stored = store.set("TOKEN", CANARY)

    assert stored.kept_in == "file"
    assert store.get("TOKEN") == CANARY


def test_names_are_listed_in_order_and_one_that_was_not_there_is_not_removed(in_file: SecretStore) -> None:
    assert in_file.names() == [] and not in_file.remove("A") and not in_file.path.parent.exists()
    in_file.set("B", "1234567")
    in_file.set("A", "1234567")

    assert [one.name for one in in_file.names()] == ["A", "B"]
    assert not in_file.remove("C")


@pytest.mark.parametrize("name", ["", "a b", "A=b", "-x", ".x", "a/b", "a}", "x" * 101, "ü", "A\n"])
def test_what_no_reference_could_name_is_no_name(in_file: SecretStore, name: str) -> None:
    with pytest.raises(SecretTrouble, match="is no name for a secret"):
        in_file.set(name, CANARY)


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 70_000])
def test_a_value_that_cannot_be_used_is_refused_and_not_shown(in_file: SecretStore, value: str) -> None:
    with pytest.raises(SecretTrouble) as refused:
        in_file.set("TOKEN", value)

    assert "xxxxx" not in str(refused.value)
    assert in_file.names() == []


def test_of_many_changes_at_a_time_none_is_lost(in_file: SecretStore) -> None:
    def store(number: int) -> Callable[[], None]:
        return lambda: in_file.set(f"N{number}", "1234567") and None

    threads = [threading.Thread(target=store(number)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(in_file.names()) == 20


@pytest.mark.parametrize(
    "fault", [pytest.param("mode", marks=pytest.mark.posix_only("modes are POSIX's")), "link", "garbage", "shape"]
)
def test_a_file_that_others_could_have_read_or_that_is_damaged_gives_nothing(in_file: SecretStore, fault: str) -> None:
    in_file.set("TOKEN", CANARY)
    path = in_file.path
    match fault:
        case "mode":
            path.chmod(0o644)
        case "link":
            path.rename(path.with_name("real"))
            path.symlink_to("real")
        case "garbage":
            path.write_text(f'{{"secrets": {CANARY}')
        case _:
            path.write_text(f'{{"secrets": {{"TOKEN": "{CANARY}"}}}}')

    for ask in (lambda: in_file.get("TOKEN"), lambda: in_file.set("A", "1234567"), in_file.names):
        with pytest.raises(SecretTrouble) as refused:
            ask()
        assert str(path) in str(refused.value) and CANARY not in str(refused.value)


@pytest.mark.not_as_root("root may write everywhere")
def test_a_state_directory_that_cannot_be_written_is_named(in_file: SecretStore, state: StateDirectory) -> None:
    state.folder().chmod(0o500)

    with pytest.raises(SecretTrouble, match="cannot be used"):
        in_file.set("TOKEN", CANARY)
    state.path.chmod(0o700)


# CFG-3
def test_a_reference_gives_the_value_and_it_is_redacted_from_then_on(
    in_file: SecretStore, state: StateDirectory
) -> None:
    in_file.set("TOKEN", CANARY)
    redactor = Redactor()

    found = SecretReferences({}, redactor, state).resolve({"headers": {"Authorization": "Bearer ${secret:TOKEN}"}})

    assert found == {"headers": {"Authorization": f"Bearer {CANARY}"}}
    assert redactor.text(f"x {CANARY}") == "x [redacted]"


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("${secret:TOKEN}", "${secret:TOKEN}: there is no such secret; store it: goat-mcp secret set TOKEN"),
        (
            "${secret:GITHUB-TOKEN}",
            "${secret:GITHUB-TOKEN}: there is no such secret; did you mean GITHUB_TOKEN? "
            "Or store it: goat-mcp secret set GITHUB-TOKEN",
        ),
        ("${secret:TOKEN:-x}", "${secret:TOKEN:-x}: a secret has no default; leave out :-x"),
        ("${secrets:TOKEN}", "there are no references of this kind, only env, secret, keyring, file; write ${secret:"),
    ],
)
def test_a_reference_without_a_value_says_what_to_type(
    in_file: SecretStore, state: StateDirectory, reference: str, told: str
) -> None:
    in_file.set("GITHUB_TOKEN", CANARY)

    with pytest.raises(Unresolved) as caught:
        SecretReferences({}, state=state).resolve(reference)

    assert told in str(caught.value)


def test_references_are_found_in_whatever_holds_them() -> None:
    entry = {"env": {"A": "${secret:X}", "B": "${env:HOME}"}, "l": ["Bearer ${secret:Y} ${keyring:a/b}", 3]}

    assert stored_secrets_in(entry) == {"X", "Y"}
    assert secret_reference_in({"args": ["--key", "${secret:X}"]}) == "${secret:X}"
