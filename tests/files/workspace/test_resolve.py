"""What a path means, by its text alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace, WorkspacePath
from goat_mcp.files.workspace.beneath import Kernel
from goat_mcp.files.workspace.roots import Roots
from tests.files.workspace.conftest import Ground


def refusal(workspace: Workspace, asked: str) -> ToolError:
    with pytest.raises(ToolError) as refused:
        workspace.resolve(asked)
    return refused.value


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace(tmp_path / "ws", lock_folder=tmp_path / "locks", kernel=Kernel())


@pytest.mark.parametrize("asked", ["@src/a.py", "@/src/a.py", "{root}/src/a.py", "{root}//src/./a.py"])
def test_one_file_has_several_spellings(workspace: Workspace, asked: str) -> None:
    path = workspace.resolve(asked.format(root=workspace.primary))

    assert path == WorkspacePath(workspace.primary, "src/a.py")
    assert str(path) == f"{workspace.primary}/src/a.py"


@pytest.mark.parametrize("asked", ["@", "@/", "{root}", "{root}/"])
def test_a_path_may_be_a_root_itself(workspace: Workspace, asked: str) -> None:
    assert workspace.resolve(asked.format(root=workspace.primary)).path == workspace.primary


def test_a_relative_path_is_refused_with_the_absolute_one_probably_meant(workspace: Workspace) -> None:
    error = refusal(workspace, "src/./x/../a.py")

    assert (error.code, error.message) == (ErrorCode.PATH_RELATIVE, "not an absolute path: src/./x/../a.py")
    assert error.facts == {"absolute_path": f"{workspace.primary}/src/a.py"}
    assert f"{workspace.primary}/src/a.py" in error.suggestion


@pytest.mark.parametrize("asked", ["~root/.ssh/id_rsa", "$HOME/a", "file:///etc/passwd", "..%2fout%2fsecret.txt"])
def test_paths_are_literal(workspace: Workspace, asked: str) -> None:
    error = refusal(workspace, asked)

    assert error.code == ErrorCode.PATH_RELATIVE
    assert error.facts == {"absolute_path": f"{workspace.primary}/{'/'.join(filter(None, asked.split('/')))}"}


@pytest.mark.parametrize(
    "asked",
    [
        "../out/secret.txt",
        "@../out/secret.txt",
        "@/../../etc/passwd",
        "{root}/../out/secret.txt",
        "{root}-evil/secret.txt",
        "{root}/a/../../ws-evil/x",
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "/",
    ],
)
def test_what_leads_out_by_its_text_is_outside(workspace: Workspace, asked: str) -> None:
    error = refusal(workspace, asked.format(root=workspace.primary))

    assert error.code == ErrorCode.PATH_OUTSIDE
    assert error.message == f"outside the allowed roots: {asked.format(root=workspace.primary)}"
    assert str(workspace.primary) in error.suggestion


@pytest.mark.parametrize("asked", ["", "a\0/../../out/secret.txt", "{root}/a\0b", "{root}/\ud800"])
def test_what_is_no_path_is_bad_input(workspace: Workspace, asked: str) -> None:
    assert refusal(workspace, asked.format(root=workspace.primary)).code == ErrorCode.INPUT


def test_dots_that_go_out_and_come_back_are_inside(workspace: Workspace) -> None:
    root = workspace.primary

    assert workspace.resolve(f"{root}/../ws/a").path == root / "../ws/a"
    assert workspace.resolve(f"/nowhere/..{root}/a").path == root / "a"


def test_without_roots_the_answer_names_the_setting(tmp_path: Path) -> None:
    workspace = Workspace(lock_folder=tmp_path)

    for asked in ("/a", "a", "@a"):
        error = refusal(workspace, asked)
        assert error.code == ErrorCode.NO_WORKSPACE
        assert "--workspace" in error.suggestion


def test_a_root_given_through_a_link_is_known_by_both_spellings(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("text")
    (tmp_path / "link").symlink_to("real")
    workspace = Workspace(tmp_path / "link", lock_folder=tmp_path / "locks", kernel=kernel)

    for spelling in ("link", "real"):
        with workspace.open_file(workspace.resolve(f"{tmp_path}/{spelling}/a")) as file:
            assert (file.read(), file.real_path) == (b"text", tmp_path / "real" / "a")
    assert workspace.roots == (tmp_path / "real",)


def test_a_root_given_with_a_trailing_slash_or_dots_is_the_same_root(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()

    for given_as in (f"{tmp_path}/ws/", f"{tmp_path}/ws/../ws/."):
        assert Workspace(Path(given_as), lock_folder=tmp_path).roots == (tmp_path / "ws",)


def test_of_nested_roots_the_deepest_is_taken(tmp_path: Path) -> None:
    (tmp_path / "ws" / "sub").mkdir(parents=True)
    roots = (tmp_path / "ws", tmp_path / "ws" / "sub")

    for workspace in (Workspace(*roots, lock_folder=tmp_path), Workspace(*reversed(roots), lock_folder=tmp_path)):
        assert workspace.resolve(f"{tmp_path}/ws/sub/a") == WorkspacePath(tmp_path / "ws" / "sub", "a")
        assert workspace.resolve(f"{tmp_path}/ws/subway") == WorkspacePath(tmp_path / "ws", "subway")


@pytest.mark.parametrize(
    "root",
    [
        "/dev",
        "/dev/shm",
        pytest.param("/proc", marks=pytest.mark.linux_only("other kernels have no such folder")),
        pytest.param("/sys/kernel", marks=pytest.mark.linux_only("other kernels have no such folder")),
    ],
)
def test_the_kernels_own_folders_are_no_roots(tmp_path: Path, root: str) -> None:
    with pytest.raises(ToolError) as refused:
        Workspace(Path(root), lock_folder=tmp_path)

    assert refused.value.code == ErrorCode.PATH_OUTSIDE


def test_a_missing_root_is_named_and_the_old_ones_stay(ground: Ground) -> None:
    with pytest.raises(ToolError) as refused:
        ground.workspace.adopt_roots([ground.out, ground.top / "missing"])

    assert refused.value.code == ErrorCode.NOT_FOUND
    assert str(ground.top / "missing") in refused.value.message
    assert ground.workspace.roots == (ground.top,)


def test_adopted_roots_replace_the_old_ones_also_for_paths_already_resolved(ground: Ground, tmp_path: Path) -> None:
    (ground.top / "a").write_text("text")
    (tmp_path / "other").mkdir()
    path = ground.workspace.resolve("@a")

    ground.workspace.adopt_roots([tmp_path / "other"])

    with pytest.raises(ToolError) as refused:
        ground.workspace.open_file(path)
    assert refused.value.code == ErrorCode.PATH_OUTSIDE
    assert ground.workspace.primary == tmp_path / "other"


_NAMES = st.lists(st.sampled_from(["..", ".", "", "a", "ws", "ws-evil", "%2e%2e", "~", " ", "é", "..."]), max_size=9)


@given(names=_NAMES)
def test_no_text_resolves_to_a_place_that_lies_outside_when_read_as_text(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    top = tmp_path_factory.getbasetemp() / "resolve" / "ws"
    top.mkdir(parents=True, exist_ok=True)
    workspace = Workspace(top, lock_folder=top.parent / "locks")

    try:
        path = workspace.resolve("/".join([str(top), *names]))
    except ToolError as refused:
        assert refused.code == ErrorCode.PATH_OUTSIDE
    else:
        plain = Path(_collapsed(str(path)))
        assert plain == top or top in plain.parents
        assert Roots((top,), ()).of(path) is not None


def _collapsed(path: str) -> str:
    kept: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del kept[-1:]
        elif name not in ("", "."):
            kept.append(name)
    return "/" + "/".join(kept)
