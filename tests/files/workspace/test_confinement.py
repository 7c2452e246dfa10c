"""Nothing outside the roots is read or changed, whatever links and races say."""

from __future__ import annotations

import gc
import os
import socket
import stat
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import AnyVersion, Workspace
from goat_mcp.files.workspace.beneath import Kernel
from tests.files.workspace.conftest import CANARY, Ground, names_in
from tests.files.workspace.exchange import swapping
from tests.own_process import open_files
from tests.repetitions import examples, times

READS_IN_A_RACE = times(3000, in_full_run=30_000)
WRITES_IN_A_RACE = 300
RACE_LIMIT_S = times(60, in_full_run=600)


@pytest.mark.parametrize(
    ("link", "target", "asked"),
    [
        ("d", "{out}", "@d/secret.txt"),
        ("d", "../out", "@d/secret.txt"),
        ("f", "{out}/secret.txt", "@f"),
        ("f", "../out/secret.txt", "@f"),
        ("up", "..", "@up/out/secret.txt"),
        ("top", "/", "@top{out}/secret.txt"),
        ("out", ".", "@out/out/../../out/secret.txt"),
        ("magic", "/proc/self/root{out}/secret.txt", "@magic"),
        ("magic", "/proc/self/cwd", "@magic/pyproject.toml"),
        ("device", "/dev/zero", "@device"),
    ],
)
def test_a_link_that_leads_out_is_refused_without_a_word_on_where(
    ground: Ground, link: str, target: str, asked: str
) -> None:
    (ground.top / link).symlink_to(target.format(out=ground.out))
    asked = asked.format(out=ground.out)

    error = ground.refused_read(asked)

    assert error.code == ErrorCode.PATH_OUTSIDE
    assert error.message == f"outside the allowed roots: {ground.workspace.primary}/{asked[1:]}"


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("plain", "sub/a"),
        ("sub/up", "../sub/a"),
        ("absolute", "{top}/sub/a"),
        ("out-and-in", "../ws/sub/a"),
        ("absolute-out-and-in", "{top}/../ws/sub/a"),
        ("chain", "plain-2"),
    ],
)
def test_a_link_that_stays_inside_is_followed(ground: Ground, link: str, target: str) -> None:
    (ground.top / "sub").mkdir()
    (ground.top / "sub" / "a").write_text("text")
    (ground.top / "plain-2").symlink_to("sub/a")
    (ground.top / link).symlink_to(target.format(top=ground.top))

    path = ground.workspace.resolve(f"@{link}")

    assert ground.read(f"@{link}") == b"text"
    assert ground.workspace.real_path(path) == ground.top / "sub" / "a"
    with ground.workspace.open_file(path) as file:
        assert file.real_path == ground.top / "sub" / "a"


def test_dots_after_a_link_mean_the_parent_of_where_it_leads(ground: Ground) -> None:
    (ground.top / "deep" / "er").mkdir(parents=True)
    (ground.top / "deep" / "a").write_text("beside the target")
    (ground.top / "a").write_text("beside the link")
    (ground.top / "link").symlink_to("deep/er")

    assert ground.read("@link/../a") == b"beside the target"


def test_a_link_may_lead_from_one_root_into_another(tmp_path: Path, kernel: Kernel) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "a").write_text("text")
    (tmp_path / "one" / "absolute").symlink_to(tmp_path / "two" / "a")
    (tmp_path / "one" / "relative").symlink_to("../two/a")
    workspace = Workspace(tmp_path / "one", tmp_path / "two", lock_folder=tmp_path / "locks", kernel=kernel)

    for name in ("absolute", "relative"):
        with workspace.open_file(workspace.resolve(f"@{name}")) as file:
            assert (file.read(), file.real_path) == (b"text", tmp_path / "two" / "a")


@pytest.mark.parametrize("asked", ["@loop", "@a/b/c", "@many-00"])
def test_links_in_a_circle_or_without_end_are_refused(ground: Ground, asked: str) -> None:
    (ground.top / "loop").symlink_to("loop")
    (ground.top / "a").symlink_to("b")
    (ground.top / "b").symlink_to("a")
    for number in range(50):
        (ground.top / f"many-{number:02}").symlink_to(f"many-{number + 1:02}")
    (ground.top / "many-50").write_text("too far")

    assert ground.refused_read(asked).code == ErrorCode.IO


