"""What is no plain, single, bounded settings file is refused with its name and its place. R-CONF-2, PR-31, PR-32."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from goat_mcp.state.trust.settings_file import BrokenFile, find_project_file, read_users_file

MERGE_BOMB = "a: &a {k: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join(['*' + before] * 9)}]}}\n"
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)
ALIAS_BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)


def refusal(path: Path) -> str:
    with pytest.raises(BrokenFile) as caught:
        _ = read_users_file(path).tree
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "is empty", id="PR-31-empty"),
        pytest.param(b" \n\n", "is empty", id="PR-31-blank"),
        pytest.param(b"mode: [", ":1:8: not valid YAML", id="PR-31-invalid"),
        pytest.param(b'{"mode": "plan"', "not valid YAML", id="PR-31-cut JSON"),
        pytest.param(b"\x00", "not valid YAML", id="PR-31-zeros"),
        pytest.param(b"\xff\xfe\x00", "it is not UTF-8 text", id="PR-31-not text"),
        pytest.param(b"- a", "wants settings as `key: value`, got list", id="a list"),
        pytest.param(
            b"mode: plan\nmode: default\n", ":2:1: not valid YAML: the key 'mode' stands here twice", id="twice"
        ),
        pytest.param(b"a: {b: 1, b: 2}", "the key 'b' stands here twice", id="twice below"),
        pytest.param(b"? [a]\n: 1\n", "a key is not a text", id="a list as a key"),
        pytest.param(b"a: !!python/object/apply:os.system [id]", "not valid YAML", id="code"),
        pytest.param(MERGE_BOMB.encode(), "`<<` is not supported", id="merge bomb"),
        pytest.param(ALIAS_BOMB.encode(), "holds more than 10000 values", id="alias bomb"),
        pytest.param(b"a: &a [*a]", "holds more than 10000 values", id="holds itself"),
        pytest.param(b"a: " + b"[" * 5000, "not valid YAML", id="deep"),
        pytest.param(b"a: " + b"9" * 5000, "not valid YAML", id="a number too long"),
        pytest.param(b"#" * 300_000, "is longer than 262144 bytes", id="huge"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_place(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "goat-mcp.yaml"
    file.write_bytes(data)

    message = refusal(file)

    assert message.startswith(str(file)) and said in message
    assert len(message) < 600


def test_comments_alone_say_nothing_and_break_nothing(tmp_path: Path) -> None:
    file = tmp_path / "goat-mcp.yaml"
    file.write_text("# mode: plan\n")

    assert read_users_file(file).tree == {}


def unreadable(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "x").touch()


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


def all_can_write(file: Path) -> None:
    file.chmod(0o666)


def all_can_replace(file: Path) -> None:
    file.parent.chmod(0o777)


def leads_to_one_all_can_write(file: Path) -> None:
    file.rename(file.with_name("target"))
    file.with_name("target").chmod(0o666)
    file.symlink_to("target")


def given_away(file: Path) -> None:
    os.chown(file, 12345, -1)


posix = pytest.mark.posix_only("owners and modes are POSIX's")
as_root = pytest.mark.root_only("nobody else can give a file away")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(unreadable, "is not a regular file", id="PR-31-folder"),
        pytest.param(pipe, "is not a regular file", id="PR-31-pipe", marks=posix),
        pytest.param(dangling, "cannot be read", id="PR-31-link to nowhere", marks=posix),
        pytest.param(all_can_write, "can be written by others (mode 0666)", id="PR-32-0666", marks=posix),
        pytest.param(all_can_replace, "which can be written by others (mode 0777)", id="PR-32-folder", marks=posix),
        pytest.param(leads_to_one_all_can_write, "can be written by others", id="PR-32-link", marks=posix),
        pytest.param(given_away, "belongs to another user", id="PR-32-owner", marks=as_root),
    ],
)
def test_the_users_file_is_refused_for_one_fault(tmp_path: Path, fault: Callable[[Path], object], said: str) -> None:
    file = tmp_path / "folder" / "goat-mcp.yaml"
    file.parent.mkdir(mode=0o700)
    file.write_text("mode: plan\n")
    file.chmod(0o644)
    assert read_users_file(file).tree == {"mode": "plan"}

    fault(file)

    assert said in refusal(file)


@pytest.mark.parametrize("fault", [unreadable, pytest.param(pipe, marks=posix), pytest.param(dangling, marks=posix)])
def test_a_projects_file_that_is_none_is_refused_and_not_passed_over(
    tmp_path: Path, fault: Callable[[Path], object]
) -> None:
    file = tmp_path / "goat-mcp.yaml"
    file.write_text("mode: plan\n")

    fault(file)

    with pytest.raises(BrokenFile):
        find_project_file(tmp_path)


def test_a_project_without_a_file_has_none(tmp_path: Path) -> None:
    assert find_project_file(tmp_path) is None
    assert find_project_file(tmp_path / "nowhere") is None


def test_an_empty_directory_of_that_name_says_nothing(tmp_path: Path) -> None:
    # R-PROC-3, 6: it keeps the name while a sandboxed command runs, and a crash may leave it.
    (tmp_path / "goat-mcp.yaml").mkdir()

    assert find_project_file(tmp_path) is None


def test_a_directory_of_that_name_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "goat-mcp.yaml").mkdir()
    (tmp_path / "goat-mcp.yaml/x").touch()

    with pytest.raises(BrokenFile, match="is not a regular file"):
        find_project_file(tmp_path)
