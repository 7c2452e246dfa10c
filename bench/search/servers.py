"""The public servers whose tools are searched: packages of npm and PyPI with their versions, in `servers.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bench.workbench import BENCH

FOLDER = Path(__file__).parent
INSTALLED = BENCH / "results" / ".search"
"""What is installed, and what the servers listed. Git ignores it, and for its dot the type checker does too."""


class Server(BaseModel):
    """One server. `program` is the command that its package installs, `also` what it needs besides its dependencies.

    `args` and `env` have made-up values for what it wants before it lists its tools: none of them is an account.
    `{home}` in `args` is a folder that is gone afterwards.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry: Literal["npm", "pypi"]
    package: str
    version: str
    program: str
    also: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = Field(default_factory=dict)

    @property
    def pinned(self) -> str:
        return f"{self.package}@{self.version}" if self.registry == "npm" else f"{self.package}=={self.version}"

    @property
    def folder(self) -> Path:
        """Where its package is installed, apart from all others: they disagree about versions of what they share."""
        return INSTALLED / self.registry / self.package.replace("/", "+")

    @property
    def command(self) -> Path:
        return self.folder / ("node_modules/.bin" if self.registry == "npm" else "bin") / self.program

    def environment(self, home: Path) -> dict[str, str]:
        """Nothing of the user's, but the path to programs."""
        return {"HOME": str(home), "PATH": os.environ["PATH"], **self.env}


def servers() -> Mapping[str, Server]:
    """By the name that a user would give it in `mcpServers`."""
    text = (FOLDER / "servers.toml").read_text(encoding="utf-8")
    return TypeAdapter(Mapping[str, Server]).validate_python(tomllib.loads(text))
