"""Who may send a request from one replica to another: whoever has the key that all replicas share.

The signature covers all that counts of a request: its method, path, headers and body, for whom it is made, by whom, to
which process, and when. A process accepts each once, and only for `VALID_S`. The client's own token does not travel.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

VALID_S = 30.0
"""How far the clocks of two machines may be apart, with the time that a request takes."""
MAX_SEEN = 200_000
"""Requests of the last `2 * VALID_S` that are remembered; past that none is accepted."""
_LABEL = b"goat-mcp replica hop v1"


class HopRefused(Exception):
    """Not from a replica of ours, not for this process, too old, or seen before. The text is for the log."""


@dataclass(frozen=True)
class Hop:
    """What is signed. `principal` is who the sender has recognized by the client's token; None without tokens.

    `target` and `fence` are the name and the fencing number of the process that it is for. `headers` are those of the
    request, in small letters: only the ones here count.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body_sha256: str
    principal: Mapping[str, Any] | None
    source: str
    target: str
    fence: int
    at_s: float = field(default_factory=time.time)
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))

    def text(self) -> bytes:
        return json.dumps(vars(self), sort_keys=True).encode()


_HOP = TypeAdapter(Hop)


class HopKeys:
    """Signs with the first of the keys, and accepts all of them. Each is a secret of the installation."""

    def __init__(self, *secrets_of_state: bytes) -> None:
        self._keys = [hmac.new(secret, _LABEL, "sha256").digest() for secret in secrets_of_state]

    def seal(self, hop: Hop) -> str:
        """What travels in a header: the hop and its signature."""
        text = hop.text()
        return f"{base64.urlsafe_b64encode(text).decode()}.{_signature(self._keys[0], text)}"

    def open(self, sealed: str) -> Hop:
        """Raises `HopRefused`."""
        encoded, _, signature = sealed.partition(".")
        try:
            text = base64.urlsafe_b64decode(encoded)
            shown = signature.encode("ascii")
        except ValueError:
            raise HopRefused("unreadable") from None
        if not any(hmac.compare_digest(_signature(key, text).encode(), shown) for key in self._keys):
            raise HopRefused("not signed with a key of this installation")
        try:
            return _HOP.validate_json(text, strict=True)
        except ValueError:
            raise HopRefused("of another version") from None


class HopChecks:
    """What one process checks of a hop beside its signature. `of` says who it is now: its name and its fence."""

    def __init__(self, of: Callable[[], tuple[str, int]], *, clock: Callable[[], float] = time.time) -> None:
        self._of = of
        self._clock = clock
        self._seen: OrderedDict[str, float] = OrderedDict()

    def check(self, hop: Hop, method: str, path: str) -> None:
        """Once for each hop. Raises `HopRefused`."""
        now_s = self._clock()
        if not hop.fence or (hop.target, hop.fence) != self._of():
            raise HopRefused(f"meant for {hop.target} ({hop.fence})")
        if (hop.method, hop.path) != (method, path):
            raise HopRefused("for another path")
        if not abs(now_s - hop.at_s) <= VALID_S:
            raise HopRefused(f"{now_s - hop.at_s:.0f} s old; the clocks of the replicas may differ by {VALID_S:.0f} s")
        while self._seen and next(iter(self._seen.values())) < now_s:
            self._seen.popitem(last=False)
        if hop.nonce in self._seen:
            raise HopRefused("seen before")
        if len(self._seen) >= MAX_SEEN:
            raise HopRefused("too many at once")
        self._seen[hop.nonce] = now_s + 2 * VALID_S


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _signature(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, "sha256").hexdigest()
