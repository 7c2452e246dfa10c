"""Settings of calls that go on as background tasks."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.core.settings_part import SettingsPart


class TaskOptions(SettingsPart):
    """`after_s`: when a call that takes long becomes one: any call of a client that knows tasks, of other clients those
    that an upstream runs. 0 means never. Bash and Agent have their own limit."""

    after_s: float = Field(default=45.0, ge=0, le=3600)
