"""File systems that take differently spelled names for one: what the jail compares, and what it shows and stores."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.permissions.command_files import rule_on_files
from goat_mcp.calls.permissions.patterns import PathPatterns, parse_path_pattern
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import FileRules, RuleSet
from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace, directory
from goat_mcp.files.workspace.beneath import Kernel
from goat_mcp.files.workspace.directory import folds_names, open_directory, spelled_path
from goat_mcp.files.workspace.names import comparable
from goat_mcp.files.workspace.opened_file import AnyVersion
from goat_mcp.files.workspace.protected import protected_reason
from tests.files.changes.keeping import Desk
from tests.files.workspace.conftest import names_in, open_as_on_macos
from tests.files.workspace.folding import as_made, decomposed, fold_names

pytestmark = pytest.mark.posix_only("its double stands on directory descriptors")
KELVIN, LONG_S, COMPOSED = "\u212a", "\u017f", "\u00e9"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.fixture(params=[(as_made, False), (as_made, True), (decomposed, True)], ids=["drvfs", "APFS", "HFS+"])
def top(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder on such a file system; beside it, `Exact` is on another one."""
    here = tmp_path.resolve() / "Folding"
    here.mkdir()
    disk: Callable[[str], str]
    disk, is_mac = request.param
    fold_names(monkeypatch, here, disk)
    if is_mac:
        open_as_on_macos(monkeypatch)
    (here / "A file").touch()
    return here


def workspace_of(*roots: Path, deny: str = "", **more: object) -> Workspace:
    made: Workspace
    rules = FileRules(RuleSet.parse(deny=[deny] if deny else []), lambda: made.roots)
    made = Workspace(*roots, lock_folder=roots[0].parent / "locks", why_denied=rules.why_denied, **more)  # type: ignore[arg-type]  # as Workspace has them
    return made


def refusal(workspace: Workspace, asked: object, *, writes: bool = False) -> ErrorCode | None:
    try:
        path = workspace.resolve(str(asked))
        if writes:
            workspace.write_file(path, b"new", expect=AnyVersion())
        else:
            workspace.open_file(path).__exit__(None, None, None)
    except ToolError as refused:
        return refused.code
    return None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("README.md", "readme.MD"),
        (COMPOSED, DECOMPOSED),
        (COMPOSED.upper(), DECOMPOSED),
        ("kelvin", f"{KELVIN}elvin"),
        (".ssh", f".{LONG_S}sh"),
        ("stra\u00dfe", "STRASSE"),
        (".git", ".g\u200cit"),
        ("\u03c3", "\u03c2"),
        ("\u1fb3", "\u1fbc"),
        ("\uac00", "\u1100\u1161"),
    ],
)
def test_names_that_some_file_system_takes_for_one_are_comparable(one: str, other: str) -> None:
    assert comparable(one) == comparable(other)
    assert comparable(comparable(one)) == comparable(one)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("e", COMPOSED), ("a b", "ab"), ("\u0131", "i"), ("a.", "a")])
def test_other_names_stay_different(one: str, other: str) -> None:
    assert comparable(one) != comparable(other)


@pytest.mark.linux_only("the folder beside it may be on such a file system, too")
def test_whether_names_are_folded_is_seen_on_disk_and_not_guessed(top: Path) -> None:
    (exact := top.parent / "Exact").mkdir()
    (exact / "Name").touch()
    (twice := top.parent / "Twice").mkdir()
    (twice / "a").touch()
    os.link(twice / "a", twice / "A")
    (empty := top / "Empty").mkdir()

    assert folds_names(str(top)) and folds_names(str(empty)) and folds_names(str(top / "not there yet"))
    assert not folds_names(str(exact)) and not folds_names(str(twice)) and not folds_names("/")


