"""How an HTTP status is told."""

from __future__ import annotations

import pytest

from goat_mcp.web.http.client import http_status_text


@pytest.mark.parametrize(
    ("status", "told"), [(404, "HTTP 404 Not Found"), (503, "HTTP 503 Service Unavailable"), (799, "HTTP 799")]
)
def test_a_status_is_told_by_number_and_name(status: int, told: str) -> None:
    assert http_status_text(status) == told
