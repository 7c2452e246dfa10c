"""Files of our own on a real Windows (or Wine): who may read them, and what others do with them meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.calls.audit.chain import ChainFile, rotated_files
from goat_mcp.calls.audit.verify import verify
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_safety import UnsafeFile, create_secret_file, read_secret_file
from goat_mcp.state.own_file import open_own
from goat_mcp.state.private_file import write_private
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.windows_files import why_readable_by_others

pytestmark = pytest.mark.windows_only("it uses Windows' own calls")


def test_a_secret_file_is_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "token"

    create_secret_file(path, "abc\n")

    assert why_readable_by_others(path) == ""
    assert path.read_bytes() == b"abc\n"
    assert read_secret_file(path) == "abc\n"


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"abc\n")

    with pytest.raises(UnsafeFile, match="is not protected from other users"):
        read_secret_file(path)


def test_the_state_directory_and_what_is_in_it_are_the_users_alone(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "deep" / "state")

    spilled = SpillFiles(state).write("out", "a\nb\n")

    assert why_readable_by_others(state.path) == ""
    assert why_readable_by_others(spilled) == ""
    assert spilled.read_bytes() == b"a\nb\n"


def test_a_state_file_is_replaced_while_its_reader_has_it_open_for_sharing(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_private(path, b"old")
    reader = open_own(path, os.O_RDONLY)
    aside = path.with_name("aside")

    path.rename(aside)
    write_private(path, b"new\n")

    assert os.read(reader, 10) == b"old"
    os.close(reader)
    assert path.read_bytes() == b"new\n"


def test_two_writers_of_the_audit_record_make_one_chain_over_full_files(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    first, second = (ChainFile(path, max_bytes=4096, kept=50) for _ in range(2))

    for number in range(60):
        first.append({"event": "decision", "n": number})
        second.append({"event": "decision", "n": number})
    first.close()
    second.close()

    assert len(rotated_files(path)) > 1
    assert verify(path).is_intact
