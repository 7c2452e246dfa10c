"""One replica as the others know it: its name, where it is reached, its fencing number and its build."""

from __future__ import annotations

import hmac
import json
import re
import socket
from dataclasses import dataclass
from typing import Any, Self

_OTHER = re.compile(r"[^A-Za-z0-9]+")
MAX_NAME_CHARS = 63


@dataclass(frozen=True)
class Replica:
    """`url` has no path. `fence` grows with each time that a replica of any name registers; 0 before the first."""

    name: str
    url: str
    version: str
    fence: int = 0
    is_leaving: bool = False
    boot: str = ""
    """Of the process: the same if it registers again."""

    def entry(self, key: bytes) -> str:
        """What stands in the shared state, but for the fence. Signed: who can write there cannot redirect requests."""
        facts: dict[str, Any] = {
            "name": self.name,
            "url": self.url,
            "version": self.version,
            "leaving": self.is_leaving,
        }
        facts["boot"] = self.boot
        return json.dumps({**facts, "mac": _mac(facts, key)}, sort_keys=True)

    @classmethod
    def read(cls, fence: int, entry: str, keys: tuple[bytes, ...]) -> Self | None:
        """None for an entry that none of the `keys` has signed."""
        try:
            facts: dict[str, Any] = json.loads(entry)
            mac = facts.pop("mac")
            if not any(hmac.compare_digest(mac, _mac(facts, key)) for key in keys):
                return None
            return cls(facts["name"], facts["url"], facts["version"], fence, facts["leaving"], facts.get("boot", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def _mac(facts: dict[str, Any], key: bytes) -> str:
    return hmac.new(key, json.dumps(facts, sort_keys=True).encode(), "sha256").hexdigest()


def default_name(port: int) -> str:
    """Like `web-1-8765`: one host may run several replicas."""
    host = _OTHER.sub("-", socket.gethostname()).strip("-") or "host"
    tail = f"-{port}"
    return host[: MAX_NAME_CHARS - len(tail)] + tail
