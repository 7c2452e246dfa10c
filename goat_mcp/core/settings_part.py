"""Base of every part of the settings tree. A part lives beside the code it configures."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr


class SettingsPart(BaseModel):
    """Frozen; an unknown key is an error. Keys carry their unit, defaults are the safe ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _as_text(value: Any) -> Any:
    # A key of digits only came out of the command line or YAML as a number.
    return str(value) if isinstance(value, int | float) else value


Secret = Annotated[SecretStr, BeforeValidator(_as_text)]
"""A key, or a reference to one (`${NAME}`, see `core.substitution`). Neither its repr nor an error shows it."""
