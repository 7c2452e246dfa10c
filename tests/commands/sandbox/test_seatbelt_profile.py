"""What a Seatbelt profile allows is what its policy says, and what bubblewrap gives for the same one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.commands.sandbox.confinement import Bounds, ProxyAccess
from goat_mcp.commands.sandbox.mounts import MountKind, mounts_of
from goat_mcp.commands.sandbox.options import Network, SandboxOptions
from goat_mcp.commands.sandbox.seatbelt_profile import SYSTEM, in_any_case, profile_of, quoted
from tests.commands.sandbox.boxes import LIMIT_S, Box, git, needs_bubblewrap
from tests.commands.sandbox.seatbelt_rules import Profile, read

GOLDEN = Path(__file__).with_name("seatbelt.sb")
READ, WRITE, MAKE, MOVE = "file-read-data", "file-write-data", "file-write-create", "file-write-unlink"
WS = Path("/Users/ada/ws")
NOTHING: set[str] = set()


def proxy(port: int) -> ProxyAccess:
    def listen_inside() -> Any:
        raise AssertionError("no network of its own")

    return ProxyAccess(port=port, environment={}, listen_inside=listen_inside)


def of(bounds: Bounds) -> list[Profile]:
    return list(Profile.readings(profile_of(bounds)))


def allowed(bounds: Bounds, operation: str, path: Path | str = "", **subject: str) -> bool:
    """Under each reading of the language, which must agree."""
    answers = {profile.allows(operation, str(path), **subject) for profile in of(bounds)}
    assert len(answers) == 1, f"{operation} {path} depends on the reading"
    return answers.pop()


FULL = Bounds(
    writable=(WS, Path("/private/tmp/more")),
    readable=(Path("/Users/ada/.rustup"), WS / "shown"),
    pinned=(WS / ".git",),
    read_only=(WS / ".git/config", WS / 'sub/it"s (a) \\ name'),
    absent=(WS / ".mcp.json", WS / ".git/hooks"),
    hidden=(WS / "deep/er/.env",),
    links=((Path("/Users/ada/rust"), Path("/Users/ada/.rustup")),),
    home=Path("/Users/ada"),
    network=Network.DOMAINS,
    proxy=proxy(4711),
)


def test_the_profile_of_one_policy_is_this_text() -> None:
    """A changed file is a changed sandbox: read that diff as a user would."""
    assert profile_of(FULL) == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("path", "can"),
    [
        (WS / "a.txt", {READ, WRITE, MAKE, MOVE}),
        (WS / "new/file", {READ, WRITE, MAKE, MOVE}),
        (WS, {READ, WRITE}),
        ("/private/tmp/more/x", {READ, WRITE, MAKE, MOVE}),
        ("/private/tmp/other", NOTHING),
        ("/tmp/other", NOTHING),
        ("/Users/ada/.rustup/x", {READ}),
        ("/Users/ada/.ssh/id", NOTHING),
        ("/Users/ada/wsx", NOTHING),
        (WS / "shown/x", {READ}),
        (WS / ".git", {READ, WRITE}),
        (WS / ".git/index", {READ, WRITE, MAKE, MOVE}),
        (WS / ".git/config", {READ}),
        (WS / ".git/hooks", {READ}),
        (WS / ".git/HOOKS", {READ}),
        (WS / ".git/Hooks/pre-commit", {READ}),
        (WS / ".git/hook\N{LATIN SMALL LETTER LONG S}", {READ}),
        (WS / ".git/hooks2", {READ, WRITE, MAKE, MOVE}),
        (WS / ".mcp.json", {READ}),
        (WS / ".MCP.JSON", {READ}),
        (WS / "xmcp.json", {READ, WRITE, MAKE, MOVE}),
        (WS / "sub/.mcp.json", {READ, WRITE, MAKE, MOVE}),
        (WS / "sub", {READ, WRITE}),
        (WS / 'sub/it"s (a) \\ name', {READ}),
        (WS / 'sub/it"s (a) \\ name/x', {READ}),
        (WS / "deep", {READ, WRITE}),
        (WS / "deep/er", {READ, WRITE}),
        (WS / "deep/er/.env", NOTHING),
        (WS / "deep/er/.env2", {READ, WRITE, MAKE, MOVE}),
        ("/usr/bin/git", {READ}),
        ("/usr/local/bin/node", {READ}),
        ("/usr/local/var/postgres/base", NOTHING),
        ("/opt/homebrew/Cellar/git", {READ}),
        ("/opt/homebrew/etc/redis.conf", NOTHING),
        ("/System/Library/Frameworks/x", {READ}),
        ("/System/Volumes/Data/Users/ada/.ssh/id", NOTHING),
        ("/private/etc/hosts", {READ}),
        ("/private/etc/master.passwd", NOTHING),
        ("/private/var/db/timezone/x", {READ}),
        ("/dev/null", {READ, WRITE}),
        ("/dev/fd/9", {READ, WRITE}),
        ("/dev/disk0", NOTHING),
        ("/dev/tty", NOTHING),
        ("/dev/ttys003", NOTHING),
    ],
)
def test_a_path_can_be_read_written_made_and_moved_as_the_policy_says(path: Path | str, can: set[str]) -> None:
    assert {operation for operation in (READ, WRITE, MAKE, MOVE) if allowed(FULL, operation, path)} == can


@pytest.mark.parametrize(
    ("path", "can"),
    [("/Users/ada", True), ("/Users", True), ("/", True), ("/tmp", True), ("/Users/ada/.ssh", False)],
)
def test_what_leads_to_a_visible_path_can_be_passed_and_not_listed(path: str, can: bool) -> None:
    assert allowed(FULL, "file-read-metadata", path) == can
    assert allowed(FULL, "file-test-existence", path) == can
    assert allowed(FULL, READ, path) == (path == "/")


def test_whether_a_file_exists_is_answered_where_it_can_be_read() -> None:
    paths = (WS / "a", WS / ".git/config", WS / "deep/er/.env", "/usr/bin/git", "/Users/ada/x")

    answered = [path for path in paths if allowed(FULL, "file-test-existence", path)]

    assert answered == [path for path in paths if allowed(FULL, READ, path)] == [paths[0], paths[1], paths[3]]


def test_keys_and_passwords_of_a_mac_are_hidden_in_a_home_that_can_be_read(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for name in ("Library/Keychains/login", "Library/Application Support/Firefox/Profiles", "Library/Fonts/x"):
        (box.root / name).mkdir(parents=True)
    bounds = home_is_the_workspace(box)

    seen = [path.name for path in (box.root / "Library").rglob("*") if allowed(bounds, READ, path)]

    assert sorted(seen) == ["Application Support", "Fonts", "x"]


def test_a_second_name_cannot_be_made_for_what_is_protected_hidden_or_outside() -> None:
    linkable = [
        path
        for path in (WS / "a", WS / ".git/config", WS / "deep/er/.env", WS / "shown/x", "/usr/bin/git", "/Users/ada/x")
        if allowed(FULL, "file-link", path)
    ]

    assert linkable == [WS / "a"]


def test_what_leads_to_a_path_that_is_only_readable_cannot_be_moved_away() -> None:
    bounds = Bounds(writable=(WS,), readable=(WS / "way/deeper/shown",))

    moved = [path for path in (WS / "way", WS / "way/deeper", WS / "way2") if allowed(bounds, MOVE, path)]

    assert moved == [WS / "way2"]


def test_only_what_can_be_read_can_be_started() -> None:
    started = [path for path in (WS / "run", "/bin/sh", "/Users/ada/bin/x") if allowed(FULL, "process-exec", path)]

    assert started == [WS / "run", "/bin/sh"]


def test_a_terminal_is_the_commands_own_one() -> None:
    assert allowed(FULL, READ, "/dev/ttys003", extension="com.apple.sandbox.pty")
    assert not allowed(FULL, READ, "/dev/disk0", extension="com.apple.sandbox.pty")


@pytest.mark.parametrize(
    ("network", "reached"),
    [
        (Network.DENY, NOTHING),
        (Network.DOMAINS, {"localhost:4711"}),
        (Network.ALLOW, {"localhost:4711", "localhost:22", "192.0.2.1:443"}),
    ],
)
def test_the_network_is_none_the_proxys_port_or_all(network: Network, reached: set[str]) -> None:
    bounds = replace(FULL, network=network)
    hosts = ("localhost:4711", "localhost:22", "192.0.2.1:443")

    assert {host for host in hosts if allowed(bounds, "network-outbound", remote=host)} == reached
    assert allowed(bounds, "network-bind", local="localhost:8000") == (network is Network.ALLOW)
    assert not allowed(bounds, "network-outbound", "/Users/ada/ws/socket")
    assert not allowed(bounds, "network-outbound", "/private/var/run/docker.sock")
    resolver = allowed(bounds, "network-outbound", "/private/var/run/mDNSResponder")
    assert resolver == (network is Network.ALLOW)


def test_domains_without_a_proxy_is_no_network() -> None:
    bounds = replace(FULL, proxy=None)

    assert not allowed(bounds, "network-outbound", remote="localhost:4711")
    assert "localhost" not in profile_of(bounds)


@pytest.mark.parametrize(
    ("operation", "subject"),
    [
        ("signal", {"target": "others"}),
        ("process-info-pidinfo", {"target": "others"}),
        ("sysctl-read", {"sysctl_name": "kern.procargs2"}),
        ("sysctl-read", {"sysctl_name": "kern.proc.all"}),
        ("sysctl-write", {"sysctl_name": "hw.ncpu"}),
        ("mach-lookup", {"global_name": "com.apple.coreservices.launchservicesd"}),
        ("mach-lookup", {"global_name": "com.apple.coreservices.appleevents"}),
        ("mach-lookup", {"global_name": "com.apple.SecurityServer"}),
        ("mach-lookup", {"global_name": "com.apple.securityd.xpc"}),
        ("mach-lookup", {"global_name": "com.apple.pasteboard.1"}),
        ("mach-lookup", {"global_name": "com.apple.cfprefsd.agent"}),
        ("mach-register", {"global_name": "org.example"}),
        ("appleevent-send", {}),
        ("job-creation", {}),
        ("lsopen", {}),
        ("user-preference-read", {}),
        ("file-mount", {}),
        ("file-issue-extension", {}),
        ("mach-priv-task-port", {"target": "same-sandbox"}),
        ("nvram-set", {}),
        ("system-privilege", {}),
        ("ipc-posix-shm-read-data", {}),
    ],
)
@pytest.mark.parametrize("network", Network)
def test_no_rule_leads_out_of_the_sandbox(operation: str, subject: dict[str, str], network: Network) -> None:
    assert not allowed(
        replace(FULL, network=network), operation, **{k.replace("-", "_"): v for k, v in subject.items()}
    )


def test_processes_of_the_command_itself_can_be_ended_and_looked_at() -> None:
    assert allowed(FULL, "signal", target="same-sandbox")
    assert allowed(FULL, "process-info-pidinfo", target="same-sandbox")
    assert allowed(FULL, "sysctl-read", sysctl_name="hw.ncpu")


def test_all_paths_of_a_profile_are_spelled_as_the_kernel_knows_them() -> None:
    linked = [path for path in SYSTEM if path.parts[1] in ("tmp", "var", "etc")]

    assert linked == []
    assert Path("/private/etc/hosts") in SYSTEM


awkward = st.text(
    st.sampled_from("ab/\"\\()[]{}.*+?^$|;#' \n\t\u00e9\N{SNOWMAN}").filter(lambda letter: letter != "/"), min_size=1
).filter(lambda name: name not in (".", ".."))


@given(awkward)
def test_every_text_survives_as_a_string_of_the_language(text: str) -> None:
    assert read(f"(literal {quoted(text)})") == [["literal", "\0" + text]]


@given(st.lists(awkward, min_size=1, max_size=3), awkward)
def test_every_name_is_protected_under_that_name_alone(folders: list[str], name: str) -> None:
    top = Path("/", *folders)
    bounds = Bounds(writable=(top,), read_only=(top / name,), absent=(top / f"{name}-absent",))
    profile = Profile.of(profile_of(bounds, ()))

    assert not profile.allows(WRITE, str(top / name))
    assert not profile.allows(MAKE, str(top / f"{name}-ABSENT" / "x"))
    assert profile.allows(WRITE, str(top / f"{name}x"))
    assert profile.allows(MAKE, str(top / f"{name}-absentx"))


@given(st.text("abkSKs.-", min_size=1, max_size=8), st.data())
def test_a_name_is_found_in_every_case(name: str, data: Any) -> None:
    cases = [st.sampled_from(sorted({one, one.upper(), one.lower(), *_folded(one)})) for one in name]
    spelled = data.draw(st.tuples(*cases).map("".join))

    assert re.search(in_any_case(Path("/w.s") / name), f"/w.s/{spelled}")
    assert not re.search(in_any_case(Path("/w.s") / name), f"/wxs/{spelled}")


def _folded(letter: str) -> str:
    return {"k": "\N{KELVIN SIGN}", "s": "\N{LATIN SMALL LETTER LONG S}"}.get(letter.lower(), "")


def plain(box: Box) -> Bounds:
    return box.bounds()


def repository(box: Box) -> Bounds:
    git(box.root, "init", "-q")
    shutil.rmtree(box.root / ".git/hooks")
    (box.root / "a").write_text("a")
    git(box.root, "add", "a")
    git(box.root, "commit", "-qm", "a")
    for file in (box.root / ".git/objects").rglob("*"):
        file.chmod(0o755)  # nobody in the sandbox is root
    git(box.root, "init", "-q", "deep/er/nested")
    git(box.root, "init", "-q", "--bare", "bare.git")
    return box.bounds()


def editors(box: Box) -> Bounds:
    for name in (".vscode/settings.json", ".claude/settings.json", "sub/.envrc", "sub/deep/.mcp.json", "sub/x"):
        (box.root / name).parent.mkdir(parents=True, exist_ok=True)
        (box.root / name).write_text("x")
    return box.bounds()


def worktree(box: Box) -> Bounds:
    repository(box)
    git(box.root, "worktree", "add", "-q", "trees/one")
    return box.bounds(writes_below=str(box.root / "trees/one"))


def hidden_and_unchanged(box: Box) -> Bounds:
    editors(box)
    (box.root / "secrets/deep").mkdir(parents=True)
    (box.root / "secrets/deep/key").write_text("key")
    (box.root / ".env").write_text("key")
    bounds = box.bounds()
    return replace(
        bounds,
        hidden=(*bounds.hidden, box.root / "secrets", box.root / ".env"),
        read_only=(*bounds.read_only, box.root / "sub/deep"),
    )


def records(box: Box) -> Bounds:
    log = box.root / "logs/audit.jsonl"
    log.parent.mkdir()
    log.write_text("record")
    (log.parent / "beside").write_text("x")
    box.records = (log,)
    return box.bounds()


def more_paths(box: Box) -> Bounds:
    for name in ("more/x", "more/in/x", "seen/x", "seen/in/x", "seen/in/deeper/x", "ws/read/x"):
        (box.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (box.folder / name).write_text("x")
    box.options = SandboxOptions(
        sandbox_read=(box.folder / "seen", box.folder / "more/in"),
        sandbox_write=(box.folder / "more", box.folder / "seen/in"),
    )
    return box.bounds()


def home_is_the_workspace(box: Box) -> Bounds:
    for name in (".ssh/id", ".aws/config", "src/x"):
        (box.root / name).parent.mkdir(parents=True, exist_ok=True)
        (box.root / name).write_text("x")
    box.home = box.root
    return box.bounds()


def state_in_the_workspace(box: Box) -> Bounds:
    box.state = box.root / "state"
    (box.state / "rules").mkdir(parents=True)
    (box.state / "rules/x").write_text("x")
    return box.bounds()


Policy = Callable[[Box], Bounds]
POLICIES: tuple[Policy, ...] = (
    *(plain, repository, editors, worktree, hidden_and_unchanged, records, more_paths, home_is_the_workspace),
    state_in_the_workspace,
)
TRY = """
import json, os, sys
def tried(what):
    try:
        return what() or True
    except OSError:
        return False
