"""What a model reads of the tools that a search found: a signature and a line of purpose each, 600 tokens in all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from goat_mcp.catalog.filter import server_of
from goat_mcp.catalog.signatures import on_one_line, signature
from goat_mcp.core.spec import ToolSpec

MOST_FOUND = 5
MAX_ANSWER_CHARS = 2_400
"""600 tokens of four characters."""
_NOTE_CHARS = 160
"""What is kept free for a notice below the tools."""
_PURPOSE_CHARS = 110
_SENTENCE_CHARS = 1_000
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\u3002|\n\s*\n")


def found_text(specs: Sequence[ToolSpec]) -> str:
    """At most `MOST_FOUND` tools, two lines each; fewer if they would be too long together."""
    shown: list[str] = []
    left = MAX_ANSWER_CHARS - _NOTE_CHARS
    for spec in specs[:MOST_FOUND]:
        lines = _lines(spec)
        left -= len(lines) + 1
        if left < 0:
            break
        shown.append(lines)
    return "\n".join(shown)


def found_facts(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """For programs. The text says the rest."""
    return [{"name": spec.name, "server": server_of(spec), "risk": spec.risk.name.lower()} for spec in specs]


def names_text(names: Sequence[str], max_chars: int = MAX_ANSWER_CHARS - _NOTE_CHARS) -> str:
    """As many as fit, separated by commas, and how many more there are."""
    shown: list[str] = []
    left = max_chars - len(", ... +10000 more")
    for name in names:
        left -= len(name) + 2
        if left < 0:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return ", ".join([*shown, f"... +{more} more"] if more else shown)


def purpose(text: str) -> str:
    """The first sentence on one line, cut if it is long."""
    stripped = text.strip()
    end = next((one for one in _SENTENCE_END.finditer(stripped) if not _is_abbreviation(stripped, one.start())), None)
    sentence = stripped if end is None else stripped[: end.end()]
    line = on_one_line(sentence, _SENTENCE_CHARS)
    if len(line) <= _PURPOSE_CHARS:
        return line
    return line[: _PURPOSE_CHARS - 3].rsplit(" ", 1)[0] + "..."


def _is_abbreviation(text: str, end: int) -> bool:
    return text[max(end - 3, 0) : end].lower().endswith(("e.g", "i.e", "etc", "vs"))


def _lines(spec: ToolSpec) -> str:
    line = signature(spec.name, spec.input_schema, spec.output_schema)
    what = purpose(spec.description or spec.title)
    return f"{line}\n  {what}" if what else line
