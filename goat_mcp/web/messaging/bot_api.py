"""A messenger's account as the user configured it, and requests to its Web API. No token appears in any message.

Each messenger's tool knows which requests there are and what their answers mean. A file that it downloads comes into
the workspace as a new file, by the rules of all writers (R-FILE-1 to 6).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import anyio
import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import REDACTED
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.substitution import Unresolved
from goat_mcp.files.changes.call_files import Changes
from goat_mcp.files.workspace import Workspace, WorkspacePath
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.client import WholeResponse, http_status_text
from goat_mcp.web.http.target import Target, parse_target


@dataclass(frozen=True, kw_only=True)
class Service:
    """One messenger. `resource` is the tool's name, under which the settings are; `token` what tokens look like;
    `variable` the environment variable that holds one if the settings do not; `chats` what it calls its chats, which is
    the name of the allow list too; `same_chat` gives one spelling for each of them."""

    name: str
    resource: str
    base_url: str
    token: re.Pattern[str]
    variable: str
    chats: str
    same_chat: Callable[[object], str]


@dataclass(frozen=True)
class Account:
    """`chats` None: any. `base` is the service's own unless `is_elsewhere`."""

    service: Service
    token: str
    base: Target
    is_elsewhere: bool
    chats: frozenset[str] | None

    @property
    def allow_hosts(self) -> tuple[str, ...]:
        """A base that the user named may be a private address, over plain http, too."""
        return (
            (f"[{self.base.host}]:{self.base.port}" if ":" in self.base.host else f"{self.base.host}:{self.base.port}",)
            if self.is_elsewhere
            else ()
        )

    @property
    def base_url(self) -> str:
        return self.base.url.rstrip("/")

    def without_token(self, text: str) -> str:
        """The text as it may be shown (R-SECRET-1)."""
        return text.replace(self.token, REDACTED)

    def check_chat(self, chat: object) -> str:
        """The chat as the service is told it. Raises `ToolError`: INPUT, PERMISSION."""
        name = self.service.same_chat(chat)
        if self.chats is not None and name.lower() not in self.chats:
            raise self._not_allowed(name)
        return name

    def check_any_chat(self, chats: frozenset[str], what: str) -> None:
        """Raises `ToolError(PERMISSION)` where none of these may be used."""
        if self.chats is not None and not self.chats & {chat.lower() for chat in chats}:
            raise self._not_allowed(what)

    def check_no_chat_is_needed(self, field: str, what: str) -> None:
        """For a call that may leave the chat out. Raises `ToolError(PERMISSION)` where only some may be used."""
        if self.chats is not None:
            raise ToolError(
                ErrorCode.PERMISSION,
                f"{self.service.name} may be used for certain {self.service.chats} only, and without {field} nobody "
                f"can tell which this is about (setting {self._key})",
                f"Call again with {field}: {what}.",
            )

    @property
    def _key(self) -> str:
        return f"tools.{self.service.resource}.{self.service.chats}"

    def _not_allowed(self, what: str) -> ToolError:
        return ToolError(
            ErrorCode.PERMISSION,
            f"{what} is not among the {self.service.chats} that {self.service.name} may be used for",
            f"Use another one. Only the user can add it, to the setting {self._key}.",
        )


def read_account(service: Service, config: Mapping[str, Any], references: SecretReferences) -> Account:
    """From `tools.RESOURCE` of the settings, references resolved. Raises `ToolError`: CONFIG, NOT_CONFIGURED."""
    key = f"tools.{service.resource}"
    # A misspelt allow list would allow everything.
    unknown = sorted(config.keys() - {"token", "baseUrl", service.chats})
    if unknown:
        raise _broken(f"{key}.{unknown[0]:.60} is unknown", f"There are token, {service.chats} and baseUrl.")
    token = _token(service, config, references)
    base_url = config.get("baseUrl", service.base_url)
    try:
        base = parse_target(str(base_url))
    except ToolError as refused:
        raise _broken(f"{key}.baseUrl: {refused.message}", "Write e.g. http://127.0.0.1:8081.") from None
    if "?" in base.path:
        raise _broken(f"{key}.baseUrl has a query", "Write it without.")
    is_elsewhere = base_url != service.base_url
    return Account(service, token, base, is_elsewhere, _chats(service, config, key))


def _token(service: Service, config: Mapping[str, Any], references: SecretReferences) -> str:
    given = config.get("token", "")
    try:
        token = references.secret(given or f"${{env:{service.variable}:-}}")
    except Unresolved as unresolved:
        raise _broken(str(unresolved), "It is a matter of settings.") from None
    if not token:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"{service.name} has no token",
            f"Tell the user: set tools.{service.resource}.token: ${{env:{service.variable}}} in goat-mcp.yaml.",
        )
    if not service.token.fullmatch(token):
        raise _broken(
            f"what tools.{service.resource}.token holds is no token of {service.name}",
            f"It may be cut or hold blanks; set {service.variable} again.",
        )
    return token


def _chats(service: Service, config: Mapping[str, Any], key: str) -> frozenset[str] | None:
    listed: Any = config.get(service.chats)
    if listed is None:
        return None
    if not isinstance(listed, list | tuple):
        raise _broken(f"{key}.{service.chats} is no list", "Write it as [ID, ID].")
    try:
        return frozenset(service.same_chat(chat).lower() for chat in cast("list[object]", listed))
    except ToolError as refused:
        raise _broken(f"{key}.{service.chats}: {refused.message}", refused.suggestion) from None


def _broken(problem: str, remedy: str) -> ToolError:
    return ToolError(ErrorCode.CONFIG, problem, f"Tell the user: it is a matter of settings. {remedy}")


