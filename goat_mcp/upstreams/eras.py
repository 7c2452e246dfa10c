"""Which eras of the protocol one upstream speaks, and in which one each of its connections is made (ERA-2b).

Servers do different things in each: a tool that asks by a request can do so in the handshake only. So a client's calls
go over a connection of its own era if the upstream speaks that, and are bridged if it does not.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from goat_mcp.upstreams.cache.warm_catalog import WarmCatalog
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.envelope import STATELESS_VERSION
from goat_mcp.upstreams.faults import HandshakeRefused, start_failure_in
from goat_mcp.upstreams.status import ReasonCode

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection

_HANDSHAKE_VERSION = "2025-11-25"
_MAY_BE_THE_ERA = frozenset({ReasonCode.HANDSHAKE_FAILED, ReasonCode.START_FAILED, ReasonCode.START_TIMEOUT})
"""Failures to connect that another era may not meet. Others say nothing of eras."""


class Era(StrEnum):
    HANDSHAKE = "handshake"
    """Up to 2025-11-25."""
    STATELESS = "stateless"
    """2026-07-28."""


_OTHER = {Era.HANDSHAKE: Era.STATELESS, Era.STATELESS: Era.HANDSHAKE}


class UpstreamEras:
    """Of one upstream. What is proved is remembered over restarts, what merely failed is not."""

    def __init__(self, config: UpstreamConfig, warm: WarmCatalog) -> None:
        self._config = config
        self._warm = warm
        self.speaks: dict[Era, bool] = {}
        """What was proved, either way."""
        self._doubted: set[Era] = set()
        """What has failed in this run and may be the era's fault."""
        self._refused: set[Era] = set()
        """Those of them that it said no to. It is proved once the other era has worked instead."""

    def load(self, version: str) -> None:
        """What earlier runs proved. `version` is what the stored catalog was listed with."""
        stored = self._warm.eras(self._config.server, self._config.fingerprint)
        known = {era: stored[era] for era in Era if era in stored}
        if not known and version:
            # Of a build that knew one era of each upstream: it had asked for 2026-07-28 first.
            is_stateless = version == STATELESS_VERSION
            known = {Era.STATELESS: True} if is_stateless else {Era.HANDSHAKE: True, Era.STATELESS: False}
        self.speaks = known

    def used_for(self, wanted: Era) -> Era:
        """`wanted`, if it may be spoken; else the other one, which bridges."""
        other = _OTHER[wanted]
        return other if self._is_out(wanted) and not self._is_out(other) else wanted

    def learn(self, tried: Era, spoken: Era, *, is_proved: bool) -> None:
        """A connection was made: `tried` first, and `spoken` in the end."""
        known = {**self.speaks, **dict.fromkeys(self._refused, False), spoken: True}
        self._doubted.discard(spoken)
        self._refused.clear()
        if tried is not spoken and is_proved:
            known[tried] = False
        elif tried is not spoken:
            self._doubted.add(tried)
        if known != self.speaks:
            self.speaks = known
            noted = {str(era): speaks for era, speaks in known.items()}
            self._warm.note_eras(self._config.server, self._config.fingerprint, noted)

    def forget(self, era: Era) -> None:
        """It was refused over a connection that spoke it."""
        self.speaks.pop(era, None)

    def doubt(self, era: Era, *, is_refused: bool) -> bool:
        """A connection could not be made in this era. Returns whether the other one should be tried at once."""
        if self._is_out(_OTHER[era]):
            self._doubted.clear()
            self._refused.clear()
            return False
        self._doubted.add(era)
        if is_refused:
            self._refused.add(era)
        return True

    def is_a_trial(self, era: Era) -> bool:
        """Whether nobody knows if it speaks this, and the other one would do."""
        return self.speaks.get(era) is None and self.speaks.get(_OTHER[era]) is True

    def _is_out(self, era: Era) -> bool:
        return self.speaks.get(era) is False or era in self._doubted


class ConnectionEra:
    """Of one connection: what its clients speak, and what is spoken."""

    __slots__ = ("_eras", "_tried", "current", "wanted")

    def __init__(self, eras: UpstreamEras) -> None:
        self._eras = eras
        self._tried = Era.STATELESS
        self.wanted: Era | None = None
        """That of the clients it is for; None if it is for nobody's yet."""
        self.current: Era | None = None
        """What is spoken, or will be as far as is known."""

    def want(self, era: Era | None) -> None:
        """It is for clients of this era now. What is connected goes on as it is."""
        self.wanted = self.current = era

    def first(self, known_version: str | None) -> str | None:
        """The revision to try first: `Connect`'s `known_version`, which is what its last connection proved."""
        version = known_version
        if self.wanted is not None:
            is_handshake = self._eras.used_for(self.wanted) is Era.HANDSHAKE
            proved = STATELESS_VERSION if self._eras.speaks.get(Era.STATELESS) else None
            version = _HANDSHAKE_VERSION if is_handshake else proved
        self._tried = Era.STATELESS if version in (None, STATELESS_VERSION) else Era.HANDSHAKE
        return version

    def patience_s(self, start_timeout_s: float, connect_wait_s: float) -> float:
        """How long the start may take. A trial leaves a waiting call the time for the era that is known to work."""
        is_trial = self.wanted is not None and self._eras.is_a_trial(self._tried)
        return min(start_timeout_s, connect_wait_s / 2) if is_trial else start_timeout_s

    def learn(self, connection: Connection) -> None:
        """It is connected."""
        self.current = Era.STATELESS if connection.stateless else Era.HANDSHAKE
        self._eras.learn(self._tried, self.current, is_proved=connection.era_is_proved)

    def forget(self) -> None:
        """What was spoken was refused."""
        if self.current is not None:
            self._eras.forget(self.current)

    def is_given_up(self, error: Exception) -> bool:
        """It could not be connected. Returns whether to try at once in the other era: no call need fail for this."""
        failure = start_failure_in(error)
        if failure is None or failure.reason_code not in _MAY_BE_THE_ERA or self.wanted is None:
            return False
        is_trial = self._eras.is_a_trial(self._tried)
        # A start that hangs would hang again: nobody waits twice for it unless the other era is known to work.
        may_work = self._eras.doubt(self._tried, is_refused=isinstance(failure, HandshakeRefused))
        return may_work and (is_trial or failure.reason_code is not ReasonCode.START_TIMEOUT)
