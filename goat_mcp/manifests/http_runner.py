"""Runs a resource whose entry is an HTTP endpoint: a request a call, JSON there and back.

The host in the manifest is the user's word, so it may be a private one, over plain http, too. No redirect is followed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.entry import HttpEntry
from goat_mcp.manifests.handler_api import HandlerContext
from goat_mcp.manifests.handler_results import call_timeout_error, read_json, reported_failure
from goat_mcp.manifests.runner import Runner
from goat_mcp.manifests.tool_document import Export
from goat_mcp.web.http import HttpClient

MAX_ANSWER_BYTES = 5_000_000
_SHOWN_CHARS = 300
_OK = range(200, 300)


class HttpRunner(Runner):
    """One resource's endpoint."""

    def __init__(
        self,
        entry: HttpEntry,
        http: HttpClient,
        *,
        headers: Callable[[Mapping[str, str]], Mapping[str, str]],
        message_limit: int,
    ) -> None:
        """`headers` resolves the references in the entry's headers. Raises `ToolError`."""
        self._entry = entry
        self._http = http
        self._headers = headers
        self._message_limit = message_limit

    async def run(self, export: Export, input: Mapping[str, Any], ctx: HandlerContext, timeout_s: float) -> Any:
        """As `Runner.run`."""
        url = self._entry.url.replace("{export}", quote(export.name, safe=""))
        headers = {"accept": "application/json", **self._headers(self._entry.headers)}
        content: bytes | None = None
        if self._entry.method == "GET":
            url += ("&" if urlsplit(url).query else "?") + urlencode(_query(input)) if input else ""
        else:
            headers = {"content-type": "application/json", **headers}
            content = json.dumps(input, ensure_ascii=False).encode()
        try:
            answer = await self._http.send(
                self._entry.method,
                url,
                headers=headers,
                content=content,
                allow_hosts=(urlsplit(url).netloc,),
                timeout_s=timeout_s,
                max_bytes=MAX_ANSWER_BYTES,
            )
        except ToolError as failed:
            if failed.code is ErrorCode.NETWORK and (failed.facts or {}).get("timed_out"):
                raise call_timeout_error(export.spec.name, timeout_s) from None
            raise
        if answer.truncated:
            raise self._failed(f"{export.spec.name} answered with more than {MAX_ANSWER_BYTES} bytes", "Ask for less.")
        value = _parsed(answer.body)
        if answer.status not in _OK:
            raise self._refused(export, answer.status, answer.headers, value, answer.body)
        if value is _NO_JSON and answer.body.strip():
            raise self._failed(
                f"{export.spec.name} answered no JSON, but {_shown(answer.body)!r}", "Tell the user: JSON is wanted."
            )
        return None if value is _NO_JSON else value

    def _refused(self, export: Export, status: int, headers: Mapping[str, str], value: Any, body: bytes) -> ToolError:
        error: Any = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
        if isinstance(error, dict):
            return reported_failure({"name": f"Http{status}", **error}, self._message_limit)
        said = _shown(body) or "nothing more"
        for header in ("location", "retry-after"):
            if told := headers.get(header, ""):
                said = f"{said}; {header}: {told:.{_SHOWN_CHARS}}"
        return self._failed(f"{export.spec.name} answered with HTTP status {status}: {said}", name=f"Http{status}")

    def _failed(self, message: str, suggestion: str = "", name: str = "HttpFailed") -> ToolError:
        return handler_failed(message, suggestion, name=name, limit=self._message_limit)


_NO_JSON: Any = object()


def _parsed(body: bytes) -> Any:
    try:
        return read_json(body)
    except ValueError:
        return _NO_JSON


def _shown(body: bytes) -> str:
    return body[:_SHOWN_CHARS].decode("utf-8", "replace").strip()


def _query(input: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Texts as they are, everything else as JSON; a list is the same name several times."""
    pairs: list[tuple[str, Any]] = []
    for name, value in input.items():
        pairs += [(name, one) for one in cast("list[Any]", value)] if isinstance(value, list) else [(name, value)]
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in pairs]