@pytest.mark.parametrize(
    ("link", "target", "asked"),
    [
        ("dangling", "{out}/new.txt", "@dangling"),
        ("d", "{out}", "@d/sub/new.txt"),
        ("d", "{out}", "@d/new.txt"),
        ("secret", "{out}/secret.txt", "@secret"),
        ("n.ipynb", "../out/secret.txt", "@n.ipynb"),
        ("up", "..", "@up/out/new.txt"),
        ("up", "..", "@up/new/new.txt"),
    ],
)
def test_nothing_is_written_or_created_outside(ground: Ground, link: str, target: str, asked: str) -> None:
    (ground.top / link).symlink_to(target.format(out=ground.out))
    path = ground.workspace.resolve(asked)

    for act in (
        lambda: ground.workspace.write_file(path, b"x", expect=AnyVersion()),
        lambda: ground.workspace.write_file(path, b"x", expect=None),
        lambda: ground.workspace.real_path(path),
        lambda: ground.workspace.stat(path),
    ):
        with pytest.raises(ToolError) as refused:
            act()
        assert refused.value.code == ErrorCode.PATH_OUTSIDE
    assert names_in(ground.top.parent) == ["out", "ws"]


def test_a_dangling_link_inside_creates_nothing_either(ground: Ground) -> None:
    (ground.top / "dangling").symlink_to("new.txt")
    (ground.top / "folder").symlink_to("new-folder")

    for asked in ("@dangling", "@folder/a"):
        with pytest.raises(ToolError) as refused:
            ground.workspace.write_file(ground.workspace.resolve(asked), b"x", expect=AnyVersion())
        assert refused.value.code == ErrorCode.NOT_FOUND
        assert "does not exist" in refused.value.message
    assert names_in(ground.top) == ["dangling", "folder"]


def test_a_readable_root_can_be_read_and_never_written(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "ws").mkdir()
    workspace = Workspace(
        tmp_path / "ws", readable=(tmp_path / "spill",), lock_folder=tmp_path / "locks", kernel=kernel
    )
    path = workspace.resolve(str(tmp_path / "spill" / "out.txt"))
    assert workspace.stat(workspace.resolve("@")) is not None
    with pytest.raises(ToolError) as early:
        workspace.open_file(path)

    (tmp_path / "spill").mkdir()
    (tmp_path / "spill" / "out.txt").write_text("text")
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "spill" / "out.txt")

    assert early.value.code == ErrorCode.NOT_FOUND
    for asked in (str(path), "@link"):
        with workspace.open_file(workspace.resolve(asked)) as file:
            assert file.read() == b"text"
        with pytest.raises(ToolError) as refused:
            workspace.write_file(workspace.resolve(asked), b"x", expect=AnyVersion())
        assert refused.value.code == ErrorCode.PATH_OUTSIDE
    assert workspace.roots == (tmp_path / "ws",)
    assert not workspace.contains(tmp_path / "spill" / "out.txt")
    assert workspace.contains(tmp_path / "ws" / "a")


def test_a_readable_root_inside_a_writable_one_stays_unwritten(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "ws" / "spill").mkdir(parents=True)
    workspace = Workspace(
        tmp_path / "ws", readable=(tmp_path / "ws" / "spill",), lock_folder=tmp_path / "locks", kernel=kernel
    )

    with pytest.raises(ToolError) as refused:
        workspace.write_file(workspace.resolve("@spill/a"), b"x", expect=None)

    assert refused.value.code == ErrorCode.PATH_OUTSIDE
    assert names_in(tmp_path / "ws" / "spill") == []


@pytest.mark.parametrize(
    "asked",
    [
        "/dev/null",
        *(
            pytest.param(asked, marks=pytest.mark.linux_only("other kernels have no such folder"))
            for asked in ("/proc/self/environ", "/sys/kernel", "/proc", "/usr/../proc/version")
        ),
    ],
)
def test_the_kernels_folders_are_refused_even_below_a_root(tmp_path: Path, kernel: Kernel, asked: str) -> None:
    workspace = Workspace(Path("/"), lock_folder=tmp_path, kernel=kernel)
    (tmp_path / "link").symlink_to(asked)
    (tmp_path / "relative").symlink_to("../" * (len(tmp_path.parts) - 1) + asked[1:])

    for spelling in (asked, f"{tmp_path}/link", f"{tmp_path}/relative"):
        with pytest.raises(ToolError) as refused:
            workspace.open_file(workspace.resolve(spelling))
        assert refused.value.code == ErrorCode.PATH_OUTSIDE
    with workspace.open_directory(workspace.resolve("/")) as directory:
        assert directory.real_path == Path("/")


@pytest.mark.linux_only("mounts what the kernel says of itself")
def test_a_proc_mounted_inside_the_workspace_is_refused(ground: Ground) -> None:
    with mounted(ground.top / "proc", "-t", "proc", "proc"):
        error = ground.refused_read("@proc/version")

    assert error.code == ErrorCode.PATH_OUTSIDE


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_what_is_no_regular_file_answers_at_once(ground: Ground, kind: str) -> None:
    make_special(ground.top, kind)

    read = ground.refused_read("@special")
    with pytest.raises(ToolError) as written:
        ground.workspace.write_file(ground.workspace.resolve("@special"), b"x", expect=AnyVersion())

    # Nobody ever comes to the other end: who waited would be here for good.
    assert read.code == written.value.code == ErrorCode.NOT_REGULAR
    assert not stat.S_ISREG((ground.top / "special").lstat().st_mode)