@pytest.mark.linux_only("the folder beside it may be on such a file system, too")
def test_a_root_is_known_by_every_spelling_and_shown_as_it_is_on_disk(top: Path) -> None:
    (top / "Project").mkdir()
    (top / "Project" / "File").write_text("x")

    workspace = workspace_of(top / "pROJECT")

    assert workspace.roots == (top / "Project",)
    assert refusal(workspace, top / "PROJECT" / "file") is None
    assert workspace.contains(top / "project" / "FILE")
    assert refusal(workspace, top.parent / "PROJECT" / "file") == ErrorCode.PATH_OUTSIDE
    assert spelled_path(top / "project" / "new") == top / "Project" / "new"


def test_what_is_read_and_written_keeps_its_spelling(top: Path) -> None:
    with open_directory(top) as made:
        made.make(f"Caf{COMPOSED}", 0o777)
    (folder,) = top.glob("Caf*")
    (folder / "ReadMe.md").write_text("old")
    workspace = workspace_of(top)
    asked = workspace.resolve(str(top / f"CAF{DECOMPOSED.upper()}" / "README.MD"))

    with workspace.open_file(asked) as file:
        read = file.real_path
    written = workspace.write_file(asked, b"new", expect=AnyVersion())

    assert read == written.real_path == workspace.real_path(asked) == folder / "ReadMe.md"
    assert (names_in(folder), (folder / "ReadMe.md").read_text()) == (["ReadMe.md"], "new")


def test_a_file_that_is_there_in_another_spelling_is_not_created(top: Path) -> None:
    (top / "Notes").write_text("old")
    workspace = workspace_of(top)

    with pytest.raises(ToolError) as refused:
        workspace.write_file(workspace.resolve(str(top / "NOTES")), b"new", expect=None)

    assert refused.value.code == ErrorCode.STALE and (top / "Notes").read_text() == "old"


def test_links_are_followed_by_any_spelling_and_lead_nowhere_else(top: Path) -> None:
    (out := top.parent / "out").mkdir()
    (out / "secret").write_text("x")
    (top / "Inside").mkdir()
    (top / "Inside" / "file").write_text("x")
    (top / "Down").symlink_to("INSIDE")
    (top / "Absolute").symlink_to(str(top).upper().replace(str(top.parent).upper(), str(top.parent)) + "/inside")
    (top / "Out").symlink_to(out)
    workspace = workspace_of(top)

    assert workspace.real_path(workspace.resolve(str(top / "down" / "FILE"))) == top / "Inside" / "file"
    assert refusal(workspace, top / "OUT" / "secret") == ErrorCode.PATH_OUTSIDE


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "new"])
@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ("Read(.env)", ".ENV"),
        ("Read(.ENV)", ".env"),
        ("Read(secrets/**)", "SECRETS/key"),
        ("Read(secrets/**)", "sub/../Secrets/Key"),
        ("Read(secrets)", f"{LONG_S}ecret{LONG_S}/key"),
        ("Read(*.key)", f"my.{KELVIN}EY"),
        (f"Read(caf{COMPOSED}/**)", f"Caf{DECOMPOSED}/x"),
        (f"Read(caf{DECOMPOSED}/**)", f"CAF{COMPOSED.upper()}/x"),
        (f"Read([{COMPOSED}]x)", f"{DECOMPOSED}X"),
        ("Read([[:upper:]]_x)", "a_x"),
        ("Read([A-z]x)", "_x"),
        ("Read({Secrets,other}/*)", "sEcrets/key"),
        ("Edit(.git/**)", ".Git/config"),
    ],
)
def test_a_denied_file_is_denied_by_every_spelling(top: Path, rule: str, asked: str, is_there: bool) -> None:
    (top / "sub").mkdir()
    path = Path(os.path.normpath(top / asked))
    if is_there:
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
    workspace = workspace_of(top, deny=rule)

    assert refusal(workspace, top / asked, writes=True) == ErrorCode.PERMISSION
    if is_there and rule.startswith("Read"):
        assert refusal(workspace, top / asked) == ErrorCode.PERMISSION
    assert refusal(workspace, top / "plain", writes=True) is None


