"""The one judge of paths whose change would let a later program run something or grant itself rights (R-FILE-9, 9b).

File tools, commands and the sandbox all ask it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from goat_mcp.files.workspace.names import comparable

NOTES = (".config", "goat-mcp", "memory")
"""The folder of the user's notes. What a session wrote down for later ones is no configuration."""

_TABLE = """
# goat-mcp
goat-mcp: .goat*/, goat-mcp.yaml, goat.lock, goat-mcp/upstreams.json, .config/goat-mcp/
# version control
git: .gitconfig, .gitmodules, .git-credentials, .config/git/, .githooks/
Mercurial: .hgrc, .hg/hgrc, .hg/hgrc-not-shared, .hg/sharedpath, .config/hg/
Subversion: .subversion/
Jujutsu: .jj/repo/config.toml, .jjconfig.toml, .config/jj/
# what runs at a commit
Husky: .husky/
pre-commit: .pre-commit-config.yaml
Lefthook: lefthook.yml, lefthook.yaml, lefthook.toml, lefthook.json, lefthook-local.*, .lefthook.*, .lefthook/,
  .lefthook-local/
Overcommit: .overcommit.yml
simple-git-hooks: .simple-git-hooks.*
# keys and remote machines
ssh: .ssh/
GnuPG: .gnupg/
curl: .netrc, _netrc, .curlrc
wget: .wgetrc
aws: .aws/config, .aws/credentials
kubectl: .kube/config
docker: .docker/config.json, .docker/cli-plugins/
terraform: .terraformrc, .terraform.d/
# what starts with a session, or at a time
systemd: .config/systemd/, .local/share/systemd/, etc/systemd/, .config/environment.d/
the desktop: .config/autostart/, .config/autostart-scripts/, .config/plasma-workspace/, .config/i3/, .config/sway/,
  .config/hypr/, .local/share/applications/, .xprofile, .xinitrc, .xserverrc, .xsession, .xsessionrc
D-Bus: dbus-1/services/
PAM: .pam_environment
launchd: library/launchagents/, library/launchdaemons/
Windows: start menu/programs/startup/
cron: etc/crontab, etc/cron.*/, var/spool/cron/, .crontab
# shells
sh: .profile, .shrc, .shinit
bash: .bashrc, .bash_profile, .bash_login, .bash_logout, .bash_aliases, .bashrc.d/
zsh: .zshrc, .zshrc.d/, .zshenv, .zprofile, .zlogin, .zlogout, .oh-my-zsh/, .config/zsh/
ksh: .kshrc, .mkshrc
csh: .cshrc, .tcshrc, .login
fish: config.fish, .config/fish/
Nushell: .config/nushell/
Elvish: .config/elvish/
xonsh: .config/xonsh/, .xonshrc
PowerShell: .config/powershell/, *_profile.ps1
Starship: .config/starship.toml
readline: .inputrc
every shell: .local/bin/
direnv: .envrc, .direnv/, .config/direnv/
mise: .mise.toml, .mise.*.toml, mise.toml, mise.local.toml, .mise/, .config/mise/
rvm: .rvmrc
tmux: .tmux.conf, .config/tmux/
screen: .screenrc
# interpreters and debuggers
Python: sitecustomize.py, usercustomize.py, site-packages/*.pth, dist-packages/*.pth, .pythonrc, .pythonrc.py,
  .pythonstartup
pdb: .pdbrc, .pdbrc.py
IPython: .ipython/, ipython_config.py
Jupyter: .jupyter/, jupyter_*_config.py, jupyter_*_config.json
R: .rprofile, .renviron, rprofile.site
irb: .irbrc
pry: .pryrc
perl: .perldb
GHCi: .ghci
OCaml: .ocamlinit
Elixir: .iex.exs
Erlang: .erlang
SBCL: .sbclrc
Julia: .juliarc.jl, .julia/config/
Octave: .octaverc
PHP: .user.ini
psql: .psqlrc
sqlite3: .sqliterc
mysql: .my.cnf
mongo: .mongorc.js
mongosh: .mongoshrc.js
gdb: .gdbinit, .gdbearlyinit
lldb: .lldbinit, .lldbinit-*
# package managers and builds
npm: .npmrc
yarn: .yarnrc, .yarnrc.yml, .yarn/releases/, .yarn/plugins/
pnpm: .pnpmfile.cjs
bun: .bunfig.toml
twine: .pypirc
pip: pip.conf, pip.ini, .pip/, .config/pip/
uv: .config/uv/
setuptools: .pydistutils.cfg
conda: .condarc
mamba: .mambarc
cargo: .cargo/config, .cargo/config.toml, .cargo/credentials, .cargo/credentials.toml
sh: .cargo/env
gem: .gemrc
Bundler: .bundle/config
Composer: .config/composer/, .composer/
Gradle: .gradle/gradle.properties, .gradle/init.gradle, .gradle/init.gradle.kts, .gradle/init.d/
Maven: .m2/settings.xml, .mvn/extensions.xml, .mvn/jvm.config, .mvn/maven.config, .mavenrc
rpm: .rpmmacros
ack: .ackrc
mail readers: .mailcap
mail: .mailrc
mutt: .muttrc
procmail: .procmailrc
the mail server: .forward
# editors
vim: .vimrc, _vimrc, .gvimrc, .vim/, .lvimrc, .local.vimrc, .vimspector.json
vi: .exrc, _exrc
Neovim: .nvimrc, .nvim.lua, .config/nvim/
Emacs: .emacs, .emacs.d/, .config/emacs/, .doom.d/, .config/doom/, .spacemacs, .dir-locals.el, .dir-locals-2.el
nano: .nanorc
Helix: .helix/, .config/helix/
VS Code: .vscode/, .vscode-server/, .config/code/user/, application support/code/user/, *.code-workspace,
  .devcontainer/, .devcontainer.json
JetBrains editors: .idea/, .ideavimrc, .run/
Fleet: .fleet/
Visual Studio: .vs/
Zed: .zed/, .config/zed/, zed/settings.json
Nova: .nova/
Eclipse: .externaltoolbuilders/
Sublime Text: *.sublime-project, *.sublime-workspace
Gitpod: .gitpod.yml
Replit: .replit
Firebase Studio: .idx/
# agents and their MCP servers
Claude Code: .mcp.json, .claude.json, .claude/
MCP hosts: mcp.json, .config/mcp/
Windsurf: mcp_config.json, .windsurf/, .codeium/
Roo Code: mcp_settings.json, .roo/, .roomodes
Cline: cline_mcp_settings.json, .cline/, .clinerules/
Claude Desktop: claude_desktop_config.json
Cursor: .cursor/
Codex: .codex/
Gemini CLI: .gemini/
Qwen Code: .qwen/
Amazon Q: .amazonq/, .aws/amazonq/
Kiro: .kiro/
Kilo Code: .kilocode/, .kilo/, .config/kilo/, kilo.json, kilo.jsonc
Continue: .continue/, .continuerc.json
Aider: .aider/, .aider.conf.yml, .aider.model.settings.yml
opencode: .opencode/, .config/opencode/, opencode.json, opencode.jsonc
Crush: .crush.json, crush.json, .crushrc, crushrc, .config/crush/
Goose: .config/goose/, goose/config/config.yaml
Amp: .config/amp/
GitHub Copilot: .config/github-copilot/, .copilot/
Junie: .junie/
Trae: .trae/
Augment: .augment/
Factory: .factory/
OpenHands: .openhands/
LM Studio: .lmstudio/
Warp: .warp/
# of other programs
Bun: bunfig.toml
gh: .config/gh/
curl: .config/curlrc
pnpm: .config/pnpm/
Ansible: ansible.cfg
kitty: .config/kitty/
WezTerm: .wezterm.lua
Ruby's debugger: .rdbgrc
less: .lessfilter
Julia: .config/julia/
i3: .i3/
Openbox: .config/openbox/
Goose: .goose/
Amp: .amp/
Tabnine: .tabnine/
Husky: .huskyrc
prek: prek.toml
"""
"""Programs and the names that they obey, in lower case: names are compared without case. `name` is a file, `name/` a
directory with all that is below it, `folder/name` a name in a directory of that name, and `*` stands for anything in
the last part. To protect one more name, add it. What everyday work edits all the time (`package.json`, `Makefile`,
`pyproject.toml`, `.github/workflows`), and what runs nothing without a configuration that names it (`.gitattributes`),
is not in it."""


