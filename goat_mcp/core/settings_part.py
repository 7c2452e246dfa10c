"""Base of every part of the settings tree. A part lives beside the code it configures."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsPart(BaseModel):
    """Frozen; an unknown key is an error. Keys carry their unit, defaults are the safe ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
