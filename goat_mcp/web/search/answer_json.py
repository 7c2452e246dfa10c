"""JSON that a provider answered with, read without trusting its shape."""

from __future__ import annotations

import json
from typing import Any, cast

from goat_mcp.web.search.provider import NotUnderstood


def read_object(body: bytes) -> dict[str, Any]:
    """Raises `NotUnderstood`."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        start = body.lstrip()[:200].lower()
        kind = "a web page" if start.startswith((b"<!doctype", b"<html", b"<head", b"<body")) else "no JSON"
        raise NotUnderstood(f"it is {kind} ({len(body)} bytes)") from None
    if not isinstance(answer, dict):
        raise NotUnderstood(f"it is JSON, but a {type(answer).__name__} and no object")
    return cast("dict[str, Any]", answer)


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """The objects of a list. Raises `NotUnderstood` where there is no list: that is not "nothing found"."""
    if not isinstance(value, list):
        raise NotUnderstood(f"it has no list {where!r}")
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""
