"""A messenger's account as the user configured it: token, where the API is, and which chats may be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import REDACTED
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http.target import Target, parse_target


@dataclass(frozen=True, kw_only=True)
class Service:
    """One messenger. `resource` is the tool's name, under which the settings are; `token` what tokens look like;
    `variable` the environment variable that holds one where the settings do not; `chats` the name of the allow list.
    `same_chat` gives one spelling for each chat."""

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
                f"{self.service.name} may be used for certain chats only, and without {field} nobody can tell which "
                f"this is about (setting {self._key})",
                f"Call again with {field}: {what}.",
            )

    @property
    def _key(self) -> str:
        return f"tools.{self.service.resource}.{self.service.chats}"

    def _not_allowed(self, what: str) -> ToolError:
        return ToolError(
            ErrorCode.PERMISSION,
            f"{what} is not among the chats that {self.service.name} may be used for",
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
