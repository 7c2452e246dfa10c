"""Which names are protected, each with the program that obeys it (R-FILE-9b)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from goat_mcp.files.workspace.protected import NAMES, commit_needs, git_directory_reason, protected_reason

OBEYED = [
    (".git/config", "git"),
    (".git/hooks/post-merge", "git"),
    (".git/info/attributes", "git"),
    (".git/rebase-merge/git-rebase-todo", "git"),
    (".git/modules/lib/config", "git"),
    ("vendor/lib/.git", "git"),
    (".gitconfig", "git"),
    (".gitmodules", "git"),
    (".config/git/config", "git"),
    (".config/git/attributes", "git"),
    (".githooks/pre-push", "git"),
    (".hg/hgrc", "Mercurial"),
    ("home/.hgrc", "Mercurial"),
    (".subversion/config", "Subversion"),
    (".husky/pre-commit", "Husky"),
    (".pre-commit-config.yaml", "pre-commit"),
    ("lefthook-local.yml", "Lefthook"),
    ("project/.crushrc", "Crush"),
    ("project/kilo.jsonc", "Kilo Code"),
    (".ssh/config", "ssh"),
    (".ssh/rc", "ssh"),
    (".ssh/authorized_keys", "ssh"),
    (".gnupg/gpg-agent.conf", "GnuPG"),
    (".netrc", "curl"),
    (".curlrc", "curl"),
    (".wgetrc", "wget"),
    (".aws/config", "aws"),
    (".kube/config", "kubectl"),
    (".docker/cli-plugins/docker-x", "docker"),
    (".config/systemd/user/x.service", "systemd"),
    (".config/systemd/user/default.target.wants/x.service", "systemd"),
    (".local/share/systemd/user/x.timer", "systemd"),
    (".config/environment.d/x.conf", "systemd"),
    (".config/autostart/x.desktop", "the desktop"),
    ("Library/LaunchAgents/x.plist", "launchd"),
    (".xsessionrc", "the desktop"),
    ("var/spool/cron/me", "cron"),
    ("etc/cron.d/x", "cron"),
    (".profile", "sh"),
    (".bashrc", "bash"),
    ("skel/.bash_profile", "bash"),
    (".zshenv", "zsh"),
    (".config/fish/conf.d/x.fish", "fish"),
    (".config/nushell/config.nu", "Nushell"),
    ("Microsoft.PowerShell_profile.ps1", "PowerShell"),
    (".inputrc", "readline"),
    (".envrc", "direnv"),
    (".direnv/bin/x", "direnv"),
    (".mise.toml", "mise"),
    (".tmux.conf", "tmux"),
    (".screenrc", "screen"),
    ("sitecustomize.py", "Python"),
    ("lib/usercustomize.py", "Python"),
    ("env/lib/python3.11/site-packages/x.pth", "Python"),
    (".pythonrc", "Python"),
    (".pdbrc", "pdb"),
    (".ipython/profile_default/startup/x.py", "IPython"),
    (".Rprofile", "R"),
    (".irbrc", "irb"),
    (".pryrc", "pry"),
    (".psqlrc", "psql"),
    (".gdbinit", "gdb"),
    (".lldbinit-Xcode", "lldb"),
    (".npmrc", "npm"),
    (".yarnrc.yml", "yarn"),
    (".yarn/releases/yarn-4.cjs", "yarn"),
    (".pypirc", "twine"),
    ("pip.conf", "pip"),
    (".cargo/config.toml", "cargo"),
    (".cargo/config", "cargo"),
    (".bundle/config", "Bundler"),
    (".gradle/init.d/x.gradle", "Gradle"),
    (".m2/settings.xml", "Maven"),
    (".vimrc", "vim"),
    (".exrc", "vi"),
    (".config/nvim/init.lua", "Neovim"),
    (".emacs.d/init.el", "Emacs"),
    ("src/.dir-locals.el", "Emacs"),
    (".vscode/tasks.json", "VS Code"),
    (".vscode/mcp.json", "VS Code"),
    (".config/Code/User/settings.json", "VS Code"),
    ("all.code-workspace", "VS Code"),
    (".idea/workspace.xml", "JetBrains editors"),
    (".zed/tasks.json", "Zed"),
    (".mcp.json", "Claude Code"),
    ("mcp.json", "MCP hosts"),
    (".cursor/mcp.json", "Cursor"),
    (".claude/settings.json", "Claude Code"),
    ("claude_desktop_config.json", "Claude Desktop"),
    ("x/settings/mcp_settings.json", "Roo Code"),
    ("cline_mcp_settings.json", "Cline"),
    (".codex/config.toml", "Codex"),
    (".gemini/settings.json", "Gemini CLI"),
    (".windsurf/x", "Windsurf"),
    (".codeium/windsurf/mcp_config.json", "Windsurf"),
    (".amazonq/mcp.json", "Amazon Q"),
    (".continue/config.yaml", "Continue"),
    (".roo/mcp.json", "Roo Code"),
    (".aider.conf.yml", "Aider"),
    ("opencode.json", "opencode"),
    (".goat/tools/x.yaml", "goat-mcp"),
    ("goat-mcp.yaml", "goat-mcp"),
]


def test_the_table_is_long_enough_and_every_entry_of_it_protects_what_it_names() -> None:
    assert len(OBEYED) >= 60
    for text, program in NAMES.items():
        path = f"some/{text.replace('*', 'x')}" + ("y" if text.endswith("/") else "")
        reason = protected_reason(path)
        assert reason is not None, text
        assert program in reason, text
        assert text == text.casefold(), text


@pytest.mark.parametrize(("path", "program"), OBEYED, ids=[path for path, _ in OBEYED])
def test_f13_07_names_others_obey_are_protected_with_their_program(path: str, program: str) -> None:
    for spelled in (path, path.upper(), f"a/b/{path}", f"/ws/{path}"):
        reason = protected_reason(spelled)
        assert reason is not None
        assert program in reason


@pytest.mark.parametrize(
    "path", [".git\u200c/config", ".git./config", ".git /hooks/x", "GIT~1/config", ".v\u017fcode/x"]
)
def test_names_that_are_the_same_on_some_file_systems_are_protected(path: str) -> None:
    assert protected_reason(path)


EVERYDAY = [
    "package.json",
    "package-lock.json",
    "pnpm-workspace.yaml",
    "Makefile",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "conftest.py",
    "requirements.txt",
    "uv.lock",
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "go.mod",
    "Gemfile",
    "Rakefile",
    "pom.xml",
    "build.gradle",
    "gradle.properties",
    "CMakeLists.txt",
    "Dockerfile",
    "docker-compose.yml",
    ".dockerignore",
    ".docker/Dockerfile",
    ".env",
    ".env.example",
    ".editorconfig",
    ".gitignore",
    ".gitattributes",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".eslintrc.json",
    ".prettierrc",
    "tsconfig.json",
    "vite.config.ts",
    "README.md",
    "AGENTS.md",
    "CLAUDE.md",
    "docs/config.md",
    "src/config",
    "src/index.ts",
    "src/objects/ball.py",
    "refs/paper.bib",
    "config/settings.yaml",
    "config.toml",
    "git/hooks/x",
    "hooks/useState.ts",
    "src/code/user/model.py",
    "mcp.py",
    "profile.ps1",
    "bash_profile.md",
    ".tool-versions",
    ".python-version",
    ".nvmrc",
    "Vagrantfile",
    "main.tf",
    ".terraform.lock.hcl",
    "weights/model.pth",
    "systemd/user/x.service",
    "cron.d/x",
    "packaging/crontab",
    "bin/run.sh",
    ".bundled/x",
    ".hgignore",
    ".hg/dirstate",
    "public/.htaccess",
    "site-packages/x.py",
    "lib/HEAD.md",
]


@pytest.mark.parametrize("path", EVERYDAY)
def test_what_everyday_work_edits_is_not_protected(path: str, tmp_path: Path) -> None:
    assert protected_reason(path) is None
    assert git_directory_reason(f"{tmp_path}/{path}") is None


def test_names_above_the_workspace_protect_nothing_and_those_that_end_in_it_do() -> None:
    assert protected_reason("/home/me/.claude/worktrees/x/a.py", root="/home/me/.claude/worktrees/x") is None
    assert protected_reason("/home/me/.config/git/config", root="/home/me/.config")
    assert protected_reason("/home/me/.ssh/notes", root="/home/me/.ssh") is None


@pytest.mark.parametrize(
    ("path", "is_protected"),
    [
        ("/home/me/.config/goat-mcp/memory/a-note.md", False),
        ("/home/me/.config/goat-mcp/memory", True),
        ("/home/me/.config/goat-mcp/memory/a-note.yaml", True),
        ("/home/me/.config/goat-mcp/memory/below/a-note.md", True),
        ("/home/me/.config/goat-mcp/manifests/a-note.md", True),
        ("/home/me/.config/goat-mcp/a-note.md", True),
        ("/home/me/.config/goat-mcp/memory/../config.md", True),
        ("/home/me/.goat/memory/a-note.md", True),
        ("/home/me/.git/.config/goat-mcp/memory/a-note.md", True),
    ],
)
def test_notes_of_the_user_are_no_configuration_and_what_lies_beside_them_is(path: str, is_protected: bool) -> None:
    assert (protected_reason(path) is not None) == is_protected


NEEDED = [
    "info/exclude",
    "HEAD",
    "HEAD.lock",
    "index",
    "index.lock",
    "index.stash.12",
    "next-index-3.lock",
    "sharedindex.0a",
    "packed-refs",
    "packed-refs.new",
    "objects/ab/cdef",
    "objects/pack/x.pack",
    "objects/info/packs",
    "objects/info/commit-graphs/x",
    "refs/heads/main",
    "refs/heads/main.lock",
    "logs/HEAD",
    "COMMIT_EDITMSG",
    "MERGE_MSG",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "rr-cache/x/preimage",
    "shallow",
    "shallow_x1",
    "gc.pid",
    "gc.log",
    "info/refs",
    "description",
    "lfs/objects/x",
    "worktrees/w/HEAD",
    "worktrees/w/index.lock",
    "modules/lib/objects/ab/c",
]
OBEYED_BELOW_GIT = [
    "config",
    "config.lock",
    "config.worktree",
    "commondir",
    "gitdir",
    "hooks",
    "hooks/pre-commit",
    "info/attributes",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "rebase-merge",
    "rebase-merge/git-rebase-todo",
    "rebase-apply/next",
    "sequencer/todo",
    "BISECT_NAMES",
    "BISECT_START",
    "branches/x",
    "remotes/origin",
    "modules/lib/config",
    "modules/lib/hooks/x",
    "worktrees/w/config.worktree",
    "worktrees/w/commondir",
    "worktrees/w",
    "svn/config",
    "Config",
    "INDEX/x",
    "gitweb.conf",
    "index/x",
    "HEAD/x",
    "COMMIT_EDITMSG/x",
    "head",
]


def test_of_git_directories_a_commit_needs_these_and_no_others() -> None:
    assert [path for path in NEEDED if not commit_needs(path.split("/"))] == []
    assert [path for path in OBEYED_BELOW_GIT if commit_needs(path.split("/"))] == []
    assert len(NEEDED) >= 30
    assert len(OBEYED_BELOW_GIT) >= 30
    assert all(protected_reason(f".git/{path}", commits=True) is None for path in NEEDED)
    assert all(protected_reason(f".git/{path}") for path in (*NEEDED, *OBEYED_BELOW_GIT))


PARTS = ("HEAD", "config", "objects/info/x", "refs/heads/x")


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids=" ".join)
def test_f13_07_a_bare_repository_is_never_completed_unasked(tmp_path: Path, order: Sequence[str]) -> None:
    made = tmp_path / "deep/innocent"
    for name in order:
        path = made / name
        if git_directory_reason(str(path)) is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")

    assert not (made / "HEAD").exists()


@pytest.mark.parametrize(
    ("there", "written"),
    [
        (("HEAD", "objects", "refs"), "config"),
        (("HEAD", "objects", "refs"), "hooks/post-checkout"),
        (("HEAD", "objects", "refs", "config"), "config"),
        (("HEAD", "objects", "refs", "config"), "info/attributes"),
        (("HEAD", "objects", "refs", "config"), "rebase-merge/git-rebase-todo"),
        (("HEAD", "objects", "config"), "refs/x"),
        (("HEAD", "refs", "config"), "objects/x"),
        (("HEAD", "config"), "commondir"),
        (("HEAD", "commondir"), "config.worktree"),
        (("objects", "refs", "config"), "HEAD"),
        ((), "HEAD"),
        ((), "sub/head"),
    ],
)
def test_f13_07_what_completes_or_changes_a_bare_repository_is_asked_about(
    tmp_path: Path, there: Sequence[str], written: str
) -> None:
    for name in there:
        (tmp_path / name).mkdir()

    assert git_directory_reason(f"{tmp_path}/{written}")
    assert git_directory_reason(f"{tmp_path}/main/src/a.py") is None
