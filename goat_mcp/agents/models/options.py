"""What a user can configure about the model that agents and summaries use: the settings `agent.*` of an endpoint."""

from __future__ import annotations

from pydantic import Field, SecretStr

from goat_mcp.core.settings_part import BaseUrl, Secret, SettingsPart, default_part


class ModelNames(SettingsPart):
    """What the endpoint calls the models that callers know by these names; empty means the default model."""

    sonnet: str = ""
    opus: str = ""
    haiku: str = ""
    fable: str = ""


class EffortNames(SettingsPart):
    """What the endpoint takes as `reasoning_effort` for ours; empty sends none, as many models refuse it."""

    low: str = ""
    medium: str = ""
    high: str = ""
    xhigh: str = ""
    max: str = ""


class ModelOptions(SettingsPart):
    """An endpoint that speaks OpenAI's chat completions: LiteLLM, vLLM, Ollama, a provider.

    `base_url` ends where `/chat/completions` follows, mostly with `/v1`; it may be on this machine or network. `key`
    may be a reference, `${NAME}`; empty sends none. `model` is the default. `timeout_s` bounds one answer.
    """

    base_url: BaseUrl = ""
    key: Secret = SecretStr("")
    model: str = ""
    models: ModelNames = default_part()
    reasoning_effort: EffortNames = default_part()
    timeout_s: float = Field(default=300.0, gt=0, le=3600)