@pytest.mark.linux_only("the folder beside it may be on such a file system, too")
def test_a_rule_holds_to_the_letter_where_the_file_system_does(top: Path) -> None:
    (exact := top.parent / "Exact").mkdir()
    for folder in (top, exact):
        (folder / "Secret").write_text("x")
    workspace = workspace_of(top, exact, deny="Read(secret)")
    allow = RuleSet.parse(allow=["Read(secret)", "Read(~/x)"]).allow
    roots = tuple(map(str, workspace.roots))

    assert refusal(workspace, exact / "Secret") is None
    assert refusal(workspace, top / "Secret") == ErrorCode.PERMISSION
    assert not list(allow.about_path(str(exact / "SECRET"), roots, "Read"))
    assert not list(allow.about_path(f"{Path.home()}/X", (str(exact),), "Read"))
    assert list(allow.about_path(str(top / "SECRET"), roots, "Read"))


@pytest.mark.linux_only("the folders beside it may be on such a file system, too")
def test_what_lies_in_no_root_is_compared_as_its_own_folder_has_it(top: Path) -> None:
    (exact := top.parent / "Exact").mkdir()
    (exact / "a").touch()
    deny = RuleSet.parse(deny=[f"Read(/{top}/secret/**)", f"Read(/{exact}/secret/**)"]).deny

    assert list(deny.about_path(f"{top}/SECRET/new", (str(exact),), "Read"))
    assert list(deny.about_path(f"{top}/SECRET/new", (), "Read"))
    assert not list(deny.about_path(f"{exact}/SECRET/new", (str(top),), "Read"))
    assert not list(deny.about_path("/x" * 2000, (str(top),), "Read"))


def test_rules_of_two_spellings_of_one_folder_all_hold(top: Path) -> None:
    patterns = PathPatterns(
        parse_path_pattern(f"/{name}", base) for name, base in (("a", str(top).upper()), ("b", str(top)))
    )

    assert patterns.match(f"{top}/A", (str(top),)) and patterns.match(f"{top}/B", (str(top),))
    assert not patterns.match(f"{top}/c", (str(top),))


def test_a_wildcard_stands_for_one_character_of_the_name_as_it_is_spelled(top: Path) -> None:
    assert refusal(workspace_of(top, deny="Edit(key?)"), top / "key\u1e9e", writes=True) == ErrorCode.PERMISSION


def test_a_file_that_is_removed_meanwhile_tells_nothing_about_its_folder(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := top / "Sub").mkdir()
    (folder / "b").touch()
    known = directory.PosixDirectory

    class Racing(known):
        def stat(self, name: str) -> os.stat_result:
            found = super().stat(name)
            (folder / "b").unlink(missing_ok=True)
            return found

    monkeypatch.setattr(directory, "PosixDirectory", Racing)

    assert folds_names(str(folder))


def test_commands_are_held_to_the_same_spellings(top: Path) -> None:
    bash = next(spec for spec in builtin_contracts() if spec.name == "Bash")
    deny = RuleSet.parse(deny=["Read(.env)", "Edit"]).deny
    other = str(top).replace("Folding", "FOLDING")

    def is_hit(command: str) -> bool:
        call = Call(bash, {"command": command}, roots=(str(top),), directory=str(top))
        return rule_on_files(deny, call) is not None

    for command in ("cat .ENV", f"cat {other}/.env", f"echo x > {other}/new", f"touch .{LONG_S}x"):
        assert is_hit(command), command
    for command in ("cat .envrc", "cat plain", f"echo x > {top.parent}/new"):
        assert not is_hit(command), command


@pytest.mark.parametrize(
    "path",
    [".GIT/config", ".g\u200cit/config", f".{LONG_S}{LONG_S}h/config", f".{KELVIN}ube/config", f"LEFTHOO{KELVIN}.yml"],
)
def test_what_other_programs_obey_is_protected_in_every_spelling(path: str) -> None:
    assert protected_reason(path) is not None