def test_a_directory_is_not_a_file_and_a_file_no_directory(ground: Ground) -> None:
    (ground.top / "folder").mkdir()
    (ground.top / "file").write_text("x")

    assert ground.refused_read("@folder").code == ErrorCode.DIRECTORY
    assert ground.refused_read("@").code == ErrorCode.DIRECTORY
    for asked, code in (("@file", ErrorCode.NOT_A_DIRECTORY), ("@nothing", ErrorCode.NOT_FOUND)):
        with pytest.raises(ToolError) as refused:
            ground.workspace.open_directory(ground.workspace.resolve(asked))
        assert refused.value.code == code
    with ground.workspace.open_directory(ground.workspace.resolve("@folder")) as directory:
        assert (directory.real_path, directory.directory.status().st_ino) == (
            ground.top / "folder",
            (ground.top / "folder").stat().st_ino,
        )


def test_a_name_that_is_too_long_is_bad_input(ground: Ground) -> None:
    path = ground.workspace.resolve("@" + "x" * 5000)

    assert ground.refused_read("@" + "x" * 5000).code == ErrorCode.INPUT
    with pytest.raises(ToolError) as refused:
        ground.workspace.write_file(path, b"x", expect=AnyVersion())
    assert refused.value.code == ErrorCode.INPUT


def test_stat_tells_nothing_from_something(ground: Ground) -> None:
    (ground.top / "file").write_text("four")
    (ground.top / "link").symlink_to("file")

    found = ground.workspace.stat(ground.workspace.resolve("@link"))

    assert found is not None
    assert (stat.S_ISREG(found.st_mode), found.st_size) == (True, 4)
    for asked in ("@nothing", "@no/thing", "@file/below", "@no/../file"):
        assert ground.workspace.stat(ground.workspace.resolve(asked)) is None


def test_a_root_that_was_deleted_and_made_anew_is_found_again(ground: Ground) -> None:
    (ground.top / "a").write_text("old")
    assert ground.read("@a") == b"old"

    (ground.top / "a").unlink()
    ground.top.rmdir()
    assert ground.refused_read("@a").code == ErrorCode.NOT_FOUND
    ground.top.mkdir()
    (ground.top / "a").write_text("new")

    assert ground.read("@a") == b"new"


def test_a_root_that_became_a_link_stays_what_it_was(ground: Ground) -> None:
    (ground.top / "secret.txt").write_text("mine")
    moved = ground.top.rename(ground.top.with_name("moved"))
    ground.top.symlink_to(ground.out)

    assert ground.read("@secret.txt") == b"mine"
    ground.workspace.write_file(ground.workspace.resolve("@secret.txt"), b"still mine", expect=AnyVersion())
    assert (moved / "secret.txt").read_bytes() == b"still mine"


def test_no_descriptor_stays_open(ground: Ground) -> None:
    (ground.top / "a").write_text("x")
    (ground.top / "out").symlink_to(ground.out)
    os.mkfifo(ground.top / "pipe")

    def everything() -> None:
        for asked in ("@a", "@out/secret.txt", "@pipe", "@nothing", "@no/thing", "@", "@a/b", "@a/../../x/../ws/a"):
            for act in (
                lambda: ground.read(asked),  # noqa: B023 - called within the same turn
                lambda: ground.workspace.open_directory(ground.workspace.resolve(asked)).__exit__(None, None, None),  # noqa: B023
                lambda: ground.workspace.stat(ground.workspace.resolve(asked)),  # noqa: B023
                lambda: ground.workspace.write_file(ground.workspace.resolve(asked), b"x", expect=None),  # noqa: B023
            ):
                with suppress(ToolError):
                    act()

    everything()
    gc.collect()  # roots of earlier tests
    before = open_files()
    everything()

    assert open_files() <= before


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_reads_leak_nothing_while_something_is_swapped_with_a_link(ground: Ground, swapped: str) -> None:
    (ground.top / "race").mkdir()
    (ground.top / "race" / "secret.txt").write_text("inside")
    if swapped == "folder":
        one, other = ground.top / "race", ground.top / "other"
        other.symlink_to(ground.out)
    else:
        one, other = ground.top / "race" / "secret.txt", ground.top / "other"
        other.symlink_to(ground.out / "secret.txt")
    answers: Counter[str] = Counter()

    with swapping(one, other):
        for _ in turns(READS_IN_A_RACE, lambda: answers["inside"] > 100 and answers["E_PATH_OUTSIDE"] > 100):
            try:
                answer = ground.read("@race/secret.txt").decode()
            except ToolError as refused:
                answer = str(refused.code)
            answers[answer] += 1

    assert CANARY not in answers
    assert set(answers) <= {"inside", "E_PATH_OUTSIDE", "E_NOT_FOUND", "E_IO"}


