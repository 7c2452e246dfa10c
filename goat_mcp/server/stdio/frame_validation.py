"""Whether a message's text means one thing only (R-SCHEMA-1), and the JSON-RPC error for one that does not.

Shared by stdio and HTTP. Size limits are each transport's own; what a message asks for is not looked at here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
from pydantic_core import from_json

MAX_DIGITS = 4300
"""Of an integer; readers stop there, as the time to read one grows with its square."""
MAX_ID_CHARS = 128
_IDS = (int, str)
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[A-Za-z0-9_.:-]{1,128}")\s*[,}]')
_TOO_DEEP = "the message is nested too deeply"


@dataclass(frozen=True)
class Fault:
    """Why a message is not read: a JSON-RPC code and a sentence, for the request it was, where that is known."""

    code: int
    message: str
    request_id: int | str | None = None

    def answer(self) -> bytes:
        error = {"code": self.code, "message": self.message}
        return json.dumps({"jsonrpc": "2.0", "id": self.request_id, "error": error}).encode()


def find_fault(frame: bytes) -> Fault | None:
    """None for sound JSON: whoever reads it, with whichever reader, reads the same."""
    return fault if isinstance(fault := read_strictly(frame), Fault) else None


def read_strictly(frame: bytes) -> object | Fault:
    """The value that sound JSON stands for."""
    try:
        value = from_json(frame)  # UTF-8, whole surrogate pairs, depth (200), digits
        _STRICT.decode(frame.decode())
    except _Unsound as unsound:
        return Fault(unsound.code, str(unsound), request_id_of(frame))
    except RecursionError:  # where the event loop's own stack was deep already
        return Fault(types.INVALID_REQUEST, _TOO_DEEP, request_id_of(frame))
    except ValueError as problem:
        return _unreadable(frame, str(problem))
    if isinstance(value, dict) and "method" in value and type(cast("dict[str, Any]", value).get("id", 0)) not in _IDS:
        # Read as a notification otherwise, which nobody answers.
        return Fault(types.INVALID_REQUEST, "the id of a request must be an integer or a text")
    return cast("object", value)


class _Unsound(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _refuse_twins(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    twin = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    raise _Unsound(types.INVALID_REQUEST, f"the message names {json.dumps(twin[:80])} twice in one object")


def _refuse_constant(name: str) -> None:
    raise _Unsound(types.PARSE_ERROR, f"{name} is not valid JSON")


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise _Unsound(types.PARSE_ERROR, f"{digits[:40]} is more than a number can hold")
    return value


_STRICT = json.JSONDecoder(object_pairs_hook=_refuse_twins, parse_constant=_refuse_constant, parse_float=_finite)


def _unreadable(frame: bytes, problem: str) -> Fault:
    """The fault of what the strict reader could not read at all; Python's may still."""
    try:
        _LENIENT.decode(frame.decode())
    except RecursionError:
        return Fault(types.INVALID_REQUEST, _TOO_DEEP, request_id_of(frame))
    except ValueError:
        return Fault(types.PARSE_ERROR, "not valid JSON; send one JSON-RPC message in UTF-8")
    if "recursion" in problem:
        message = _TOO_DEEP
    elif "number" in problem:
        message = f"the message holds an integer of more than {MAX_DIGITS} digits"
    else:  # half of a surrogate pair, as a cut emoji leaves one
        message = f"the message holds text that is not Unicode: {problem}"
    return Fault(types.INVALID_REQUEST, message, request_id_of(frame))


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written."""


def _length_limited(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS else None


_LENIENT = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_length_limited)


def request_id_of(frame: bytes) -> int | str | None:
    """The id of what cannot be read as a message, so that whoever sent it hears of it; None where it is not certain."""
    try:
        message = _LENIENT.decode(frame.decode())
    except RecursionError:
        found = _ID.findall(frame)
        return json.loads(found[0]) if len(found) == 1 else None
    if not isinstance(message, _Pairs):
        return None
    ids = [value for key, value in message if key == "id"]
    return ids[0] if len(ids) == 1 and _is_id(ids[0]) else None


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARS and value.isprintable()
    return type(value) is int and abs(value) < 2**63
