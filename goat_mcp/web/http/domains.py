"""Names of hosts: one spelling for each, and whether one lies in a domain (R-NET-8)."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_LAST_LABEL_OF_A_NUMBER = re.compile(r"([0-9]+|0x[0-9a-f]*)\Z")
_MAX_CHARS = 253


class NotAHost(ValueError):
    """The text is no name of a host; the message says why."""


def ascii_host(text: str) -> str:
    """`text` as DNS knows it: IDNA, lower case, no dot at the end. Raises `NotAHost`.

    A number may come out of it (`127。0。0。1`): whoever cares has to look at the result, never at `text`.
    """
    host = text if text.isascii() else _idna(text)
    host = host.lower().removesuffix(".")
    if not host:
        raise NotAHost("there is no host")
    if len(host) > _MAX_CHARS:
        raise NotAHost(f"a host has at most {_MAX_CHARS} characters")
    for label in host.split("."):
        if not _LABEL.match(label):
            raise NotAHost(f"{label[:63]!r} is no part of a host name")
    return host


def looks_like_a_number(host: str) -> bool:
    """Whether systems read this host as an IPv4 address, in whatever spelling: its last label is a number."""
    return _LAST_LABEL_OF_A_NUMBER.match(host.rpartition(".")[2]) is not None


def host_is_in_domain(host: str, domain: str) -> bool:
    """Whether `host` is `domain` or below it: `docs.example.com` is in `example.com`, `notexample.com` is not.

    Both may be spelled as people write them. What is no host name lies in no domain. A number is in itself only.
    Source: R-NET-8 (CVE-2026-24052: a prefix of the text is not enough).
    """
    try:
        name, wanted = ascii_host(host), ascii_host(domain)
    except NotAHost:
        return False
    if looks_like_a_number(wanted) or looks_like_a_number(name):
        return name == wanted
    return name == wanted or name.endswith(f".{wanted}")


def _idna(text: str) -> str:
    import idna

    try:
        return idna.encode(text, uts46=True, transitional=False).decode("ascii")
    except (idna.IDNAError, UnicodeError) as problem:
        raise NotAHost(str(problem)[:200]) from None
