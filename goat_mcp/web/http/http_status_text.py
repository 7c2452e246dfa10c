"""An HTTP status in words."""

from __future__ import annotations

from http import HTTPStatus


def http_status_text(status: int) -> str:
    """E.g. `HTTP 404 Not Found`; of one that has no name the number alone."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