def _program_by_name(table: str) -> Mapping[str, str]:
    entries = (line for line in table.replace("\n  ", " ").strip().splitlines() if not line.startswith("#"))
    parted = (entry.partition(": ") for entry in entries)
    return {name: program for program, _, names in parted for name in names.split(", ")}


NAMES = _program_by_name(_TABLE)
"""The program by the name that it obeys."""


GIT = ".git"
SET_ASIDE = "set-aside-by-goat-mcp"
"""In a git directory: what sandboxed commands made there and git would obey. Git knows no such name."""

_COMMIT_FOLDERS = frozenset({"objects", "refs", "reftable", "logs", "rr-cache", "lfs", SET_ASIDE})
_COMMIT_FILE = re.compile(
    r"(?:(?:[A-Z]+_)*HEAD|(?:[A-Z]+_)+(?:EDITMSG|MSG|MODE|RR|DESCRIPTION|AUTOSTASH)|AUTO_MERGE"
    r"|NOTES_MERGE_(?:REF|PARTIAL)|(?:shared|next-)?index(?:[.-][\w.-]+)?|packed-refs(?:\.new)?|shallow(?:_\w+)?"
    r"|gc\.(?:pid|log)|description|locked|addp-hunk-edit\.diff)(?:\.lock)?"
)
_ALTERNATES = frozenset({"alternates", "http-alternates"})
_OTHER_REPOSITORIES = frozenset({"worktrees", "modules"})

