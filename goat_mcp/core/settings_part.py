"""Base classes and types for the parts of the settings tree. A part is beside the code it configures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from goat_mcp.core.yaml_words import meant_word


class SettingsPart(BaseModel):
    """Frozen; an unknown key is an error. Keys carry their unit, defaults are the safe ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _with_meant_words(cls, given: Any) -> Any:
        """An `off` that YAML has read as false is the choice `off` again, in each setting that has it."""
        if not isinstance(given, dict):
            return given
        tree = cast("dict[str, Any]", given)
        bools = [key for key, value in tree.items() if isinstance(value, bool) and key in cls.model_fields]
        return {**tree, **{key: meant_word(tree[key], _choices(cls.model_fields[key].annotation)) for key in bools}}


def _choices(annotation: Any) -> tuple[Any, ...]:
    """What a field takes: the values of its literals and enumerations, both truth values if it takes any."""
    if annotation is bool:
        return True, False
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return tuple(annotation)
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return arguments
    return tuple(choice for argument in arguments for choice in _choices(argument))


def default_part() -> Any:
    """The default of a part inside another: an empty one, made by the validator of the whole.

    An object as the default would have each part compiled for itself at every start.
    """
    return Field(default={}, validate_default=True)


def _as_text(value: Any) -> Any:
    # A key of digits only came out of the command line or YAML as a number.
    return str(value) if isinstance(value, int | float) else value


Secret = Annotated[SecretStr, BeforeValidator(_as_text)]
"""A key, or a reference to one (`${NAME}`, see `core.substitution`). Neither its repr nor an error shows it."""


def one_or_many(value: Any) -> Any:
    """A list, or one value for a list of one."""
    values: Any = [value] if isinstance(value, str | Path) else value
    if isinstance(values, list | tuple) and "" in values:
        # An unset shell variable, most likely. As a path it would mean the current directory.
        raise ValueError("empty text names nothing")
    return cast("Any", values)


Names = Annotated[tuple[str, ...], BeforeValidator(one_or_many)]


def _check(url: str) -> str:
    if url and not _is_base_url(url):
        raise ValueError("wants http(s)://HOST[:PORT][/PATH], without user, password, ? or #")
    return url.rstrip("/")


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_address and "@" not in parts.netloc and not set("?#") & set(url)


BaseUrl = Annotated[str, AfterValidator(_check)]
"""Whole, without a secret in it and without a slash at its end; empty if there is none."""
