"""The provider the settings name, with its address and key, or the error that says which setting is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.options import SearchOptions
from goat_mcp.web.search.provider import SearchProvider
from goat_mcp.web.search.providers import PROVIDERS

_SHORTEST_HIDDEN_CHARS = 6
_STEPS = (
    "Ask the user to set web.search.provider: duckduckgo (no key); brave, tavily or exa, each with its key in "
    "{variables} or in web.search.key; or searxng with web.search.base_url. "
    "E.g. `--set web.search.provider=duckduckgo`, or GOAT_MCP_WEB__SEARCH__PROVIDER=duckduckgo, then a new start."
)


@dataclass(frozen=True)
class ConfiguredProvider:
    """`key_source` and `address` say in words where the two came from, for errors."""

    wire: SearchProvider
    base_url: str
    address: str
    allow_hosts: tuple[str, ...]
    key: str = field(default="", repr=False)
    key_source: str = ""

    def without_key(self, text: str) -> str:
        """A text of the provider, or about it, that does not show the key."""
        return text.replace(self.key, "[key]") if len(self.key) >= _SHORTEST_HIDDEN_CHARS else text


def configured_provider(options: SearchOptions, references: SecretReferences) -> ConfiguredProvider:
    """Raises `ToolError` NOT_CONFIGURED, or CONFIG for a key that cannot be one."""
    if options.provider is None:
        variables = ", ".join(wire.key_variable for wire in PROVIDERS.values() if wire.key_variable)
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, "no search provider is configured", _STEPS.format(variables=variables)
        )
    wire = PROVIDERS[options.provider]
    base_url = options.base_url or wire.base_url
    if not base_url:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"web.search.provider is {wire.name}, but no instance of it is named",
            "Ask the user to set web.search.base_url to its address, e.g. http://localhost:8080.",
        )
    key, key_source = _key(wire, options, references) if wire.key_variable else ("", "")
    parts = urlsplit(base_url)
    place = f"{parts.scheme}://{parts.netloc}"
    if options.base_url:
        # What the user names may be private, or a proxy on this machine.
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return ConfiguredProvider(
            wire, base_url, f"{place}, from web.search.base_url", (f"{_host(parts.netloc)}:{port}",), key, key_source
        )
    return ConfiguredProvider(wire, base_url, place, (), key, key_source)


def _host(netloc: str) -> str:
    """The host with the brackets an IPv6 address has in a URL, without a port."""
    return f"{netloc.partition(']')[0]}]" if netloc.startswith("[") else netloc.partition(":")[0]


def _key(wire: SearchProvider, options: SearchOptions, references: SecretReferences) -> tuple[str, str]:
    setting = options.key.get_secret_value()
    source = "web.search.key" if setting else f"the environment variable {wire.key_variable}"
    try:
        if setting:
            key = references.secret(setting)
        else:
            key = references.environ.get(wire.key_variable, "").strip()
            references.hide(key)
    except Unresolved as missing:
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"web.search.key: {missing}", "Ask the user to do so.") from None
    if not key:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"web.search.provider is {wire.name}, which wants a key, and there is none",
            f"Ask the user to put it into the environment variable {wire.key_variable} or into web.search.key.",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ToolError(
            ErrorCode.CONFIG,
            f"{source} holds characters no key has (blanks, line ends or others beyond ASCII)",
            "Ask the user to copy the key once more.",
        )
    return key, source
