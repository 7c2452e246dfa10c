"""Where a gateway works and keeps its state, looked at before anything is built on it.

It works in the directories that the settings name, those of its client, or the current one. What may be done there, and
to which files, is the workspace's and the rules'.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from goat_mcp.calls.permissions.rule_set import CurrentRules, FileRules
from goat_mcp.commands.sandbox.options import SandboxMode
from goat_mcp.core import platform
from goat_mcp.core.errors import ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace.personal_roots import PersonalRoots
from goat_mcp.files.workspace.protected import protected_reason
from goat_mcp.files.workspace.roots import default_roots
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry


def check_state(state: StateDirectory) -> None:
    """Raises `BrokenSettings` for a state directory that cannot be used, or that others may write."""
    try:
        folder = state.folder()
        mode = folder.stat().st_mode
    except OSError as problem:
        raise _unusable(state, problem.strerror) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unusable(state, "it may not be written")
    if platform.HAS_FILE_MODES and mode & 0o022:
        raise BrokenSettings(
            f"state directory {state.path} can be written by others (mode {mode & 0o777:04o})",
            "Name one that only you can write with GOAT_MCP_STATE_DIR.",
        )


def refused_by_state(problem: OSError, state: StateDirectory) -> BrokenSettings | None:
    """What to say where the problem is with the state directory or something in it; None for any other."""
    named = problem.filename
    if not isinstance(named, str):
        return None
    is_missing_parent = state.path.is_relative_to(named) and not os.path.lexists(named)
    if not is_missing_parent and not Path(named).is_relative_to(state.path):
        return None
    below = "" if Path(named) == state.path else f" ({named})"
    return _unusable(state, f"{problem.strerror}{below}")


def _unusable(state: StateDirectory, why: str | None) -> BrokenSettings:
    return BrokenSettings(
        f"state directory {state.path} cannot be used: {why}", "Name another one with GOAT_MCP_STATE_DIR."
    )


def scope_of(directories: Sequence[Path]) -> str:
    """A short name for a set of workspace directories."""
    return hashlib.sha256("\0".join(str(directory.absolute()) for directory in directories).encode()).hexdigest()[:16]


def named_roots(directories: Sequence[Path]) -> list[Path]:
    """The workspace's directories as absolute paths. Raises `BrokenSettings` for one that is none."""
    roots = [directory.expanduser().absolute() for directory in directories]
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
            raise BrokenSettings(f"workspace {root} is not a directory", "Name an existing directory with --workspace.")
    return roots


def personal_roots(settings: Settings, roots: Sequence[Path], spill: SpillFiles) -> PersonalRoots:
    """Raises `BrokenSettings` if the directories of principals could not be kept apart."""
    if len(roots) != 1:
        raise BrokenSettings(
            f"identity.workspace: per_principal makes a directory for each principal in the workspace, of which there "
            f"must be one; there are {len(roots)}",
            "Name one directory with --workspace.",
        )
    if settings.sandbox is SandboxMode.OFF:
        raise BrokenSettings(
            "identity.workspace: per_principal needs the sandbox, or commands would reach the directories of others",
            "Leave sandbox: off out.",
        )
    mode = roots[0].stat().st_mode
    if platform.HAS_FILE_MODES and mode & 0o022 and not mode & stat.S_ISVTX:
        raise BrokenSettings(
            f"workspace {roots[0]} can be written by others (mode {mode & 0o777:04o}), and identity.workspace: "
            "per_principal keeps directories in it",
            "Take that right away from them, or name another directory.",
        )
    return PersonalRoots(roots[0], lambda: spill.caller, (spill.root,))


class WorkingDirectories:
    """`workspace` gives access to what lies in them, `file_rules` what the permission rules say of it.

    `wants_client_roots` while nobody has said where: then the client is asked.
    Raises `BrokenSettings` for a directory that is none.
    """

    def __init__(
        self,
        settings: Settings,
        rules: CurrentRules,
        state: StateDirectory,
        spill: SpillFiles,
        telemetry: Telemetry,
        *,
        ask_client_for_roots: bool,
        serves_http: bool,
    ) -> None:
        self._settings = settings
        self._state = state
        self._telemetry = telemetry
        self._clients_have_their_own = serves_http and not settings.workspace
        self._has_client_roots = self.wants_client_roots = ask_client_for_roots and not settings.workspace
        self.are_personal = serves_http and settings.identity.workspace == "per_principal"
        self.file_rules = FileRules(rules, lambda: self.workspace.roots)
        roots = named_roots(settings.workspace)
        personal = personal_roots(settings, roots, spill) if self.are_personal else None
        self.workspace = Workspace(
            *roots,
            readable=(spill.root,),
            is_open=spill.is_open,
            private=(state.path, *([settings.audit.path.expanduser()] if settings.audit.path else ())),
            why_denied=self.file_rules.why_denied,
            own_roots=personal.now if personal is not None else None,
        )
        self._shared = self.workspace.roots
        if not settings.workspace and not ask_client_for_roots:
            self.workspace.adopt_roots(default_roots())

    def adopt_client_roots(self, roots: Sequence[Path]) -> None:
        """Use the roots a client named; where it named none, the current directory unless that is / or home."""
        self.wants_client_roots = False
        self.workspace.adopt_roots([root for root in roots if root.is_dir()] or default_roots())
        if self.workspace.roots and self._settings.overlooks_project(self.workspace.roots[0]):
            self._telemetry.warning(
                "a project's settings are not in force: its directory was known only after the start",
                directory=str(self.workspace.roots[0]),
                remedy="start goat-mcp with --workspace, or in that directory",
            )

    def keep_roots(self) -> None:
        """The client said that its roots have changed, and not to what."""
        self.wants_client_roots = False

    def client_roots_changed(self) -> None:
        """A client has said so. If its roots are the workspace, they are asked for again."""
        self.wants_client_roots = self._has_client_roots

    def roots_for_upstreams(self, client_has_some: bool) -> Sequence[Path]:
        """A workspace that somebody named wins; the client's own roots count where nobody did (ERA-6).

        On stdio the client's roots are the workspace then; over HTTP each client has its own. If each principal has a
        directory, nobody's is named: a process of an upstream outlives the call that started it.
        """
        if self.are_personal:
            return ()
        return () if client_has_some and self._clients_have_their_own else self.workspace.roots

    def writable(self) -> Sequence[Path]:
        """Where calls may write."""
        return (*self.workspace.roots, *self._settings.sandbox_write)

    def tools_may_write(self, path: Path) -> bool:
        """Whether calls may change what lies there without a person seeing each."""
        return not path.is_relative_to(self._state.path) and any(
            path.is_relative_to(folder) and protected_reason(str(path), root=str(folder)) is None
            for root in self.writable()
            for folder in (root, root.resolve())
        )

    def first(self) -> str:
        """What lasting state is about: the first directory, empty where there is none. It is the same for all
        principals, also if each has one of its own below."""
        roots = self._shared if self.are_personal else self.workspace.roots
        return str(roots[0]) if roots else ""

    def real_path(self, asked: str) -> str:
        """Where a path leads; the path itself if that is not known."""
        try:
            return str(self.workspace.real_path(self.workspace.resolve(asked)))
        except ToolError:
            return asked
