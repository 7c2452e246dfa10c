"""Documents shown in parts (PDF pages, notebook cells): whole parts up to a cap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """`is_cut`: not even the first part fits, its end is missing."""

    texts: tuple[str, ...]
    is_cut: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def parts_that_fit(parts: Iterable[str], max_chars: int) -> Parts:
    """As many parts, joined by line feeds, as `max_chars` hold, one at least. Takes no more of them than needed."""
    fitting: list[str] = []
    chars = 0
    for part in parts:
        chars += len(part) + 1
        if chars > max_chars + 1:
            if fitting:
                break
            mark = f"\n[... cut: %d of {len(part)} characters shown]"
            room = max(max_chars - len(mark) - len(str(len(part))), 0)
            line_end = part.rfind("\n", 0, room)
            kept = line_end if line_end > 0 else room
            return Parts((part[:kept] + mark % kept,), is_cut=True)
        fitting.append(part)
    return Parts(tuple(fitting))
