"""Plans on disk: what a model proposed, and what the user decided. One Markdown file and one small record a plan.

A plan belongs to the principal and the session that presented it (R-HTTP-3b). Only the operator sees all of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import exclusive
from goat_mcp.state.private_file import no_warning, set_aside, write_private

MAX_PLANS = 200
GROUP = "plans"
"""Of files that servers share."""
_SLUG_CHARS = 40
_NAME = re.compile(r"[a-z0-9-]{1,80}\Z")
PlanMark = tuple[tuple[int, int] | None, ...]
"""Of a plan's record and its text: inode and time of change. Another one when somebody has changed them."""


class PlanStatus(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    USED = "used"
    """Approved, and the session it was made in has left plan mode by it."""


class Presenter(NamedTuple):
    """Who presents plans."""

    principal: str
    session: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One plan. `sha256` is of the text that was decided about; `feedback` is the user's, with a rejection.

    A record of an earlier version names nobody: it belongs to any session of the local principal.
    """

    name: str
    file_path: str
    sha256: str
    status: PlanStatus
    presented_at_s: float
    """When it was presented last."""
    feedback: str = ""
    principal: str = LOCAL
    session: str = ""

    def is_of(self, presenter: Presenter) -> bool:
        """Whether a decision about it is for this session."""
        return self.principal == presenter.principal and self.session in ("", presenter.session)


@dataclass(frozen=True)
class PlanStore:
    """The plans of one workspace. Files are 0600; the oldest of a principal go past `MAX_PLANS`.

    Every lookup is for one principal; what the operator sees of all is below (`all_plans`, `find_plan`).
    """

    state: StateDirectory
    scope: str
    warn: Warn = no_warning

    @property
    def folder(self) -> Path:
        return self.state.folder("plans", self.scope)

    def save(self, text: str, presenter: Presenter) -> Plan:
        """Store a plan that waits for the user; the same text from the same session is the same plan, presented again.

        One that was approved meanwhile stays so.
        """
        digest = _digest(text)
        with self._alone():
            for plan in self.newest_first(presenter.principal):
                if plan.sha256 == digest and plan.status is not PlanStatus.USED and plan.is_of(presenter):
                    status = plan.status if plan.status is PlanStatus.APPROVED else PlanStatus.WAITING
                    again = replace(plan, presented_at_s=time.time(), status=status, feedback="")
                    self._record(again)
                    return again
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            name = f"{stamp}-{_slug(text)}-{secrets.token_hex(2)}"
            path = self._text_path(name)
            _write(path, text)
            plan = Plan(name, str(path), digest, PlanStatus.WAITING, time.time(), "", *presenter)
            self._record(plan)
            for old in self.newest_first(presenter.principal)[MAX_PLANS:]:
                Path(old.file_path).unlink(missing_ok=True)
                self._record_path(old.name).unlink(missing_ok=True)
            return plan

    def newest_first(self, principal: str) -> list[Plan]:
        return sorted((plan for plan in self._all() if plan.principal == principal), key=_age, reverse=True)

    def find(self, name: str, principal: str) -> Plan | None:
        """None for a plan that is not there, is another principal's, or whose record is damaged."""
        plan = self._read(name)
        return plan if plan is not None and plan.principal == principal else None

    def _all(self) -> list[Plan]:
        return [plan for path in self.folder.glob("*.json") if (plan := self._read(path.stem)) is not None]

    def _read(self, name: str) -> Plan | None:
        """A damaged record is set aside (R-CRASH-1)."""
        if not _NAME.match(name):
            return None
        path = self._record_path(name)
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            # The file is here, wherever the server that wrote the record has it.
            return replace(
                Plan(**fields), name=name, file_path=str(self._text_path(name)), status=PlanStatus(fields["status"])
            )
        except OSError:
            return None
        except (ValueError, TypeError, KeyError):
            set_aside(path, self.warn)
            return None

    def text(self, plan: Plan) -> str:
        """The plan as it is on disk now; empty if the file is gone."""
        try:
            return Path(plan.file_path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def marks(self, principal: str) -> dict[str, PlanMark]:
        """Of every plan of this principal, by its name."""
        return {plan.name: self.mark(plan.name) for plan in self._all() if plan.principal == principal}

    def mark(self, name: str) -> PlanMark:
        return tuple(_changed(self.folder / f"{name}{suffix}") for suffix in (".json", ".md"))

    def decide(self, plan: Plan, status: PlanStatus, *, feedback: str = "", edited: str | None = None) -> Plan:
        """Record what the user decided, about the text on disk or the one they made of it. A plan that its session
        has gone on by stays as it is."""
        with self._alone():
            now = self._read(plan.name)
            if now is not None and now.status is PlanStatus.USED:
                return now
            if edited is not None:
                _write(Path(plan.file_path), edited)
            decided = replace(plan, status=status, feedback=feedback, sha256=_digest(self.text(plan)))
            self._record(decided)
            return decided

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Alone among our processes, and the servers that share the state: a decision is not lost where the plan is
        presented again. Raises `ToolError(IO)`."""
        try:
            with self.state.editing(GROUP), exclusive(self.folder / "plans.lock"):
                yield
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO, f"the plan could not be stored: {problem.strerror or problem}", "Try again."
            ) from problem

    def _text_path(self, name: str) -> Path:
        return self.folder / f"{name}.md"

    def _record_path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _record(self, plan: Plan) -> None:
        _write(self._record_path(plan.name), json.dumps(asdict(plan)))


def all_plans(state: StateDirectory) -> list[tuple[PlanStore, Plan]]:
    """For the operator: everybody's plans in every workspace, newest first. Raises `ToolError(IO)`."""
    if state.shared is not None:
        state.shared.look(state.path, GROUP)
    stores = [PlanStore(state, folder.name) for folder in sorted(state.folder("plans").iterdir()) if folder.is_dir()]
    plans = [(store, plan) for store in stores for plan in store._all()]  # pyright: ignore[reportPrivateUsage]
    return sorted(plans, key=lambda one: _age(one[1]), reverse=True)


def find_plan(state: StateDirectory, name: str) -> tuple[PlanStore, Plan] | None:
    """For the operator: a plan by its name, whoever presented it, in whatever workspace."""
    return next((one for one in all_plans(state) if one[1].name == name), None)


def _age(plan: Plan) -> tuple[float, str]:
    return plan.presented_at_s, plan.name


def _changed(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _slug(text: str) -> str:
    """A few words of the first line that has any, for the file's name."""
    line = next((line for line in text.splitlines() if re.search(r"[A-Za-z0-9]", line)), "plan")
    return re.sub(r"[^a-z0-9]+", "-", line.lower()).strip("-")[:_SLUG_CHARS].strip("-") or "plan"


def _write(path: Path, text: str) -> None:
    write_private(path, text.encode("utf-8"))
