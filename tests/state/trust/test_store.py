"""trust.json: what the user trusted, and that nothing is trusted by a file that is damaged or not theirs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.store import TrustStore

HASH, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


P, Q = str(Path("/p/goat-mcp.yaml")), str(Path("/q/goat-mcp.yaml"))


def trusted(state: StateDirectory) -> dict[str, str]:
    return {one.path: one.sha256 for one in TrustStore(state).all()}


def test_a_decision_is_found_by_the_next_process_and_lasts_until_it_is_revoked(state: StateDirectory) -> None:
    store = TrustStore(state)
    store.trust(Path("/p/goat-mcp.yaml"), HASH)
    store.trust(Path("/q/goat-mcp.yaml"), OTHER)
    store.trust(Path("/p/goat-mcp.yaml"), OTHER)

    assert trusted(state) == {P: OTHER, Q: OTHER}
    assert not platform.HAS_FILE_MODES or store.path.stat().st_mode & 0o777 == 0o600
    assert (store.revoke(Path("/p/goat-mcp.yaml")), store.revoke(Path("/p/goat-mcp.yaml"))) == (True, False)
    assert trusted(state) == {Q: OTHER}


def test_what_a_killed_process_has_left_half_written_is_cleared_up(state: StateDirectory) -> None:
    state.folder()
    (state.path / ".trust.json.0123").write_text("half")

    TrustStore(state).trust(Path("/p/goat-mcp.yaml"), HASH)

    assert sorted(found.name for found in state.path.iterdir()) == ["trust.json", "trust.lock"]


def test_cut_at_any_byte_it_stands_for_no_trust_and_is_set_aside(state: StateDirectory) -> None:  # R-CRASH-1
    store = TrustStore(state)
    store.trust(Path("/p/goat-mcp.yaml"), HASH)
    whole = store.path.read_bytes()

    for length in range(len(whole) - 1):  # the last byte is a line end
        store.path.write_bytes(whole[:length])
        reader = TrustStore(state)

        assert reader.all() == [], length
        assert reader.problems == [
            f"{store.path} is damaged; it is now {store.path}.corrupt; no project's settings are trusted"
        ]
        assert (store.path.exists(), Path(f"{store.path}.corrupt").read_bytes()) == (False, whole[:length])
        store.trust(Path("/q/goat-mcp.yaml"), OTHER)
        assert trusted(state) == {Q: OTHER}


@pytest.mark.parametrize(
    "text",
    ["[]", '"x"', '{"trusted": {}}', '{"trusted": [1]}', '{"trusted": [{"path": "/p"}]}', "[" * 100_000, "\x00"],
    ids=["list", "text", "no list", "no entry", "half an entry", "deep", "zeros"],
)
def test_what_is_no_list_of_decisions_stands_for_none(state: StateDirectory, text: str) -> None:
    store = TrustStore(state)
    store.trust(Path("/p/goat-mcp.yaml"), HASH)
    store.path.write_text(text)

    reader = TrustStore(state)

    assert reader.all() == []
    assert (len(reader.problems), store.path.exists()) == (int(text != '{"trusted": {}}'), text == '{"trusted": {}}')


@pytest.mark.posix_only("modes are POSIX's")
def test_one_that_others_could_have_written_stands_for_none(state: StateDirectory) -> None:
    store = TrustStore(state)
    store.trust(Path("/p/goat-mcp.yaml"), HASH)
    store.path.chmod(0o666)

    reader = TrustStore(state)

    assert reader.all() == []
    assert reader.problems == [
        f"{store.path} can be read by others (mode 0666); no project's settings are trusted",
    ]


def test_a_record_that_lies_in_the_project_trusts_nothing_of_it(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "project" / "state")
    inside, outside = tmp_path / "project" / "goat-mcp.yaml", tmp_path / "other" / "goat-mcp.yaml"
    store = TrustStore(state)
    store.trust(inside, HASH)
    store.trust(outside, HASH)

    assert (store.of(inside), store.of(outside) is not None) == (None, True)
    assert store.problems == [f"{store.path} lies in the project itself, so nothing of the project is trusted"]


def test_of_decisions_at_the_same_time_none_is_lost(state: StateDirectory) -> None:
    paths = [Path(f"/{number:02}/goat-mcp.yaml") for number in range(16)]

    threads = [threading.Thread(target=TrustStore(state).trust, args=(path, HASH)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert trusted(state) == {str(path): HASH for path in paths}
