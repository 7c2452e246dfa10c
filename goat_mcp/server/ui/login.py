"""How the owner gets in: a link that works once, and the session that it opens.

No secret is kept: of links and sessions only a hash. A link is a file in the state directory, so that `goat-mcp ui`
can make one for the page of another process; sessions are in memory and end with the process.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from starlette.types import Scope

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.gateway.approvals.viewer import THE_OWNER, Viewer
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import write_private

TOKEN_BYTES = 32
LINK_LASTS_S = 60.0
SESSION_LASTS_S = 12 * 3600.0
MAX_SESSIONS = 20
MAX_OF_OTHERS = 5
"""Of one principal that does not run this server: a flood of logins ends its own sessions alone."""
MAX_IN_ALL = 1000
MAX_NOTES = 20
FAILURES_AT_ONCE = 10
_FOLDER = "ui_logins"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_SESSION = "goat_mcp.session"


@dataclass(frozen=True)
class LinkUser:
    """The user of this machine whose programs may use a link and its session; None: everybody's who has it. `viewer`
    is who logs in with it."""

    user: int | None = None
    viewer: Viewer = THE_OWNER

    def is_for(self, user: int | None) -> bool:
        """`user` is that of the other end, None if the system does not say. The system's relays run as root."""
        return self.user is None or user in (None, 0, self.user)


class LoginLinks:
    """Links to the page at `origin`; those to `also` open it, too. Blocking: they are files."""

    def __init__(self, state: StateDirectory, origin: str, also: Collection[str] = ()) -> None:
        self._state = state
        self._origin = origin
        self._origins = {origin, *also}

    def new(self, user: int | None = None, viewer: Viewer = THE_OWNER) -> str:
        """A link that opens a session, once, within `LINK_LASTS_S`. `user`: for programs of this one alone, where the
        link is given to a browser as an argument, which other users can see. Raises `OSError`."""
        folder = self._state.folder(_FOLDER)
        for old in folder.iterdir():  # those that nobody opened
            with suppress(OSError):
                if time.time() - old.stat().st_mtime > LINK_LASTS_S:
                    old.unlink()
        token = secrets.token_urlsafe(TOKEN_BYTES)
        expires_at_s = time.time() + LINK_LASTS_S
        document = {"origin": self._origin, "expires_at_s": expires_at_s, "user": user, "viewer": asdict(viewer)}
        write_private(folder / _hash(token), json.dumps(document).encode("ascii"), synced=False)
        return f"{self._origin}/ui/login?token={token}"

    def use(self, token: str, user: int | None = None) -> LinkUser | None:
        """For whom it opens a session now; it never does again. None if it opens none: another `user` uses up
        nothing."""
        if not _TOKEN.fullmatch(token):
            return None
        file = self._state.path / _FOLDER / _hash(token)
        try:
            document: Any = json.loads(file.read_bytes())
            match document:
                case {
                    "origin": str(origin),
                    "expires_at_s": float(expires_at_s),
                    "user": int() | None as owner,
                    "viewer": {
                        "principal": str(principal),
                        "sees_all": bool(sees_all),
                        "is_owner": bool(is_owner),
                    },
                }:
                    link = LinkUser(owner, Viewer(principal, sees_all, is_owner))
                case _:
                    return None
            if not link.is_for(user):
                return None
            file.unlink()  # of two who try at once only one removes it
        except (OSError, ValueError):
            return None
        return link if origin in self._origins and time.time() < expires_at_s else None


@dataclass(eq=False)
class Session:
    """One browser that is logged in. `notes` are sentences about what it did, by record."""

    ends_at_s: float
    link: LinkUser = LinkUser()
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES))
    is_ended: bool = False
    notes: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])
    clock: Callable[[], float] = time.monotonic

    @property
    def viewer(self) -> Viewer:
        return self.link.viewer

    @property
    def is_open(self) -> bool:
        return not self.is_ended and self.clock() < self.ends_at_s

    def note(self, about: str, text: str) -> None:
        self.notes[about] = text
        if len(self.notes) > MAX_NOTES:
            self.notes.popitem(last=False)


class Sessions:
    """The oldest makes room for a new one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._failures = TokenBucket(1.0, FAILURES_AT_ONCE, clock)

    def may_try(self) -> bool:
        """False while too many logins have failed."""
        return self._failures.spend(0.0) == 0.0

    def failed(self) -> None:
        self._failures.spend(1.0)

    def open(self, link: LinkUser | None = None) -> str:
        """A new session. Returns what the cookie holds."""
        cookie = secrets.token_urlsafe(TOKEN_BYTES)
        ends_at_s = self._clock() + SESSION_LASTS_S
        self._sessions[_hash(cookie)] = Session(ends_at_s, link or LinkUser(), clock=self._clock)
        viewer = self._sessions[_hash(cookie)].viewer
        same = [key for key, one in self._sessions.items() if one.viewer.principal == viewer.principal]
        if len(same) > (MAX_SESSIONS if viewer.is_owner else MAX_OF_OTHERS):
            self._sessions.pop(same[0]).is_ended = True
        elif len(self._sessions) > MAX_IN_ALL:
            self._sessions.popitem(last=False)[1].is_ended = True
        return cookie

    def find(self, cookie: str) -> Session | None:
        key = _hash(cookie)
        session = self._sessions.get(key)
        if session is not None and not session.is_open:
            del self._sessions[key]
            return None
        return session

    def end(self, session: Session) -> None:
        session.is_ended = True
        self._sessions = OrderedDict((key, one) for key, one in self._sessions.items() if one is not session)


def session_of(scope: Scope) -> Session:
    """That of a request behind the login."""
    return scope[_SESSION]


def optional_session(scope: Scope) -> Session | None:
    return scope.get(_SESSION)


def with_session(scope: Scope, session: Session) -> Scope:
    return {**scope, _SESSION: session}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