RUN_BY_GIT = (
    *("config", "hooks", "commondir", "config.worktree", "gitdir", "modules"),
    *("rebase-merge", "rebase-apply", "sequencer"),
)
"""The best known of what it obeys: what runs programs, or names where the configuration lies."""
LISTS = frozenset({"info", "branches", "remotes"})
"""Directories that a commit may need to write to, with files in them that git obeys."""
RESUMED = re.compile(r"rebase-merge|rebase-apply|sequencer|BISECT_[A-Z_]+|NOTES_MERGE_WORKTREE")
"""What git makes when an operation stops halfway, and goes on from later."""
OF_A_GIT_DIRECTORY = frozenset(
    {"head", "objects", "refs", "logs", "info", "packed-refs", "worktrees", "branches", "remotes", *RUN_BY_GIT}
)
"""In lower case."""


def commit_needs(parts: Sequence[str]) -> bool:
    """Whether a commit, a checkout or a merge writes this path below a git directory, which runs nothing by it."""
    if not parts:
        return False
    first, rest = parts[0], parts[1:]
    if first in _OTHER_REPOSITORIES:
        return commit_needs(rest[1:])
    if first == "objects" and rest[:1] == ["info"] and len(rest) > 1:
        return rest[1] not in _ALTERNATES
    if first == "info":
        # `exclude` is no more than a .gitignore, which a command can write anywhere.
        return len(rest) == 1 and (rest[0] == "exclude" or rest[0].startswith("refs"))
    return first in _COMMIT_FOLDERS or (not rest and _COMMIT_FILE.fullmatch(first) is not None)


