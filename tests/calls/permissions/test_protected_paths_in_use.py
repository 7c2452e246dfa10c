"""Protected paths through the whole gateway: with file tools and with commands, in every mode (R-FILE-9b)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio


class Ground:
    """A gateway without a sandbox over a workspace with a repository, and nobody to ask."""

    def __init__(self, folder: Path, mode: str = "bypassPermissions", **permissions: list[str]) -> None:
        self.root = folder / "ws"
        for name in ("src", "build", ".vscode", ".github"):
            (self.root / name).mkdir(parents=True)
        for name in ("a", "src/a.py", "build/x", ".vscode/tasks.json", ".env.example"):
            (self.root / name).write_text("old\n")
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=self.root, check=True)
        self._before = self._protected()
        tree = {
            "workspace": [str(self.root)],
            "mode": mode,
            "sandbox": "off",
            "permissions": permissions,
            "files": {"read_before_write": "off"},
        }
        self.gateway = Gateway(
            settings_of(tree, "a test"), approval=Approval.HOST, state=StateDirectory(folder / "state")
        )

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        return await self.gateway.call(tool, arguments, ToolContext(call_id="c"))

    def is_untouched(self) -> bool:
        return self._protected() == self._before

    def _protected(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
            and path.relative_to(self.root).parts[0] not in ("src", "build", "a", "b", "c", ".env", "x")
        }


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions", "default"])
async def test_f13_07_what_other_programs_obey_is_asked_about_whoever_writes_it(tmp_path: Path, mode: str) -> None:
    ground = Ground(tmp_path, mode)
    paths = [
        ".config/git/config",
        ".hg/hgrc",
        ".ssh/config",
        ".config/systemd/user/x.service",
        "sitecustomize.py",
        ".cargo/config.toml",
        ".amazonq/mcp.json",
        ".codeium/windsurf/mcp_config.json",
        "x/HEAD",
        ".pre-commit-config.yaml",
        ".direnv/x",
        ".tmux.conf",
    ]

    written = [await ground.call("Write", file_path=str(ground.root / path), content="x") for path in paths]

    assert [result.error_code for result in written] == ["E_APPROVAL_PENDING"] * len(paths)
    assert ground.is_untouched()


async def test_f13_07_bare_repository_in_four_writes_runs_nothing(tmp_path: Path) -> None:
    ground = Ground(tmp_path, "acceptEdits")
    trace = tmp_path / "ran"
    parts = {
        "config": f'[core]\n bare = false\n worktree = .\n fsmonitor = "touch {trace}; false"\n',
        "objects/info/x": "",
        "refs/heads/x": "",
        "HEAD": "ref: refs/heads/main\n",
    }
    folder = ground.root / "src/innocent"

    async with anyio.create_task_group() as group:  # at once: none sees what the others write
        for name, text in parts.items():
            group.start_soon(lambda n, t: ground.call("Write", file_path=str(folder / n), content=t), name, text)
    with anyio.fail_after(60):
        await anyio.run_process(["git", "status"], cwd=folder, check=False)

    assert not (folder / "HEAD").exists()
    assert not trace.exists()


WRITING_COMMANDS = [
    "echo x > .bashrc",
    "echo x >> .git/config",
    "printf x | tee .git/hooks/pre-commit",
    "cp a .git/hooks/post-merge",
    "mv a .vscode/settings.json",
    "ln -s a .envrc",
    "mkdir -p .git/rebase-merge",
    "install -m 755 a .git/hooks/pre-push",
    "touch .npmrc",
    "sed -i s/old/new/ .vscode/tasks.json",
    "sed -i '' s/old/new/ .vscode/tasks.json",
    "sed -I .bak -e s/old/new/ .vscode/tasks.json",
    "rm -r .vscode",
    "rm -rf .git",
    "cd .git && echo x > commondir",
    "cd .git/info; cp ../../a attributes",
    "dd if=a of=.mcp.json",
    "curl -s -o .zshrc http://127.0.0.1:1/x",
    "wget -O .profile http://127.0.0.1:1/x",
    "sudo tee .vimrc < a",
    "env X=1 cp a sitecustomize.py",
    "sh -c 'echo x > .pypirc'",
    "truncate -s 0 .vscode/tasks.json",
    "chmod 777 .git/config",
    "cat a > .claude/settings.json",
    "rsync a .cursor/",
    "tar -xf x.tar -C .git/hooks",
    "unzip x.zip -d .husky",
    "patch .gitmodules < a",
    "sort -o .tmux.conf a",
    "echo x > .GIT/config",
    "echo x > src/HEAD",
    "cp a .config/systemd/user/x.service",
    "echo x > ./src/../.ssh/config",
    'echo x > ".gi""t/config"',
    "cp -t .git/hooks a",
    "git -C src mv a.py ../.lldbinit",
    "> .netrc",
]


@pytest.mark.parametrize("mode", ["bypassPermissions", "default"])
async def test_f13_07_commands_that_write_what_is_protected_are_asked_about(tmp_path: Path, mode: str) -> None:
    ground = Ground(tmp_path, mode, allow=["Bash(cp *)", "Bash(touch *)", "Bash(mkdir *)", "Bash(rm *)"])

    results = [(command, await ground.call("Bash", command=command)) for command in WRITING_COMMANDS]

    assert len(WRITING_COMMANDS) >= 30
    assert [command for command, result in results if result.error_code != "E_APPROVAL_PENDING"] == []
    assert ground.is_untouched()


EVERYDAY_COMMANDS = [
    "git add -A && git -c user.name=t -c user.email=t commit -qm x",
    "git checkout -q -b other",
    "git status",
    "git config --list",
    "cat .git/config .vscode/tasks.json",
    "ls -la .vscode .git",
    "grep -r old .vscode",
    "cp .env.example .env",
    "cp .vscode/tasks.json b",
    "echo x > b && rm b",
    "mkdir -p src/x .github/workflows",
    "rm -rf build",
    "rm -f .git/index.lock",
    "touch src/new.py",
    "sed -i s/old/new/ src/a.py",
    "mv src/a.py src/b.py",
    "tar -cf c .vscode",
    "find . -name '*.py'",
    "echo .bashrc",
    "true > /dev/null 2>&1",
    "git rm -q --cached .vscode/tasks.json",
    "chmod +x src/b.py",
    "diff .vscode/tasks.json a",
    "python3 --version",
    "make --version > x 2>&1 || true",
]


async def test_everyday_commands_run_unasked(tmp_path: Path) -> None:
    ground = Ground(tmp_path)

    results = [(command, await ground.call("Bash", command=command)) for command in EVERYDAY_COMMANDS]

    assert [(command, result.text) for command, result in results if result.error_code not in (None, "E_EXIT")] == []


@pytest.mark.parametrize(
    ("rule", "command", "is_lifted"),
    [
        ("Edit(./.vscode/settings.json)", "cp a .vscode/settings.json", True),
        ("Write(./.vscode/settings.json)", "cp a .vscode/settings.json", True),
        ("Bash(cp a .vscode/settings.json)", "cp a .vscode/settings.json", True),
        ("Bash(cp *)", "cp a .vscode/settings.json", False),
        ("Bash", "cp a .vscode/settings.json", False),
        ("Edit(./.vscode/**)", "cp a .vscode/settings.json", False),
        ("Edit(./.vscode/tasks.json)", "cp a .vscode/settings.json", False),
        ("Bash(cp a .vscode/settings.json)", "cp a .vscode/settings.json; cp a .envrc", False),
    ],
)
async def test_only_a_rule_for_the_very_path_or_command_lifts_it(
    tmp_path: Path, rule: str, command: str, is_lifted: bool
) -> None:
    ground = Ground(tmp_path, allow=[rule])

    result = await ground.call("Bash", command=command)

    assert (result.error_code is None) == is_lifted
    assert (ground.root / ".vscode/settings.json").exists() == is_lifted


async def test_the_refusal_of_a_command_names_the_path_and_the_program(tmp_path: Path) -> None:
    ground = Ground(tmp_path)

    result = await ground.call("Bash", command="cp a .vscode/settings.json")

    assert f"protected: VS Code obeys it (it writes {ground.root}/.vscode/settings.json)" in result.text
    assert "permissions.allow: [Bash(cp a .vscode/settings.json)]" in result.text


@pytest.mark.parametrize("path", ["/System/Volumes/DataROOT/.git/config", "/.vol/1/2", "//.nofollowROOT/.git/config"])
async def test_a_write_by_a_second_name_that_macos_has_for_a_file_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    ground = Ground(tmp_path)
    monkeypatch.setattr("goat_mcp.core.platform.SYSTEM", "macos")

    written = await ground.call("Bash", command=f"echo x > {path.replace('ROOT', str(ground.root))}")

    assert written.error_code == "E_APPROVAL_PENDING" and "protected" in written.text
