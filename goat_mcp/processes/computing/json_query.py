"""A JMESPath query over a JSON document, in a worker's process.

In: `query`, `pretty`, and the document as text. Out: the result as JSON text; or `place` and `problem`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goat_mcp.processes.computing.worker_main import MAX_BYTES, Refused, serve

_MAX_QUERY_CHARS = 20_000
_TOO_DEEP = "has too many expressions in one another, e.g. parentheses; write it with fewer"


def main() -> None:
    serve(answer)


def answer(head: Mapping[str, Any], body: bytes) -> bytes:
    """The result as JSON text. Raises `Refused`."""
    import jmespath
    from jmespath import exceptions

    query = str(head["query"])
    if len(query) > _MAX_QUERY_CHARS:
        raise Refused(place="query", problem=f"has {len(query)} characters; {_MAX_QUERY_CHARS} are the most")
    try:
        compiled: Any = jmespath.compile(query)
    except (exceptions.ParseError, exceptions.EmptyExpressionError) as problem:
        raise Refused(place="query", problem=_syntax(query, problem)) from None
    except RecursionError:
        raise Refused(place="query", problem=_TOO_DEEP) from None
    data = _document(body.decode("utf-8", "surrogatepass"))
    try:
        found: Any = compiled.search(data)
    except RecursionError:
        raise Refused(place="query", problem=_TOO_DEEP) from None
    except exceptions.JMESPathError as problem:
        raise Refused(place="query", problem=" ".join(str(problem).split())) from None
    except (TypeError, ValueError, OverflowError, AttributeError) as problem:  # e.g. max over what cannot be compared
        raise Refused(place="query", problem=f"cannot be applied to this data: {problem}") from None
    return _written(found, indent=2 if head.get("pretty") else None)


def _syntax(query: str, problem: Any) -> str:
    from jmespath import exceptions

    at = getattr(problem, "lex_position", None)
    if not query.strip():
        return "is empty; @ is the whole document"
    if isinstance(problem, exceptions.IncompleteExpressionError):
        return f"is no JMESPath: it ends too early, after character {len(query)}"
    if not isinstance(at, int):
        return f"is no JMESPath: {_first_line(str(problem))}"
    said = _first_line(str(getattr(problem, "message", "") or problem.msg))
    return f"is no JMESPath: {said}, at character {at + 1}: {query[max(0, at - 20) : at]}>>>{query[at : at + 20]}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0].rstrip(": ")


def _document(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise Refused(place="data", problem=f"is no JSON: {problem.msg} at {where}") from None
    except (ValueError, RecursionError) as problem:
        raise Refused(place="data", problem=f"is no JSON: {problem}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _written(value: Any, *, indent: int | None) -> bytes:
    parts: list[bytes] = []
    size = 0
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent)
    try:
        # In pieces: a short query can make a result that no memory holds.
        for piece in encoder.iterencode(value):
            part = piece.encode("utf-8", "backslashreplace")
            size += len(part)
            if size > MAX_BYTES:
                raise Refused(place="query", problem=f"gives a result of over {MAX_BYTES:,} bytes")
            parts.append(part)
    except (ValueError, TypeError) as problem:
        raise Refused(place="query", problem=f"gives a result that is no JSON: {problem}") from None
    return b"".join(parts)
