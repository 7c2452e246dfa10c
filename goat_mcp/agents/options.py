"""What a user can configure about subagents and the model that runs them: the settings `agent.*`."""

from __future__ import annotations

from pydantic import Field, SecretStr

from goat_mcp.agents.command_words import CommandWords
from goat_mcp.core.settings_part import BaseUrl, Secret, SettingsPart, default_part

MAX_DEPTH = 2
"""An agent may start agents, and those may not (contract: tools.md, Agent)."""


class ModelNames(SettingsPart):
    """The endpoint's names of the models that callers know by these; empty means the default model."""

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

    `base_url` ends before `/chat/completions`, mostly with `/v1`; it may be on this machine or network. `key`
    may be a reference, `${NAME}`; empty sends none. `model` is the default. `timeout_s` bounds one answer.
    """

    base_url: BaseUrl = ""
    key: Secret = SecretStr("")
    model: str = ""
    models: ModelNames = default_part()
    reasoning_effort: EffortNames = default_part()
    timeout_s: float = Field(default=300.0, gt=0, le=3600)


class AgentOptions(ModelOptions):
    """`model` is used if neither the call nor the agent's type names one; empty is the engine's own.

    `max_tokens` bounds one reply of the model. `command` runs agents with another program instead of a model; see
    `agents.command_line` for what that means. `command_env` names variables of ours that the program gets beside the
    usual ones, e.g. ANTHROPIC_API_KEY.
    """

    max_turns: int = Field(default=50, ge=1, le=500)
    max_at_once: int = Field(default=10, ge=1, le=30)
    max_tokens: int = Field(default=8192, ge=256, le=200_000)
    command: CommandWords = ()
    command_env: tuple[str, ...] = ()
    command_timeout_s: float = Field(default=3600.0, gt=0, le=86_400)
