"""Which language model a call may use: the user's own endpoint, else the client's model."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from goat_mcp.agents.options import ModelOptions
from goat_mcp.core.context import ToolContext
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:
    from goat_mcp.core.model import ChatModel

_MODEL_SETTING = "agent.model"

_THIS_MACHINE = frozenset({"localhost", "host.docker.internal"})
_SERVER_NAME = re.compile(r"(?:^|[.-])(?:ollama|lm-?studio)(?:$|[.-])")
_PORTS = frozenset({11434, 1234})
"""The defaults of Ollama and of LM Studio."""


class ModelChoice:
    """One per gateway."""

    def __init__(self, http: HttpClient, options: ModelOptions, references: SecretReferences | None = None) -> None:
        self._http = http
        self._options = options
        self._references = references
        self._endpoints: dict[str, ChatModel] = {}

    def endpoint(self, overrides: Mapping[str, Any] = MappingProxyType({})) -> ChatModel | None:
        """The model of the user's settings, and of those a session has changed; None if they name no endpoint."""
        if not self._options.base_url:
            return None
        # Imported only if an endpoint is configured.
        from goat_mcp.agents.models.openai_chat import OpenAiChatModel

        model = str(overrides.get(_MODEL_SETTING, self._options.model))
        if model not in self._endpoints:
            options = self._options.model_copy(update={"model": model})
            self._endpoints[model] = OpenAiChatModel(self._http, options, references=self._references)
        return self._endpoints[model]

    def for_call(self, ctx: ToolContext) -> ChatModel | None:
        """The configured model, else the client's own, else None."""
        return self.endpoint(ctx.overrides) or ctx.host_model


def is_local(base_url: str) -> bool:
    """Whether people run the endpoint themselves: on this machine, or an Ollama or LM Studio anywhere.

    Source: goa, "local providers (lm-studio, ollama, endpoints with localhost/127.0.0.1)".
    """
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    if host in _THIS_MACHINE or host.endswith(".localhost") or _SERVER_NAME.search(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return parts.port in _PORTS
    return address.is_loopback or address.is_unspecified or parts.port in _PORTS
