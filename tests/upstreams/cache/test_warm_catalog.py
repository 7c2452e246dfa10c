"""What an upstream listed, kept on disk."""

from __future__ import annotations

import hashlib
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.catalog.schemas.dialects import RULES_VERSION
from goat_mcp.files.documents.visible_text import VISIBLE_RULES
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.cache.warm_catalog import StoredCatalog, WarmCatalog
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

CATALOG = StoredCatalog(
    "2026-07-28",
    ({"name": "a", "inputSchema": {"type": "object"}, "title": "\ud83d é"},),
    ("0" * 64,),
    (RejectedEntry("b", "its schema is none", ReasonCode.BROKEN_SCHEMA),),
    (True,),
)


@pytest.fixture
def warm(tmp_path: Path) -> WarmCatalog:
    catalog = WarmCatalog(StateDirectory(tmp_path))
    catalog.store("server", "f" * 64, CATALOG)
    return catalog


# LIF-2
def test_what_was_stored_is_read_back_and_private(warm: WarmCatalog) -> None:
    assert warm.load("server", "f" * 64) == CATALOG
    assert stat.S_IMODE(warm.path("server", "f" * 64).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [True],
        {"rules": RULES_VERSION + 1, "of": [True]},
        {"rules": RULES_VERSION - 1, "of": [True]},
        {"rules": RULES_VERSION},
        {"rules": RULES_VERSION, "of": [True, True]},
        {"rules": RULES_VERSION, "of": []},
    ],
)
def test_what_another_version_noted_of_the_entries_is_left_alone(warm: WarmCatalog, plain: Any) -> None:
    path = warm.path("server", "f" * 64)
    head, _, body = path.read_bytes().partition(b"\n")
    tree = json.loads(body)
    tree["plain"] = plain
    rewritten = json.dumps(tree).encode()
    checksum = hashlib.sha256(rewritten).hexdigest().encode()
    path.write_bytes(head.rpartition(b" ")[0] + b" " + checksum + b"\n" + rewritten)

    assert warm.load("server", "f" * 64) == replace(CATALOG, plain=())


@pytest.mark.parametrize("visible", [None, VISIBLE_RULES - 1, VISIBLE_RULES + 1])
def test_f13_12_what_was_made_visible_by_other_rules_is_listed_anew(warm: WarmCatalog, visible: Any) -> None:
    path = warm.path("server", "f" * 64)
    head, _, body = path.read_bytes().partition(b"\n")
    tree = json.loads(body)
    tree["visible"] = visible
    rewritten = json.dumps(tree).encode()
    checksum = hashlib.sha256(rewritten).hexdigest().encode()
    path.write_bytes(head.rpartition(b" ")[0] + b" " + checksum + b"\n" + rewritten)

    assert warm.load("server", "f" * 64) is None
    assert path.exists()  # it is not broken


def test_a_version_before_ours_reads_what_it_knows(warm: WarmCatalog) -> None:
    # Who goes back to one keeps its catalog: the head it looks for, and the members it reads.
    head, _, body = warm.path("server", "f" * 64).read_bytes().partition(b"\n")

    assert head.startswith(b"goat-mcp-catalog 3 ")
    assert json.loads(body).keys() >= {"version", "tools", "hashes", "rejected"}


def test_another_launch_of_the_same_name_has_no_stored_catalog(warm: WarmCatalog) -> None:
    assert warm.load("server", "f" * 63 + "e") is None
    assert warm.load("server", "e" * 64) is None


# LIF-2
def test_a_file_cut_or_changed_anywhere_is_set_aside_and_can_be_replaced(warm: WarmCatalog) -> None:
    path = warm.path("server", "f" * 64)
    whole = path.read_bytes()
    for damaged in [whole[:size] for size in range(len(whole))] + [
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(len(whole))
    ]:
        path.write_bytes(damaged)

        assert warm.load("server", "f" * 64) is None, damaged
        assert not path.exists()
        assert path.with_name(f"{path.name}.corrupt").read_bytes() == damaged

    warm.store("server", "f" * 64, CATALOG)
    assert warm.load("server", "f" * 64) == CATALOG


def test_a_state_folder_that_cannot_be_made_is_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert WarmCatalog(StateDirectory(tmp_path / "file")).load("server", "f" * 64) is None
