"""A goat-mcp elsewhere, asked with a token of its identity provider: what waits there, and decisions about it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlsplit

import anyio
import click

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.file_safety import UnsafeFile, read_secret_file
from goat_mcp.web.http import HttpClient, HttpOptions

TOKEN_VARIABLE = "GOAT_MCP_TOKEN"  # a name
_MAX_BYTES = 16_000_000
Command = TypeVar("Command", bound=Callable[..., Any])


def remote_options(command: Command) -> Command:
    """The flags `--server` and `--token-file`."""
    file = click.Path(path_type=Path, dir_okay=False)
    with_file = click.option(
        "--token-file", type=file, metavar="FILE", help=f"A token for --server; else that in {TOKEN_VARIABLE}."
    )(command)
    return click.option(
        "--server", default="", metavar="URL", help="Decide at a goat-mcp elsewhere: https://mcp.example.com/mcp."
    )(with_file)


class RemoteServer:
    """`url` is that of its `/mcp`. A token goes over TLS only, or stays on this machine."""

    def __init__(self, url: str, token_file: Path | None) -> None:
        """Raises `ToolError`: INPUT for the URL, CONFIG for the token."""
        parts = urlsplit(url)
        is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if not parts.hostname or parts.scheme not in (("https", "http") if is_here else ("https",)):
            raise ToolError(ErrorCode.INPUT, f"--server {url!r} is no https:// address", "Write https://HOST/mcp.")
        self._base = f"{parts.scheme}://{parts.netloc}/approvals"
        self._authority = parts.netloc
        self._token = _token(token_file)
        self._http = HttpClient(HttpOptions())

    def listed(self) -> dict[str, Any]:
        """`waiting` and `decided`, and `of` whom. Raises `ToolError`."""
        return self._asked("GET", "")

    def one(self, id: str) -> dict[str, Any]:
        return self._asked("GET", id)

    def decide(self, id: str, decision: Mapping[str, Any]) -> dict[str, Any]:
        return self._asked("POST", id, decision)

    def page_link(self) -> str:
        return str(self._asked("POST", "page", {})["url"])

    def _asked(self, method: str, id: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return anyio.run(self._answer, method, f"{self._base}/{quote(id, safe='')}" if id else self._base, body)

    async def _answer(self, method: str, url: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        answer = await self._http.send(
            method,
            url,
            headers={"authorization": f"Bearer {self._token}", "content-type": "application/json"},
            content=None if body is None else json.dumps(body).encode(),
            allow_hosts=[self._authority],
            max_bytes=_MAX_BYTES,
        )
        try:
            document: Any = json.loads(answer.body)
        except ValueError:
            document = None
        found = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
        if answer.status == 200 and found:
            return found
        if answer.status == 401:
            raise ToolError(ErrorCode.AUTH, f"{self._authority} refuses the token", "Get a new one from its provider.")
        message = str(found.get("message") or f"{self._authority} answered with status {answer.status}")
        raise ToolError(_code(found), message, str(found.get("suggestion", "")))


def _code(found: Mapping[str, Any]) -> ErrorCode:
    try:
        return ErrorCode(str(found.get("error")))
    except ValueError:
        return ErrorCode.NETWORK


def _token(file: Path | None) -> str:
    if file is None:
        if token := os.environ.get(TOKEN_VARIABLE, "").strip():
            return token
        raise ToolError(
            ErrorCode.CONFIG,
            "there is no token for --server",
            f"Name a file with --token-file, or set {TOKEN_VARIABLE}.",
        )
    try:
        return read_secret_file(file).strip()
    except (UnsafeFile, OSError) as problem:
        raise ToolError(
            ErrorCode.CONFIG, f"token file {file}: {problem}", "Name a file that only you can read."
        ) from None
