"""Templates filled in: escaped, with every character visible that would hide or reorder text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from goat_mcp.core.version import __version__
from goat_mcp.files.documents.visible_text import make_lines_visible
from goat_mcp.server.ui.login import Session, optional_session

_TEMPLATES = Path(__file__).with_name("templates")


class Pages:
    """`views` are those in the navigation: path and title."""

    def __init__(self) -> None:
        self.views: Sequence[tuple[str, str]] = ()
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_visible,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {"clock": clock, "iso": iso, "duration": duration}

    def answer(self, request: Request, template: str, data: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        """A page. `csrf` in it is the hidden field that every form needs."""
        session = optional_session(request.scope)
        csrf = Markup('<input type="hidden" name="csrf" value="{}">').format(session.csrf) if session else Markup()
        html = self._environment.get_template(template).render(
            {
                "views": self._views_of(session),
                "path": _view_of(request.url.path, self.views),
                "csrf": csrf,
                "is_live": session is not None,
                "version": __version__,
                **data,
            }
        )
        return HTMLResponse(html, status)

    def _views_of(self, session: Session | None) -> Sequence[tuple[str, str]]:
        if session is None:
            return ()
        return self.views if session.viewer.is_owner else self.views[:1]

    def text(self, template: str, data: Mapping[str, Any]) -> str:
        """What is no answer to a browser: a document for another host, or a part of one."""
        return self._environment.get_template(template).render(data)

    def error(self, request: Request, status: int, message: str, suggestion: str = "") -> HTMLResponse:
        return self.answer(request, "error.html", {"message": message, "suggestion": suggestion}, status)


def back_to(path: str) -> Response:
    """After a change: the browser loads the view again, and a reload there sends nothing twice."""
    return RedirectResponse(path, 303)


def _view_of(path: str, views: Sequence[tuple[str, str]]) -> str:
    """Where the view is that a page belongs to."""
    return max((where for where, _ in views if f"{path}/".startswith(f"{where}/")), key=len, default="")


def _visible(value: Any) -> Any:
    return make_lines_visible(value) if type(value) is str else value


def clock(at_s: float) -> str:
    """`12:03:04`, with the date if it is not today."""
    at = datetime.fromtimestamp(at_s)
    return at.strftime("%H:%M:%S" if at.date() == datetime.now().date() else "%Y-%m-%d %H:%M")


def iso(at_s: float) -> str:
    """For `<time datetime=...>`."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2 h`, `5 days`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    for unit_s, unit in ((86_400 * 2, "days"), (7200, "h"), (120, "min")):
        if seconds >= unit_s:
            size_s = {"days": 86_400, "h": 3600, "min": 60}[unit]
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"
