"""A directory of its own for each principal: names that never meet, and nothing else that could be there counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL, OPERATOR
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace import personal_roots as module
from goat_mcp.files.workspace.personal_roots import PersonalRoots, directory_name

NAMES = (
    *("user:ada", "user:Ada", "user:ada ", "user:../ada", "user:/etc", "user:.", "user:..", "user:", "profile:ada"),
    *(
        "user:a" * 50,
        "user:a" * 51,
        "user:\u00e9",
        "user:e\u0301",
        "user:a\x00b",
        "user:a_b",
        "user:a/b",
        "user:\ud800",
    ),
)


class Caller:
    principal = LOCAL


@pytest.fixture
def caller() -> Caller:
    return Caller()


def workspace(tmp_path: Path, caller: Caller) -> Workspace:
    shared = tmp_path / "shared"
    shared.mkdir(exist_ok=True)
    personal = PersonalRoots(shared, lambda: caller.principal, ())
    return Workspace(shared, own_roots=personal.now)


def test_names_of_directories_are_plain_and_never_the_same() -> None:
    names = [directory_name(name) for name in NAMES]

    assert len(set(map(str.casefold, names))) == len(NAMES)
    for name in names:
        assert name.isascii() and "/" not in name and not name.startswith((".", "-")) and len(name) <= 57


def test_each_principal_reaches_its_own_directory_and_no_other(tmp_path: Path, caller: Caller) -> None:
    files = workspace(tmp_path, caller)
    roots: list[Path] = []
    for name in NAMES:
        caller.principal = name
        roots.append(files.primary)
        (files.primary / "secret").write_text(name, "utf-8", "surrogatepass")

    assert {root.stat().st_mode & 0o777 for root in roots} == {0o700}
    assert {root.parent for root in roots} == {tmp_path / "shared"}
    for name in NAMES:
        caller.principal = name
        for root in roots:
            for spelled in (f"{root}/secret", f"@/../{root.name}/secret", str(root), str(root.parent)):
                if root == files.primary and spelled != str(root.parent):
                    continue
                with pytest.raises(ToolError) as refused:
                    files.resolve(spelled)
                assert refused.value.code is ErrorCode.PATH_OUTSIDE
        with files.open_file(files.resolve("@/secret")):
            assert (files.primary / "secret").read_text("utf-8", "surrogatepass") == name


def test_a_link_into_another_directory_leads_nowhere(tmp_path: Path, caller: Caller) -> None:
    files = workspace(tmp_path, caller)
    caller.principal = "user:bob"
    (files.primary / "secret").write_text("bob's")
    bobs = files.primary
    caller.principal = "user:ada"
    (files.primary / "link").symlink_to(bobs / "secret")

    with pytest.raises(ToolError) as refused:
        files.open_file(files.resolve("@/link"))

    assert refused.value.code is ErrorCode.PATH_OUTSIDE


@pytest.mark.parametrize("what", ["link", "file"])
def test_what_is_no_directory_of_ours_is_not_used(tmp_path: Path, caller: Caller, what: str) -> None:
    files = workspace(tmp_path, caller)
    place = tmp_path / "shared" / directory_name("user:ada")
    if what == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.write_text("")
    caller.principal = "user:ada"

    with pytest.raises(ToolError) as refused:
        files.resolve("@/x")

    assert "cannot be used" in refused.value.message
    assert str(tmp_path) not in refused.value.message


def test_a_directory_that_others_could_enter_is_closed_to_them(tmp_path: Path, caller: Caller) -> None:
    files = workspace(tmp_path, caller)
    place = tmp_path / "shared" / directory_name("user:ada")
    place.mkdir(mode=0o755)
    caller.principal = "user:ada"

    assert files.primary.stat().st_mode & 0o777 == 0o700


def test_owners_work_in_the_directory_that_holds_all(tmp_path: Path, caller: Caller) -> None:
    files = workspace(tmp_path, caller)
    for owner in (LOCAL, OPERATOR):
        caller.principal = owner
        assert files.primary == tmp_path / "shared"


def test_many_principals_hold_few_directories_open(
    tmp_path: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    shared = tmp_path / "shared"
    shared.mkdir()
    personal = PersonalRoots(shared, lambda: caller.principal, ())
    for number in range(10):
        caller.principal = f"user:{number}"
        personal.now()

    assert len(personal._open) == 3  # pyright: ignore[reportPrivateUsage]  # what grows without it