def seen(path):
    return bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read())
def moved(path):
    os.rename(path, path + ".moved"); os.rename(path + ".moved", path)
def write(path, mode):
    with open(path, mode) as file: file.write("!")
def made(path):
    write(path, "x")
answers = {}
for path in json.load(sys.stdin):
    answers[path] = [tried(lambda: seen(path) or None) is True and seen(path), tried(lambda: moved(path))]
    tried(lambda: made(path + "/probe") if os.path.isdir(path) else write(path, "a"))
print(json.dumps(answers))
"""


@needs_bubblewrap
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
def test_each_path_is_what_bubblewrap_makes_of_it_for_the_same_policy(tmp_path: Path, policy: Policy) -> None:
    box = Box(tmp_path)
    bounds = policy(box)
    (profile, *others) = of(bounds)
    paths = sorted(path for path in (box.folder, *box.folder.rglob("*")) if path != box.notes / "found")
    sizes = {path: path.stat().st_size for path in paths if path.is_file()}
    contents = {path for path in paths if (any(path.iterdir()) if path.is_dir() else sizes[path])}
    mounts = mounts_of(bounds, ())

    given = json.dumps([str(path) for path in paths])
    launch = box.confinement.launch(box.job(f"python3 -c '{TRY}' <<'END'\n{given}\nEND", bounds))
    answers = json.loads(box.started(launch).communicate(timeout=LIMIT_S)[0])
    changed = {path for path, size in sizes.items() if path.stat().st_size != size}
    made = {path for path in paths if (path / "probe").exists()}
    launch.finish()

    wrong: list[str] = []
    for path in paths:
        read_there, moved_there = answers[str(path)]
        written_there = path in changed or path in made
        name = str(path)
        can_write = profile.allows(MAKE, f"{name}/probe") if path not in sizes else profile.allows(WRITE, name)
        can_move = profile.allows(MOVE, name) and profile.allows(MAKE, f"{name}.moved")
        leads_to_a_mount = any(mount.path.is_relative_to(path) for mount in mounts)
        can_read = profile.allows(READ, name)
        if (can_read and path in contents) != read_there and not leads_to_a_mount:
            wrong.append(f"read {name}: {can_read}")
        if can_write != written_there:
            wrong.append(f"write {name}: {can_write}")
        if can_move != moved_there and (can_move or not leads_to_a_mount):
            wrong.append(f"move {name}: {can_move}")
        for other in others:
            for operation in (READ, WRITE, MAKE, MOVE):
                if other.allows(operation, name) != profile.allows(operation, name):
                    wrong.append(f"{operation} {name} depends on the reading")
    absent = [mount.path for mount in mounts if mount.kind is MountKind.ABSENT]
    wrong += [f"make {path}" for path in absent if profile.allows(MAKE, str(path))]
    assert not wrong, "\n".join(wrong)
    assert answers and (policy is plain or made)
