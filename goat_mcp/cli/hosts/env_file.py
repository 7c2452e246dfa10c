"""The lines `NAME=value` of a file that an entry's `envFile` names."""

from __future__ import annotations

import re

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)\Z")
_COMMENT = re.compile(r"\s#.*\Z")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(text: str) -> dict[str, str]:
    """Values by name; what is no such line is passed over, as hosts do."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match is None:
            continue
        name, value = match.groups()
        if len(value) > 1 and value[0] in "\"'`" and (end := value.rfind(value[0])) > 0:
            quote, inner = value[0], value[1:end]
            value = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), inner) if quote == '"' else inner
        else:
            value = _COMMENT.sub("", value).strip()
        found[name] = value
    return found
