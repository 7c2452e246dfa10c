"""A gateway with the optional tools on, over a resolver that tests fill."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.web.http.local_server import LocalServer


@dataclass
class Names:
    """Stands for the system's resolver. `lookups` are the names that were asked for."""

    known: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    lookups: list[str] = field(default_factory=list[str])

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.lookups.append(host)
        if host not in self.known:
            raise OSError(-2, "Name or service not known")
        return self.known[host]


class ShippedTools:
    """Calls tools of `toolset: base` through the pipeline. Servers in `public` may be asked, as 127.0.0.1 and as
    `pub.test`; nothing else that is private may."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        public: Sequence[LocalServer] = (),
        **settings: Any,
    ) -> None:
        self.names = Names({"pub.test": ["127.0.0.1"]})
        monkeypatch.setattr("goat_mcp.web.http.resolver.SystemResolver", lambda: self.names)
        self.workspace = folder / "work"
        self.workspace.mkdir(exist_ok=True)
        self.state = StateDirectory(folder / "state")
        allowed = [f"{host}:{server.port}" for server in public for host in ("127.0.0.1", "pub.test")]
        web: Mapping[str, Any] = {"allow_hosts": allowed, **settings.pop("web", {})}
        self.gateway = Gateway(
            Settings.model_validate(
                {
                    "workspace": [self.workspace],
                    "catalog": {"toolsets": ["core", "state", "base"]},
                    "web": web,
                    **settings,
                }
            ),
            approval=Approval.HOST,
            state=self.state,
        )
        self._ids = itertools.count()

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await self.gateway.pipeline.call(name, arguments, ToolContext(call_id=f"call-{next(self._ids)}"))

    async def value(self, name: str, **arguments: Any) -> Any:
        """The structured content of a call that has to succeed."""
        result = await self.call(name, **arguments)
        assert not result.is_error, result.text
        return result.structured
