"""What commands show of servers from earlier processes, and the error for a name that no server has."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from goat_mcp.core.durations import span
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:  # it brings what it takes to write them
    from goat_mcp.gateway.status.last_runs import LastRun

_DAY_S = 86_400


def last_runs() -> dict[str, LastRun]:
    """Those in the state directory, by the `record` of a status document's upstream."""
    from goat_mcp.gateway.status.last_runs import LastRuns

    return LastRuns(StateDirectory.default(), Redactor()).all()


def age(since_s: float) -> str:
    """How long ago that was, given in seconds since 1970: `3 h`."""
    return span(time.time() - since_s)


def iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_news(run: LastRun | None) -> bool:
    """Whether it has failed and not worked since, or has failed within a day."""
    if run is None or not run.failed_at_s:
        return False
    return run.worked_at_s <= run.failed_at_s or time.time() - run.failed_at_s < _DAY_S


def failure_line(run: LastRun) -> str:
    """Of one that has failed: when, why, and whether it has worked since."""
    since = f"; it worked again {age(run.worked_at_s)} ago" if run.worked_at_s > run.failed_at_s else ""
    return f"failed {age(run.failed_at_s)} ago ({run.reason_code}): {run.cause}{since}"


def unknown_server(name: str, known: Iterable[str]) -> ToolError:
    """The error for a name that is none of `known`."""
    names = sorted(set(known))
    hint = did_you_mean(name, names) or (f"there are {', '.join(names)}" if names else "there is none")
    return ToolError(ErrorCode.NOT_FOUND, f"no server is called {name!r:.120}; {hint}", "See goat-mcp status.")