MAX_JSON_BYTES = 5_000_000
_REQUEST_S = 20.0
_LEAST_S = 2.0
"""What has to be left of a call's time after a wait, for the request itself."""
_REDIRECTS = range(300, 400)


class WebApi:
    """One account's requests within one call, which may take as long as `ctx` has left."""

    def __init__(self, http: HttpClient, account: Account, ctx: ToolContext) -> None:
        self._http = http
        self._account = account
        self._ctx = ctx

    async def post(self, what: str, url: str, content: bytes, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """The JSON object that is answered, whatever the status. `what` names the method in messages.

        Raises `ToolError`: RATE, NETWORK, ADDRESS.
        """
        return self.as_json(what, await self._send("POST", what, url, content, headers, MAX_JSON_BYTES))

    async def get(self, what: str, url: str, headers: Mapping[str, str], max_bytes: int) -> WholeResponse:
        """An answer as it is, but for 429. Raises `ToolError`: RATE, NETWORK, ADDRESS."""
        return await self._send("GET", what, url, None, headers, max_bytes)

    def as_json(self, what: str, answer: WholeResponse) -> Mapping[str, Any]:
        """Its body as an object; the token, wherever a server repeats it, is taken out."""
        try:
            value: Any = json.loads(self._account.without_token(answer.body.decode()))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            kind = "a redirect" if answer.status in _REDIRECTS else "what is no JSON object"
            status = http_status_text(answer.status)
            raise ToolError(
                ErrorCode.NETWORK,
                f"{self._account.service.name} answered {what} with {kind} ({status})",
                "Try again later. If it stays, tell the user: baseUrl may lead to another server.",
            )
        return cast("Mapping[str, Any]", value)

    async def _send(
        self, method: str, what: str, url: str, content: bytes | None, headers: Mapping[str, str], max_bytes: int
    ) -> WholeResponse:
        while True:
            answer = await self._once(method, what, url, content, headers, max_bytes)
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                return answer
            wait_s = _retry_after_s(answer)
            if wait_s + _LEAST_S > self._ctx.wait_left_s():
                raise ToolError(
                    ErrorCode.RATE,
                    f"{self._account.service.name} allows no {what} for another {wait_s} s",
                    f"Call again in {wait_s} s.",
                    facts={"retry_after_s": wait_s},
                )
            await anyio.sleep(wait_s)

    async def _once(
        self, method: str, what: str, url: str, content: bytes | None, headers: Mapping[str, str], max_bytes: int
    ) -> WholeResponse:
        account = self._account
        try:
            return await self._http.send(
                method,
                url,
                headers=headers,
                content=content,
                allow_hosts=account.allow_hosts,
                timeout_s=min(_REQUEST_S, self._ctx.wait_left_s()),
                max_bytes=max_bytes,
            )
        except ToolError as failed:
            # It names the URL, and the token may be a part of that, perhaps of its end only, where it was cut.
            place = parse_target(url)
            told = failed.message.replace(place.shown, f"{place.origin} ({what})")
            again = "Try again." if method == "GET" else "Look before trying again: it may have been done all the same."
            suggestion = again if failed.code is ErrorCode.NETWORK else account.without_token(failed.suggestion)
            raise ToolError(failed.code, account.without_token(told), suggestion, facts=failed.facts) from None


def _retry_after_s(answer: WholeResponse) -> int:
    """Whole seconds: Telegram says so in the body, others in the header (RFC 9110, 10.2.3)."""
    try:
        body: Any = json.loads(answer.body)
        said = body["parameters"]["retry_after"]
    except (ValueError, LookupError, TypeError, RecursionError):
        said = answer.headers.get("retry-after", "")
    try:
        return max(1, min(int(float(said) + 0.999), 86_400))
    except (ValueError, TypeError, OverflowError):
        return 1  # nobody said how long: that is a date, or nothing


MAX_BYTES = 20 * 1024 * 1024


class NewFile:
    """Where a download goes. What is there already is never replaced."""

    def __init__(self, workspace: Workspace, changes: Changes, asked: str) -> None:
        """`asked` may be relative to the workspace's first directory. Raises `ToolError`."""
        text = asked if asked.startswith(("/", "@")) else f"@/{asked}"
        self._workspace = workspace
        self._changes = changes
        self._path = workspace.resolve(text)

    async def check(self) -> None:
        """Before anything is fetched. Raises `ToolError` if it could not be kept."""
        await anyio.to_thread.run_sync(self._check)

    def _check(self) -> None:
        self._workspace.check_writable(self._path)
        if self._workspace.stat(self._path) is not None:
            raise _exists(self._path)

    async def save(self, data: bytes, ctx: ToolContext, tool: str, facts: dict[str, Any]) -> ToolResult:
        """Write it; the result says where it is, beside `facts`."""
        files = self._changes.of(self._workspace, ctx, tool)
        real = self._workspace.real_path(self._path)
        async with self._workspace.lock(real):
            try:
                await anyio.to_thread.run_sync(partial(files.write_file, self._path, data, expect=None))
            except ToolError as refused:
                if refused.code is ErrorCode.STALE:
                    raise _exists(self._path) from None
                raise
        value = {**facts, "path": str(self._path), "bytes": len(data)}
        text = json.dumps(value, ensure_ascii=False)
        return await files.finish(ToolResult(content=(text_block(text),), structured=value))


def too_large(service: str, what: str, size: int | None) -> ToolError:
    said = f"has {size:,} bytes" if size is not None else "is longer than that"
    return ToolError(
        ErrorCode.TOO_LARGE,
        f"{service}: {what} {said}; at most {MAX_BYTES:,} are downloaded",
        "Ask for it to be sent smaller, or have the user download it.",
    )


def _exists(path: WorkspacePath) -> ToolError:
    return ToolError(ErrorCode.STALE, f"{path} exists already, and a download replaces nothing", "Choose another path.")
