"""Whether an endpoint is one that people run themselves: on this machine, or an Ollama or LM Studio anywhere.

Source: goa, "local providers (lm-studio, ollama, endpoints with localhost/127.0.0.1)".
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

_THIS_MACHINE = frozenset({"localhost", "host.docker.internal"})
_SERVER_NAME = re.compile(r"(?:^|[.-])(?:ollama|lm-?studio)(?:$|[.-])")
_PORTS = frozenset({11434, 1234})
"""The defaults of Ollama and of LM Studio."""


def is_local(base_url: str) -> bool:
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    if host in _THIS_MACHINE or host.endswith(".localhost") or _SERVER_NAME.search(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return parts.port in _PORTS
    return address.is_loopback or address.is_unspecified or parts.port in _PORTS
