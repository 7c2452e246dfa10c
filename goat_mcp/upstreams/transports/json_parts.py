"""What JSON says, all of a frame or part after part: the fast parser is asked first, then one that takes more."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json


class JsonParts:
    """Of one frame."""

    def __init__(self) -> None:
        self.have_halves = False
        """Whether the fast parser refused something, as it does lone surrogates. JavaScript writes these."""

    def loads(self, part: bytes | bytearray) -> Any:
        """Raises `ValueError` for what is no JSON."""
        try:
            return from_json(part)
        except ValueError:
            if part.lstrip()[:1] not in (b"{", b"[", b'"'):
                raise
        try:
            value = json.loads(str(part, "utf-8", "surrogatepass"))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        self.have_halves = True
        return value