def test_writes_stay_inside_while_a_folder_is_swapped_with_a_link(ground: Ground) -> None:
    (ground.top / "race").mkdir()
    (ground.top / "other").symlink_to(ground.out)
    answers: Counter[str] = Counter()

    with swapping(ground.top / "race", ground.top / "other"):
        for turn in turns(WRITES_IN_A_RACE, lambda: answers["written"] > 20 and answers["E_PATH_OUTSIDE"] > 20):
            path = ground.workspace.resolve(f"@race/new-{turn % 100}/secret.txt")
            try:
                ground.workspace.write_file(path, b"overwritten", expect=AnyVersion())
                answers["written"] += 1
            except ToolError as refused:
                answers[str(refused.code)] += 1

    assert set(answers) <= {"written", "E_PATH_OUTSIDE", "E_NOT_FOUND", "E_IO"}
    assert ground.leftovers() == []


def turns(at_least: int, enough: Callable[[], bool]) -> Iterator[int]:
    """Numbers until both sides of a race were seen often enough."""
    limit_s = time.monotonic() + RACE_LIMIT_S
    for turn in count():
        if turn >= at_least and enough():
            return
        assert time.monotonic() < limit_s, "one side of the race never won"
        yield turn


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Folders, files and links: (path, "dir" | "file" | link target)."""
    names = st.sampled_from(["a", "b", "c"])
    paths = st.lists(names, min_size=1, max_size=3).map("/".join)
    steps = st.lists(st.sampled_from(["a", "b", "c", "..", "ws", "out", "secret.txt"]), min_size=1, max_size=4)
    targets = st.one_of(steps.map("/".join), steps.map(lambda names: "{base}/" + "/".join(names)))
    return draw(st.lists(st.tuples(paths, st.one_of(st.sampled_from(["dir", "file"]), targets)), max_size=8))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees(), asked=st.lists(st.sampled_from(["a", "b", "c", "..", "ws"]), max_size=5).map("/".join))
def test_both_ways_of_opening_agree_and_mean_what_the_system_means(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[str, str]], asked: str
) -> None:
    base = tmp_path_factory.mktemp("tree")
    top = base / "ws"
    grow(top, base, tree)
    (base / "out").mkdir()
    (base / "out" / "secret.txt").write_text(CANARY)

    answers = [
        answer(Workspace(top, lock_folder=base / "locks", kernel=kernel), asked)
        for kernel in (Kernel(), Kernel(without_openat2=True))
    ]

    assert answers[0] == answers[1]
    code, real = answers[0]
    if real is not None:
        assert os.path.samestat(Path(real).stat(), (top / asked).stat())
        assert Path(os.path.realpath(top / asked)) == Path(real)
        assert top in (Path(real), *Path(real).parents)
    else:
        assert code in ("E_PATH_OUTSIDE", "E_NOT_FOUND", "E_NOT_A_DIRECTORY", "E_IO", "E_DIRECTORY")


def grow(top: Path, base: Path, tree: list[tuple[str, str]]) -> None:
    top.mkdir()
    for path, kind in tree:
        location = top / path
        if Path(os.path.realpath(location.parent)) != location.parent:
            continue  # a link is in the way, and may lead anywhere
        try:
            location.parent.mkdir(parents=True, exist_ok=True)
            if kind == "dir":
                location.mkdir()
            elif kind == "file":
                location.open("x").close()
            else:
                location.symlink_to(kind.format(base=base))
        except OSError:
            continue  # its place is taken


def answer(workspace: Workspace, asked: str) -> tuple[str, str | None]:
    try:
        path = workspace.resolve(f"@/{asked}")
        with workspace.open_file(path) as file:
            return "", str(file.real_path)
    except ToolError as refused:
        return str(refused.code), None


def make_special(top: Path, kind: str) -> None:
    path = top / "special"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        before = Path.cwd()
        os.chdir(top)  # a socket's path is short
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind("special")
        finally:
            os.chdir(before)
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("making a device needs root")


@contextmanager
def mounted(folder: Path, *arguments: str) -> Generator[None]:
    folder.mkdir(exist_ok=True)
    mount = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True, check=False)
    if mount.returncode != 0:
        pytest.skip(f"cannot mount here: {mount.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