def protected_reason(path: str, *, root: str = "", commits: bool = False) -> str | None:
    """Why a change of this path always needs a person's approval; None if it does not.

    Args:
        path: what is to be changed, absolute or below the workspace.
        root: the directory of the workspace that it lies in. Names above it protect nothing: a workspace may lie in
            `~/.claude/worktrees`.
        commits: leave out what a commit needs of `.git`. File tools have no business there; commands do.
    """
    parts, first = _parts(path), len(_parts(root)) if root else 0
    names = [_folded(part) for part in parts]
    for index in range(first, len(parts)):
        if names[index] == GIT and not (commits and commit_needs(parts[index + 1 :])):
            return "git runs or obeys it"
        if (program := _obeying(names, index)) and not _is_note(names[index - 1 :]):
            return "it is goat-mcp's own configuration" if program == "goat-mcp" else f"{program} obeys it"
    return None


def git_directory_reason(path: str) -> str | None:
    """Why a write of this path makes or changes a bare repository, whose configuration git obeys for whoever enters
    the directory; None if it does not. Looks at the file system.

    A file `HEAD` is what every git directory needs: so a write of one counts by itself, whatever else is there yet.
    """
    parts = _parts(path)
    if not parts or any(_folded(part) == GIT for part in parts):
        return None
    if _folded(parts[-1]) == "head":
        return "it may make a git directory, which git obeys"
    for index in range(len(parts) - 1, 0, -1):
        name = _folded(parts[index])
        if name not in OF_A_GIT_DIRECTORY:
            continue
        folder = "/".join(parts[:index]) or "/"
        there = {one for one in ("HEAD", "objects", "refs", "commondir") if os.path.lexists(f"{folder}/{one}")}
        if "HEAD" in there and ({"objects", "refs"} <= there | {name} or "commondir" in there | {name}):
            return f"{folder} is or becomes a git directory, which git obeys"
    return None


def _parts(path: str) -> list[str]:
    text = path if os.sep == "/" else path.replace(os.sep, "/")
    absolute = [""] if text.startswith("/") else []
    return [*absolute, *(part for part in text.split("/") if part not in ("", "."))]


@lru_cache(maxsize=4096)
def _folded(name: str) -> str:
    """A name as the least exact of file systems compares it: `.GIT`, `.git.` and `git~1` are `.git` on some."""
    folded = comparable(name).rstrip(" .")
    return GIT if folded == "git~1" else folded


def _obeying(names: list[str], index: int) -> str:
    """The program that obeys the name at `index`, or all that is below it; empty if there is none."""
    is_last = index == len(names) - 1
    for entry in _table().entries(names[index]):
        above = len(entry.above)
        if (is_last or entry.is_folder) and tuple(names[max(0, index - above) : index]) == entry.above:
            return entry.program
    return ""


def _is_note(names: list[str]) -> bool:
    """Whether these parts of a path are those of a note of the user's."""
    return tuple(names[:-1]) == NOTES and names[-1].endswith(".md")


class _Entry(NamedTuple):
    above: tuple[str, ...]
    prefix: str
    suffix: str
    is_folder: bool
    program: str


class _Table:
    """`NAMES`, ready to be searched."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._exact: dict[str, list[_Entry]] = {}
        self._wild: list[_Entry] = []
        for text, program in names.items():
            *above, last = text.removesuffix("/").split("/")
            prefix, star, suffix = last.partition("*")
            entry = _Entry(tuple(above), prefix, suffix, text.endswith("/"), program)
            (self._wild if star else self._exact.setdefault(last, [])).append(entry)
        self._prefixes = tuple(entry.prefix for entry in self._wild if entry.prefix)
        self._suffixes = tuple(entry.suffix for entry in self._wild if not entry.prefix)

    def entries(self, name: str) -> Sequence[_Entry]:
        found: Sequence[_Entry] = self._exact.get(name, ())
        if name.startswith(self._prefixes) or name.endswith(self._suffixes):
            wild = [one for one in self._wild if name.startswith(one.prefix) and name.endswith(one.suffix)]
            return [*found, *wild]
        return found


@cache
def _table() -> _Table:
    return _Table(NAMES)
