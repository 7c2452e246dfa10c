"""The queue of the user, with everything that may wait in it: for the command line, the page and messengers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.core.redaction import Redactor, secrets_among
from goat_mcp.core.resources import Announcements
from goat_mcp.files.changes.journal import UNLIMITED, Journal
from goat_mcp.files.changes.review import Review, StagedChange, StagedChanges
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.files.workspace import Workspace
from goat_mcp.gateway.approvals.change_source import ChangeSource
from goat_mcp.gateway.approvals.definition_source import DefinitionSource
from goat_mcp.gateway.approvals.login_source import LoginSource
from goat_mcp.gateway.approvals.plan_source import PlanSource
from goat_mcp.gateway.approvals.project_source import ProjectSource
from goat_mcp.gateway.approvals.queue import ApprovalQueue, ApprovalSource
from goat_mcp.gateway.build.audit import users_audit_log
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning
from goat_mcp.upstreams.pinning.pin_lock import PinLock, PinnedDefinitions


class UserQueue:
    """The parts of the queue: commands that know one kind only take its source."""

    def __init__(self, state: StateDirectory, redactor: Redactor | None = None, warn: Warn = no_warning) -> None:
        self._state = state
        self._redactor = redactor or Redactor(secrets_among(os.environ))
        self.plans = PlanSource(state, self._shown)
        self.changes = ChangeSource(StagedChanges(state), self._review_of, self._recorded, self._shown)
        self.definitions = DefinitionSource(PinLock(state, warn), PinnedDefinitions(state, warn), self._shown)
        self.logins = LoginSource(state, self._shown)
        self.projects = ProjectSource(state, self._projects, self._shown)
        self.queue = ApprovalQueue(state, ApprovalStore(state, warn), self._sources, warn)

    def _sources(self) -> Sequence[ApprovalSource]:
        return (self.plans, self.changes, self.definitions, self.logins, self.projects)

    def decide_changes_with(self, review: Review) -> ChangeSource:
        """From now on the changes of one workspace are decided about by this review, which records that."""
        self.changes = ChangeSource(review.queue, lambda staged: review, lambda same: same, self._shown)
        return self.changes

    def _shown(self, text: str) -> str:
        return make_visible(self._redactor.text(text))

    def _projects(self) -> Iterator[Path]:
        for document in ProcessFiles(self._state).running():
            yield from map(Path, document["workspace"][:1])  # the settings of the others do not count

    def _review_of(self, staged: StagedChange) -> Review:
        root = self._root_of(staged.path)
        workspace = Workspace(root, private=(self._state.path,))
        journal = Journal(self._state, UNLIMITED)
        return Review(StagedChanges(self._state), journal, workspace, Announcements())

    def _recorded(self, review: Review) -> Review:
        roots = review.workspace.roots
        return replace(review, record=users_audit_log(list(map(str, roots)), review.workspace, self._state))

    def _root_of(self, path: Path) -> Path:
        """The workspace of a running server that the file lies in; else the nearest directory that is there."""
        roots = [Path(root) for document in ProcessFiles(self._state).running() for root in document["workspace"]]
        around = [root for root in roots if path.is_relative_to(root) and root.is_dir()]
        return min(around, key=lambda root: len(root.parts), default=None) or next(
            parent for parent in path.parents if parent.is_dir()
        )


def approval_queue(
    state: StateDirectory, *, redactor: Redactor | None = None, warn: Warn = no_warning
) -> ApprovalQueue:
    """All that waits for the user, of every kind. `redactor` knows secrets; else those of the environment."""
    return UserQueue(state, redactor, warn).queue
