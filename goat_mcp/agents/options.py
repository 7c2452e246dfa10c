"""What a user can configure about subagents and the model that runs them: the settings `agent.*`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from goat_mcp.core.settings_part import BaseUrl, Secret, SettingsPart, default_part

MAX_DEPTH = 2
"""An agent may start agents, and those may not (contract: tools.md, Agent)."""
PLACEHOLDERS = (
    *("prompt", "system", "model", "effort", "max_turns", "resume", "directory"),
    *("allowed_tools", "denied_tools", "mode"),
)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

Word = str | tuple[str, ...]


def _check_list(words: Any) -> Any:
    if isinstance(words, str):
        raise ValueError('wants a list of words, e.g. ["claude", "-p"]')
    return words


def _check(words: tuple[Word, ...]) -> tuple[Word, ...]:
    if not words:
        return words
    program = words[0]
    if not isinstance(program, str) or not program or _PLACEHOLDER.search(program):
        raise ValueError("the first word is the program: a text without placeholders")
    if "/" in program and not program.startswith(("/", "~/")):
        # It would be looked for in the workspace, where a model may have put it.
        raise ValueError("the program is a name in the PATH, or an absolute path")
    if any("\0" in part for part in _parts(words)):
        raise ValueError("a word holds a NUL character")
    for name in sorted(placeholders_in(words) - set(PLACEHOLDERS)):
        known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
        raise ValueError(f"{{{name}}} is no placeholder; known are {known}")
    return words


CommandWords = Annotated[tuple[Word, ...], BeforeValidator(_check_list), AfterValidator(_check)]
"""`agent.command`: the words of a command line with placeholders, filled in for one run.

A word may be a list: a group that is left out if one of its placeholders stands for nothing.
"""


def placeholders_in(words: Sequence[Word]) -> set[str]:
    """The placeholders of a command line."""
    return {name for part in _parts(words) for name in _PLACEHOLDER.findall(part)}


def fill_words(words: Sequence[Word], values: Mapping[str, str]) -> list[str]:
    """The command line of one run. What is filled in is one word, whatever is in it, and never an option."""

    def fill(part: str) -> str:
        word = _PLACEHOLDER.sub(lambda match: values[match[1]], part)
        # What no argument can hold.
        word = word.replace("\0", "").encode("utf-8", "replace").decode()
        # A prompt that begins with `--` is a model's, and options are the user's.
        return f" {word}" if word.startswith("-") and not part.startswith("-") else word

    line: list[str] = []
    for word in words:
        if isinstance(word, str):
            line.append(fill(word))
        elif all(values[name] for name in placeholders_in((word,))):
            line.extend(map(fill, word))
    return line


def _parts(words: Sequence[Word]) -> list[str]:
    return [part for word in words for part in ((word,) if isinstance(word, str) else word)]


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
