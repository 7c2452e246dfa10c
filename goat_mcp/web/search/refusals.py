"""What went wrong with a provider, as errors that name it and the setting to look at; never with its key."""

from __future__ import annotations

from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.visible_text import drop_hidden
from goat_mcp.web.http.response import WholeResponse
from goat_mcp.web.search.answer_json import read_object
from goat_mcp.web.search.configured import ConfiguredProvider
from goat_mcp.web.search.provider import NotUnderstood

_MAX_SAID_CHARS = 200


def cannot_be_reached(provider: ConfiguredProvider, failed: ToolError) -> ToolError:
    return ToolError(
        failed.code,
        provider.without_key(f"{provider.wire.name} ({provider.address}) cannot be asked: {failed.message}"),
        "Ask the user to check web.search.base_url and the network, or to name another web.search.provider.",
    )


def not_understood(provider: ConfiguredProvider, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NETWORK,
        f"{provider.wire.name} ({provider.address}) gave an answer that is not in its format: {why}",
        f"Ask the user whether web.search.base_url leads to {provider.wire.name}, or to name another "
        "web.search.provider.",
    )


def wants_a_person(provider: ConfiguredProvider) -> ToolError:
    return ToolError(
        ErrorCode.RATE,
        f"{provider.wire.name} takes these searches for a robot's and asks for a person to confirm them",
        "Wait some minutes before the next search, or ask the user to name a web.search.provider with a key.",
    )


def refusal(provider: ConfiguredProvider, answer: WholeResponse, retry_after_s: float | None) -> ToolError:
    """The error for a status other than 2xx."""
    wire, status = provider.wire, answer.status
    said = provider.without_key(_said(answer.body))
    about = f"status {status}{f': {said}' if said else ''}"
    if wire.refuses_key(status, answer.body):
        return ToolError(
            ErrorCode.CONFIG,
            f"{wire.name} refuses the key from {provider.key_source} ({about})",
            f"Ask the user to put a valid key into {provider.key_source}, and whether web.search.provider is right.",
        )
    if status in wire.advice:
        return ToolError(ErrorCode.CONFIG, f"{wire.name} refuses to search ({about})", wire.advice[status])
    if status == 429:
        wait = "some minutes" if retry_after_s is None else f"{retry_after_s:.0f} s"
        return ToolError(
            ErrorCode.RATE,
            f"{wire.name} takes no more searches for now ({about})",
            f"Wait {wait} before the next search, or ask the user to name another web.search.provider.",
        )
    if 300 <= status < 400 or status in (404, 405):
        target = drop_hidden(" ".join(answer.headers.get("location", "").split()))[:_MAX_SAID_CHARS]
        leads = f" and leads to {provider.without_key(target)}" if target else ""
        return ToolError(
            ErrorCode.CONFIG,
            f"{provider.address} is not where {wire.name} answers ({about}{leads})",
            f"Ask the user to set web.search.base_url to the address of {wire.name} itself.",
        )
    if status >= 500:
        return ToolError(
            ErrorCode.NETWORK,
            f"{wire.name} ({provider.address}) has trouble of its own ({about})",
            "Search again later, or ask the user to name another web.search.provider.",
        )
    return ToolError(
        ErrorCode.NETWORK, f"{wire.name} refuses this search ({about})", "Search for something else, in fewer words."
    )


def _said(body: bytes) -> str:
    """The provider's own words on one line, wherever its kind of error has them; empty where it has none."""
    try:
        value: Any = read_object(body)
    except NotUnderstood:
        return ""
    for _ in range(3):
        if isinstance(value, dict):
            given = cast("dict[str, Any]", value)
            value = next((given[name] for name in ("detail", "error", "message") if given.get(name)), None)
    return drop_hidden(" ".join(value.split()))[:_MAX_SAID_CHARS] if isinstance(value, str) else ""
