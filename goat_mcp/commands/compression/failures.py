"""Lines that name a failure. Whatever else a compressor leaves out, it keeps them."""

from __future__ import annotations

import re

_FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|err(?:or|ors|ored)?|fatal|panic(?:ked)?|exceptions?|traceback|abort(?:ed|ing)?|"
    r"segfault|segmentation fault|core dumped|killed|timed out|timeout|not ok|cannot|denied|undefined|interrupted)\b"
    r"|[A-Za-z](?:Error|Exception)\b|^E {2}|[✕✗✖\u00d7●\u2a2f]",
    re.IGNORECASE,
)


def names_a_failure(line: str) -> bool:
    return _FAILURE.search(line) is not None
