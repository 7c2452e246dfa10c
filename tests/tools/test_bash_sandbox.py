"""Bash in its sandbox, as a caller sees it. What the sandbox itself keeps is tested in tests/commands/sandbox."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.sandbox import SandboxState
from goat_mcp.core.rights import NO_LIMITS
from goat_mcp.processes.bash_options import BashOptions
from tests.commands.sandbox.boxes import git, names, needs_bubblewrap
from tests.processes.processes import running, wait_until
from tests.tools.shell_bench import ShellBench, context, fact, task_id

pytestmark = [pytest.mark.anyio, needs_bubblewrap]
REQUIRED = SandboxOptions(sandbox=SandboxMode.REQUIRED)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path, sandbox=REQUIRED)
    yield bench
    await bench.close()


async def test_the_result_names_the_sandbox_and_files_stay(bench: ShellBench) -> None:
    # R-PROC-1
    result = await bench.run("echo hi > file; pwd")

    assert (result.text, fact(result, "sandbox")) == (str(bench.root), "bubblewrap")
    assert (bench.root / "file").read_text() == "hi\n"


async def test_bash_012_nothing_outside_is_written_read_or_reached(
    bench: ShellBench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text("canary-012")
    monkeypatch.setenv("HOME", str(home))

    result = await bench.run(
        "echo x > ../outside.txt; cat ~/.ssh/id_rsa; exec 3<>/dev/tcp/1.1.1.1/443 && echo reached; echo in > inside"
    )

    assert "canary" not in result.text
    assert "reached" not in result.text
    assert not (tmp_path / "outside.txt").exists()
    assert (bench.root / "inside").read_text() == "in\n"


async def test_bx_09_no_variable_of_the_server_is_seen(bench: ShellBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "GOAT_TOKEN", "ANTHROPIC_API_KEY", "INNOCENT"):
        monkeypatch.setenv(name, "canary-09")

    result = await bench.run("env; cat /proc/$PPID/environ; cat /proc/1/environ; cat /proc/*/environ")

    assert "canary-09" not in result.text
    assert "PATH=" in result.text


async def test_bx_11_a_kill_of_everything_ends_the_command_alone(bench: ShellBench) -> None:
    result = await bench.run("python3 -c 'import os; os.kill(-1, 9)'; kill -9 `echo $PPID`; sleep 5")

    assert result.is_error
    assert (await bench.run("echo alive")).text == "alive"


async def test_bx_14_no_capability_and_no_namespace_of_its_own(bench: ShellBench) -> None:
    result = await bench.run("grep CapEff /proc/self/status; unshare -U true; mount -t tmpfs x /mnt; true")

    assert "CapEff:\t0000000000000000" in result.text
    assert "unshare failed" in result.text
    assert "mount: " in result.text


@pytest.mark.parametrize("where", ["no bwrap", "refusing bwrap"])
async def test_bx_15_a_required_sandbox_that_is_not_there_runs_nothing(
    bench: ShellBench, tmp_path: Path, where: str
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    refusing.chmod(0o755)
    only = Bubblewrap(Placeholders(tmp_path), find=lambda: None if where == "no bwrap" else str(refusing))
    object.__setattr__(bench.sandbox, "_confinements", lambda: (only,))

    result = await bench.run("echo hi > ran")

    assert (result.error_code, result.is_error) == ("E_SANDBOX", True)
    assert result.text.startswith("sandbox unavailable: bubblewrap ")
    assert not (bench.root / "ran").exists()


async def test_auto_without_any_runs_and_says_unsandboxed(tmp_path: Path) -> None:
    bench = ShellBench(tmp_path, sandbox=SandboxOptions(sandbox=SandboxMode.AUTO))
    object.__setattr__(bench.sandbox, "_confinements", tuple)

    result = await bench.run("echo hi")

    assert result.text == "hi\n[unsandboxed: there is none for linux]"
    assert fact(result, "sandbox") == "none"
    assert await bench.sandbox.state() == SandboxState("none", SandboxMode.AUTO, "there is none for linux")
    assert bench.sandbox.why_unconfined() == "there is none for linux"
    await bench.close()


async def test_a_sandbox_that_breaks_after_the_start_runs_nothing_and_is_tried_again(
    bench: ShellBench, tmp_path: Path
) -> None:
    # R-PROC-1: break it after start
    program = tmp_path / "bwrap"
    program.symlink_to("/usr/bin/bwrap")
    only = Bubblewrap(Placeholders(bench.state.folder("sandbox")), find=lambda: str(program))
    object.__setattr__(bench.sandbox, "_confinements", lambda: (only,))
    assert (await bench.run("echo hi")).text == "hi"
    program.unlink()
    program.write_text("#!/bin/sh\necho 'bwrap: no namespaces today' >&2; exit 1\n")
    program.chmod(0o755)

    broken, after = await bench.run("echo hi > ran"), await bench.run("echo hi > ran")

    assert broken.error_code == after.error_code == "E_SANDBOX"
    assert "bwrap: no namespaces today" in broken.text
    assert "bubblewrap does not work here" in after.text
    assert names(bench.root) == []
    program.unlink()
    program.symlink_to("/usr/bin/bwrap")
    bench.sandbox.start_failed()
    assert (await bench.run("echo hi")).text == "hi"


async def test_a_sandbox_that_fails_once_runs_the_command_at_the_second_try(bench: ShellBench, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f'#!/bin/sh\nrm {tmp_path}/broken 2>/dev/null && exit 1\nexec /usr/bin/bwrap "$@"\n')
    program.chmod(0o755)
    only = Bubblewrap(Placeholders(bench.state.folder("sandbox")), find=lambda: str(program))
    object.__setattr__(bench.sandbox, "_confinements", lambda: (only,))
    await bench.run("true")
    (tmp_path / "broken").touch()

    result = await bench.run("echo hi >> ran; cat ran")

    assert (result.text, names(tmp_path / "ws")) == ("hi", ["ran"])
    assert not (tmp_path / "broken").exists()


async def test_bx_21_the_argument_that_asks_for_no_sandbox_is_ignored_and_this_is_said(bench: ShellBench) -> None:
    result = await bench.run("ls /root /home; id -u", dangerouslyDisableSandbox=True)

    assert fact(result, "sandbox") == "bubblewrap"
    assert "dangerouslyDisableSandbox was ignored" in result.text
    assert "65534" in result.text


async def test_bx_31_git_is_not_moved_away(bench: ShellBench) -> None:
    git(bench.root, "init", "-q")
    hooks = names(bench.root / ".git/hooks")

    result = await bench.run("mv .git g2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit")

    assert "Device or resource busy" in result.text
    assert names(bench.root / ".git/hooks") == hooks


async def test_what_git_would_obey_is_set_aside_and_the_result_says_so(bench: ShellBench) -> None:
    git(bench.root, "init", "-q")

    result = await bench.run("mkdir .git/rebase-merge && echo 'exec evil' > .git/rebase-merge/git-rebase-todo")

    assert f"set aside {bench.root}/.git/rebase-merge, which is new" in result.text
    assert not (bench.root / ".git/rebase-merge").exists()


async def test_bx_02_a_timeout_ends_setsid_grandchildren_too(bench: ShellBench) -> None:
    # R-PROC-5, with TERM ignored
    result = await bench.run("trap '' TERM; setsid sleep 617321 & disown; sleep 617322", timeout=1500)

    assert result.error_code == "E_TIMEOUT"
    assert await anyio.to_thread.run_sync(
        wait_until, lambda: not running("sleep 617321") and not running("sleep 617322"), 3
    )


async def test_term_reaches_the_command_before_kill_does(bench: ShellBench) -> None:
    result = await bench.run("trap 'echo tidied > tidy; exit 1' TERM; echo up; sleep 600 & wait", timeout=6000)

    assert result.error_code == "E_TIMEOUT"
    assert (bench.root / "tidy").read_text() == "tidied\n"


async def test_what_a_command_leaves_running_is_a_task_and_ends_with_it(bench: ShellBench) -> None:
    result = await bench.run("sleep 517321 & echo started")

    assert "still running: sleep 517321. Task started" in result.text
    assert len(running("sleep 517321")) == 1
    await bench.end(task_id(result))
    assert running("sleep 517321") == []


async def test_what_is_left_running_may_end_by_itself(bench: ShellBench) -> None:
    result = await bench.run("{ sleep 1; echo late > late; } & echo started")

    shown = await bench.read(task_id(result), block=True, timeout=20_000)

    assert "completed" in shown.text
    assert (bench.root / "late").read_text() == "late\n"
    assert names(bench.root) == ["late"]


async def test_a_background_task_runs_inside_and_leaves_nothing(bench: ShellBench) -> None:
    id = await bench.background("id -u; sleep 417321")
    assert await anyio.to_thread.run_sync(wait_until, lambda: bool(running("sleep 417321")), 20)

    await bench.end(id)

    assert "65534" in (await bench.read(id)).text
    assert running("sleep 417321") == []
    assert names(bench.root) == []


async def test_a_cancelled_call_leaves_nothing(bench: ShellBench) -> None:
    with anyio.move_on_after(1.5):
        await bench.run("setsid sleep 317321 & sleep 317322")

    assert await anyio.to_thread.run_sync(
        wait_until, lambda: not running("sleep 317321") and not running("sleep 317322"), 6
    )


async def test_an_agent_in_a_worktree_writes_below_it_only(bench: ShellBench) -> None:
    worktree = bench.root / "w"
    worktree.mkdir()
    ctx = replace(context(), rights=NO_LIMITS.narrowed(allowed=None, writes_below=str(worktree)))

    result = await bench.run("echo x > ../other; echo y > own; cat ../a", ctx=ctx, workdir=str(worktree))

    assert "Read-only file system" in result.text
    assert names(worktree) == ["own"]


async def test_a_file_has_a_limit_and_no_core_is_written(tmp_path: Path) -> None:
    # R-PROC-8
    bench = ShellBench(tmp_path, sandbox=REQUIRED)
    object.__setattr__(bench.bash, "options", BashOptions(max_file_bytes=1024 * 1024, max_open_files=64))

    result = await bench.run("head -c 10000000000 /dev/zero > big; ulimit -c; ulimit -n; ulimit -u")

    assert (bench.root / "big").stat().st_size == 1024 * 1024
    assert result.text.split()[-3:] == ["0", "64", "4096"]
    await bench.close()


async def test_the_guard_ends_a_sandbox_whose_server_is_gone(bench: ShellBench) -> None:
    # R-STOP-3
    await bench.background("setsid sleep 217321 & sleep 217322")
    assert await anyio.to_thread.run_sync(wait_until, lambda: len(running("sleep 217322")) == 1, 10)

    bench.guard.close()

    assert await anyio.to_thread.run_sync(
        wait_until, lambda: not running("sleep 217321") and not running("sleep 217322"), 10
    )


@pytest.fixture
async def bench_elsewhere() -> AsyncGenerator[ShellBench]:
    """Not below /tmp, as workspaces usually are."""
    if Path.home().is_relative_to("/tmp"):
        pytest.skip("the home directory is below /tmp: another place is kept, as the next test shows")
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".goat-mcp-tests-") as folder:
        bench = ShellBench(Path(folder), sandbox=REQUIRED)
        yield bench
        await bench.close()
        await bench.sandbox.close()
        assert list((bench.state.path / "sandbox/tmp").iterdir()) == []


async def test_a_session_finds_in_tmp_what_it_left_there_and_no_other_does(bench_elsewhere: ShellBench) -> None:
    other = replace(context(), session_key="another")

    made = await bench_elsewhere.run("echo kept > /tmp/file; echo $TMPDIR; mktemp")
    found = await bench_elsewhere.run("cat /tmp/file")
    seen = await bench_elsewhere.run("ls -A /tmp; cat /tmp/file", ctx=other)

    assert [line.rsplit(".", 1)[0] for line in made.text.split()] == ["/tmp", "/tmp/tmp"]
    assert found.text == "kept"
    assert seen.text.startswith("cat: /tmp/file: No such file")
    assert not await anyio.Path("/tmp/file").exists()


async def test_where_the_workspace_lies_below_tmp_another_place_is_kept(bench: ShellBench) -> None:
    if not bench.root.is_relative_to("/tmp"):
        pytest.skip("the tests' directory is not below /tmp")

    await bench.run("echo kept > $TMPDIR/file; echo lost > /tmp/file")
    found = await bench.run("echo $TMPDIR; cat $TMPDIR/file; cat /tmp/file")

    assert found.text.startswith("/var/tmp\nkept\ncat: /tmp/file: No such file")


async def test_a_result_says_when_not_all_repositories_could_be_protected(bench: ShellBench) -> None:
    made = await bench.run("mkdir -p j{1..400}/.git")

    result = await bench.run("echo up")

    assert "could be protected" not in made.text
    assert result.text.startswith("up\n")
    assert (
        "[not all nested repositories and settings could be protected: "
        f"there are too many repositories below {bench.root}]"
    ) in result.text
