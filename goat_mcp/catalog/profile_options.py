"""What a user writes about profiles (PRF-1): narrower views of what there is, each for some of the clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from goat_mcp.catalog.schemas.dialects import DialectName
from goat_mcp.core.settings_part import Names, SettingsPart, left_out


class ProfileTools(SettingsPart):
    """As `catalog.allow` and `catalog.deny`."""

    allow: Names | None = None
    deny: Names = ()


class ProfileOptions(SettingsPart):
    """What is left out is as it is without the profile. `read_only`: nothing but what only reads.

    `token_file` holds the bearer token of the clients over HTTP that have this profile; it is made if it does not
    exist.
    """

    upstreams: Names | None = None
    toolsets: Names | None = None
    tools: ProfileTools = left_out()
    read_only: bool = False
    name_cap: int | None = Field(default=None, ge=32, le=128)
    schema_dialect: DialectName | None = None
    token_budget: int | None = Field(default=None, ge=0)
    token_file: Path | None = None


ProfileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
