"""The picture of docs/context.md: tokens for each solved task, by mode and size of the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench.tasks.run import Cell

_BAR, _GAP, _GROUP_GAP = 16, 4, 34
_LABEL_WIDTH, _WIDTH, _MAX_WIDTH = 190, 780, 480
_OURS, _THEIRS, _INK = "#2f6f4f", "#9aa5a0", "#24292f"


def plot(cells: Sequence[Cell], policy: str) -> str:
    """An SVG with a bar for each gateway and mode, grouped by size; each group has a scale of its own."""
    shown = [cell for cell in cells if cell.policy == policy and cell.solved]
    parts: list[str] = []
    y = 30
    for tools in dict.fromkeys(cell.tools for cell in shown):
        group = [cell for cell in shown if cell.tools == tools]
        most = max(cell.per_solved for cell in group)
        parts.append(_text(8, y, f"{tools:,} tools", weight="bold"))
        y += 12
        for cell in group:
            width = max(1.0, _MAX_WIDTH * cell.per_solved / most)
            colour = _OURS if cell.gateway == "goat-mcp" else _THEIRS
            parts.append(_text(8, y + _BAR - 4, f"{cell.gateway}, {cell.mode}"))
            parts.append(f'<rect x="{_LABEL_WIDTH}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>')
            parts.append(_text(_LABEL_WIDTH + width + 6, y + _BAR - 4, f"{cell.per_solved:,.0f}"))
            y += _BAR + _GAP
        y += _GROUP_GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}" viewBox="0 0 {_WIDTH} {y}" role="img"'
    )
    title = escape(f"Billed tokens for each solved task, model: {policy}. Shorter is better.")
    page = f'<rect width="{_WIDTH}" height="{y}" fill="#ffffff"/>'
    return "\n".join([f'{head} aria-label="{title}">', f"<title>{title}</title>", page, *parts, "</svg>", ""])


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    style = f'font-family="sans-serif" font-size="12" font-weight="{weight}" fill="{_INK}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'
