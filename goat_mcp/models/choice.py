"""Which language model a call may use: the user's own endpoint, else the client's model."""

from __future__ import annotations

from goat_mcp.core.context import ToolContext
from goat_mcp.core.model import ChatModel
from goat_mcp.http_client import HttpClient
from goat_mcp.models.options import ModelOptions

_MODEL_SETTING = "agent.model"


class ModelChoice:
    """One per gateway."""

    def __init__(self, http: HttpClient, options: ModelOptions) -> None:
        self._http = http
        self._options = options
        self._endpoints: dict[str, ChatModel] = {}

    @property
    def has_endpoint(self) -> bool:
        """Whether the user has configured a model of their own."""
        return bool(self._options.base_url)

    def endpoint(self, ctx: ToolContext) -> ChatModel | None:
        """The configured model, with the default that this session has set for it."""
        if not self.has_endpoint:
            return None
        from goat_mcp.models.openai_chat import OpenAiChatModel

        model = str(ctx.overrides.get(_MODEL_SETTING, self._options.model))
        if model not in self._endpoints:
            options = self._options.model_copy(update={"model": model})
            self._endpoints[model] = OpenAiChatModel(self._http, options)
        return self._endpoints[model]

    def for_call(self, ctx: ToolContext) -> ChatModel | None:
        """The configured model, else the client's own, else None."""
        return self.endpoint(ctx) or ctx.host_model
