"""Where files lie on a machine: home, platform and variables, given from outside so that any machine can be asked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.cli.hosts.host import ConfigLocation

_PART = re.compile(r"\{(\w+)(?:\|([^}]*))?\}")


@dataclass(frozen=True)
class HostEnvironment:
    """One user's account on one platform."""

    platform: str
    home: Path
    environ: Mapping[str, str]

    @classmethod
    def this(cls) -> HostEnvironment:
        return cls(sys.platform, Path.home(), os.environ)

    def path(self, place: ConfigLocation) -> Path | None:
        """The file on this platform; None where there is none."""
        by_platform = {"linux": place.linux, "darwin": place.darwin, "win32": place.win32}
        text = by_platform.get(self.platform, place.linux) or place.any
        return Path(_PART.sub(self._folder, text)) if text else None

    def _folder(self, part: re.Match[str]) -> str:
        name, fallback = part.groups()
        if fallback is not None:
            return self.environ.get(name) or str(self.home / fallback)
        return {
            "home": str(self.home),
            "config": self.environ.get("XDG_CONFIG_HOME") or str(self.home / ".config"),
            "appdata": self.environ.get("APPDATA") or str(self.home / "AppData" / "Roaming"),
            "support": str(self.home / "Library" / "Application Support"),
        }[name]