def test_a_private_folder_is_closed_by_every_spelling(top: Path) -> None:
    (top / "State" / "open").mkdir(parents=True)
    for name in ("journal", "open/spill"):
        (top / "State" / name).write_text("x")
    workspace = workspace_of(top, private=(top / "state",), readable=(top / "STATE" / "Open",))

    assert refusal(workspace, top / "STATE" / "journal") == ErrorCode.PATH_OUTSIDE
    assert refusal(workspace, top / "sTATE" / "new", writes=True) == ErrorCode.PATH_OUTSIDE
    assert refusal(workspace, top / "state" / "OPEN" / "spill") is None


@pytest.mark.anyio
async def test_two_spellings_of_a_file_wait_for_each_other(top: Path) -> None:
    workspace, events = workspace_of(top), list[str]()

    async def second() -> None:
        async with workspace.lock(top / "NEW"):
            events.append("second")

    async with anyio.create_task_group() as tasks, workspace.lock(top / "new"):
        tasks.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        events.append("first done")

    assert events == ["first done", "second"]


@pytest.mark.anyio
async def test_a_file_read_by_one_spelling_may_be_edited_by_another(top: Path) -> None:
    from goat_mcp.files.settings import FileOptions

    desk = Desk(top, options=FileOptions(read_before_write="strict"))
    path = desk.file("Notes.txt", "one\n")

    await desk.read(desk.top / "NOTES.TXT")
    await desk.edit(desk.top / "notes.txt", "one", "two")

    assert path.read_text() == "two\n" and names_in(desk.top) == ["Notes.txt"]


@pytest.mark.anyio
async def test_a_staged_file_is_one_by_every_spelling(top: Path) -> None:
    desk = Desk(top, review_mode=True)

    await desk.write(desk.top / "New.txt", "one\n")
    read = await desk.read(desk.top / "NEW.TXT")
    await desk.edit(desk.top / "new.txt", "one", "two")

    (staged,) = desk.review.oldest_first("local")
    assert "one" in read.text and desk.queue.data(staged) == b"two\n"
    await desk.review.apply(staged.id)
    assert len(names_in(desk.top)) == 1


@pytest.mark.anyio
async def test_undo_knows_a_file_whose_spelling_has_changed(top: Path) -> None:
    desk = Desk(top)
    path = desk.file("notes", "one\n")
    await desk.edit(path, "one", "two")
    path.rename(desk.top / "Notes")
    await desk.edit(desk.top / "NOTES", "two", "three")

    attempts = await desk.undo_all()

    assert [attempt.outcome.value for attempt in attempts] == ["undone", "undone"]
    assert (desk.top / "Notes").read_text() == "one\n" and names_in(desk.top) == ["Notes"]


@pytest.mark.anyio
async def test_an_older_change_under_another_spelling_waits_for_the_newer_one(top: Path) -> None:
    desk = Desk(top)
    path = desk.file("notes", "one\n")
    await desk.edit(path, "one", "two")
    path.rename(desk.top / "Notes")
    await desk.edit(desk.top / "NOTES", "two", "three")
    (desk.top / "Notes").write_text("two\n")

    newer, older = await desk.undo_all()

    assert newer.outcome.value == "nothing_to_do" and older.outcome.value == "undone"
    (desk.top / "Notes").write_text("by hand\n")
    attempts = await desk.undo().run([newer.change, older.change])
    assert "has changed since" in attempts[0].why and "a later change" in attempts[1].why


@pytest.mark.linux_only("the folder beside it may be on such a file system, too")
def test_on_a_file_system_that_goes_by_the_letter_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "A").write_text("upper")
    (tmp_path / "a").write_text("lower")
    for kernel in (Kernel(), Kernel(without_openat2=True)):
        workspace = Workspace(tmp_path, lock_folder=tmp_path / "locks", kernel=kernel)
        with workspace.open_file(workspace.resolve(f"{tmp_path}/A")) as file:
            assert (file.read(), file.real_path.name) == (b"upper", "A")
        assert workspace.key(tmp_path / "A") != workspace.key(tmp_path / "a")
