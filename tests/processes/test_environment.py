"""Commands see what is on the list, the login shell's PATH and what the call asks for; nothing else of ours."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.environment import CommandEnvironment, LoginPath

pytestmark = [pytest.mark.anyio, pytest.mark.posix_only("needs a login shell")]


SLEEP = shutil.which("sleep")
"""By its place: the shells here have no PATH where it could be found."""


@pytest.fixture
def login_path(tmp_path: Path) -> LoginPath:
    return LoginPath(own_path="/own", shell=str(fake_shell(tmp_path, "echo PATH=/login:/usr/bin")), limit_s=60)


def fake_shell(folder: Path, answer: str) -> Path:
    """A login shell that runs `answer` where a real one would run `env`."""
    shell = folder / "zsh"
    shell.write_text(
        '#!/bin/sh\nmark=${2#echo }\nmark=${mark%%;*}\necho noise\necho "$mark"\n' + answer + '\necho "$mark"\n'
    )
    shell.chmod(shell.stat().st_mode | stat.S_IXUSR)
    return shell


async def test_an_environment_is_built_from_the_list(login_path: LoginPath, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        monkeypatch.delenv(name)
    kept = {
        "HOME": "/h",
        "LANG": "C",
        "LC_TIME": "C",
        "SSH_AUTH_SOCK": "/s",
        "HTTPS_PROXY": "http://p",
        "no_proxy": "x",
    }
    dropped = ("ANTHROPIC_API_KEY", "VIRTUAL_ENV", "LD_PRELOAD", "PYTHONPATH", "INNOCENT", "BASH_ENV", "TERM")
    for name, value in {**kept, **dict.fromkeys(dropped, "canary"), "CHOSEN": "c"}.items():
        monkeypatch.setenv(name, value)

    built = await CommandEnvironment(login_path, passed_on=("CHOSEN",)).build({"FOO": "bar", "LANG": "de"})

    assert built == {
        **kept,
        "LANG": "de",
        "CHOSEN": "c",
        "FOO": "bar",
        "PATH": "/login:/usr/bin:/own",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }


@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "BASH_FUNC_ls%%", "A-B", "", "1A"])
async def test_names_that_run_hidden_code_or_are_none_are_refused(login_path: LoginPath, name: str) -> None:
    with pytest.raises(ToolError) as refused:
        await CommandEnvironment(login_path).build({name: "x"})

    assert refused.value.code is ErrorCode.INPUT
    assert name in refused.value.message


async def test_the_login_shell_is_asked_once_and_not_before_it_is_needed(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    answer = f"echo x >>{asked}; echo PATH=/login"
    path = LoginPath(own_path="/own", shell=str(fake_shell(tmp_path, answer)), limit_s=60)
    assert not asked.exists()

    answers = {await path.read() for _ in range(3)}

    assert answers == {"/login:/own"}
    assert asked.read_text() == "x\n"


@pytest.mark.parametrize(
    ("answer", "limit_s", "path"),
    [
        (f"{SLEEP} 30; echo PATH=/too/late", 0.5, "/own"),
        ("exit 1", 60, "/own"),
        ("echo HOME=/x", 60, "/own"),
        ("echo PATH=relative:/abs", 60, "/abs:/own"),
        (f"{SLEEP} 600 & echo PATH=/login", 3, "/login:/own"),
    ],
)
async def test_a_login_shell_that_hangs_or_fails_costs_little_and_leaves_our_own_path(
    tmp_path: Path, answer: str, limit_s: float, path: str
) -> None:
    with anyio.fail_after(50):  # a failure is not waited out
        read = await LoginPath(own_path="/own", shell=str(fake_shell(tmp_path, answer)), limit_s=limit_s).read()

    assert read == path


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/bin/false", "", "/nowhere/bash"])
async def test_accounts_without_a_real_shell_keep_our_path(shell: str) -> None:
    assert await LoginPath(own_path="/own:/usr/bin", shell=shell or "/").read() == "/own:/usr/bin"


async def test_programs_of_our_own_virtual_environment_are_not_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/venv")

    assert await LoginPath(own_path="/venv/bin:/usr/bin", shell="/bin/false").read() == "/usr/bin"


async def test_the_real_login_shell_answers() -> None:
    assert "/usr/bin" in (await LoginPath().read()).split(":")


DOUBLE = """#!/bin/sh
# As `zsh -ilc` does it: the start files of a login, then of an interactive shell, then the command.
[ "$1" = -ilc ] || exit 1
. "$HOME/.zprofile"
. "$HOME/.zshrc"
eval "$2"
printf 'Goodbye'
"""


@pytest.mark.parametrize("real", [True, False], ids=["zsh", "double of zsh"])
async def test_what_start_files_of_zsh_say_and_leave_does_no_harm(
    tmp_path: Path, real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, shell = tmp_path / "home", shutil.which("zsh")
    home.mkdir()
    (home / ".zprofile").write_text('export PATH="/opt/homebrew/bin:$PATH"\nprintf "No line end"\n')
    (home / ".zshrc").write_text(
        "echo PATH=/not/this/one\nread -r answer\necho noise >&2\n"
        f'{SLEEP} 600 &\nexport PATH="$PATH:$HOME/.volta/bin"\n'
        '[ "$DISABLE_AUTO_UPDATE" = true ] || exit 1\n[ "$USER" = me ] || exit 1\n'
    )
    if not real:
        double = tmp_path / "zsh"
        double.write_text(DOUBLE)
        double.chmod(0o755)
        shell = str(double)
    elif shell is None:
        pytest.skip("there is no zsh here; its double runs")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "me")

    with anyio.fail_after(30):  # what holds the pipe is not waited for
        read = await LoginPath(own_path="/usr/bin:/bin", shell=shell, limit_s=40).read()

    assert read == f"/opt/homebrew/bin:/usr/bin:/bin:{home}/.volta/bin"


async def test_a_mac_whose_login_shell_does_not_answer_has_the_folders_that_it_would_have_added(tmp_path: Path) -> None:
    (tmp_path / "etc/paths.d").mkdir(parents=True)
    (tmp_path / "etc/paths").write_text("/usr/local/bin\n/usr/bin\n/bin\n")
    (tmp_path / "etc/paths.d/100-rvictl").write_text("/Library/Apple/usr/bin\n\nrelative\n")
    (tmp_path / "etc/paths.d/go").write_text("/usr/local/go/bin")
    (tmp_path / "opt/homebrew/bin").mkdir(parents=True)

    read = await LoginPath(own_path="/usr/bin:/bin", shell="/bin/false", root=tmp_path).read()

    assert read == "/usr/bin:/bin:/opt/homebrew/bin:/usr/local/bin:/Library/Apple/usr/bin:/usr/local/go/bin"
