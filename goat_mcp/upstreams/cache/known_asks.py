"""Whether an upstream has ever asked a client anything, kept beside its stored catalog."""

from __future__ import annotations

from goat_mcp.upstreams.cache.warm_catalog import WarmCatalog
from goat_mcp.upstreams.config.entry import UpstreamConfig


class KnownAsks:
    """Of one upstream; true once it has."""

    def __init__(self, config: UpstreamConfig, warm: WarmCatalog) -> None:
        self._config = config
        self._warm = warm
        self._known: bool | None = None

    def __bool__(self) -> bool:
        if self._known is None:
            self._known = self._warm.asks(self._config.server, self._config.fingerprint)
        return self._known

    def learn(self) -> None:
        if not self:
            self._known = True
            self._warm.note_asks(self._config.server, self._config.fingerprint)
