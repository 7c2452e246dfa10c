"""Comments in Markdown do not reach the model, code blocks do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from goat_mcp.web.pages.pages import without_comments


@pytest.mark.parametrize(
    ("markdown", "kept"),
    [
        ("a <!-- b --> c", "a  c"),
        ("a <!-- b\n\nc --> d", "a  d"),
        ("a <!-- b", "a "),
        ("<!-- a --><!-- b -->c", "c"),
        ("```html\n<!-- a -->\n```\n<!-- b -->", "```html\n<!-- a -->\n```\n"),
        ("~~~\n<!-- a -->\n~~~\n<!-- b -->", "~~~\n<!-- a -->\n~~~\n"),
        ("```\n<!-- a -->", "```\n<!-- a -->"),
        ("````\n```\n<!-- a -->\n````\n<!-- b -->", "````\n```\n<!-- a -->\n````\n"),
        ("~~~\n```\n~~~\n<!-- b -->", "~~~\n```\n~~~\n"),
        ("```\n``` not the end\n```\n<!-- b -->", "```\n``` not the end\n```\n"),
        ("``` no `fence`\n<!-- b -->", "``` no `fence`\n"),
        ("    ```\n<!-- b -->", "    ```\n"),
        ("<!--\n```\n-->\n<!-- b -->", "\n"),
        ("no comment", "no comment"),
        ("", ""),
    ],
)
def test_only_what_is_in_a_fence_stays(markdown: str, kept: str) -> None:
    assert without_comments(markdown) == kept


@pytest.mark.parametrize(
    "markdown",
    ["'<!---->' * 700_000", "'```\\n```\\n' * 600_000 + '<!--'", "'<!-- ' * 1_000_000", "'`' * 5_000_000 + 'x<!--'"],
    ids=["comments", "fences", "openings", "backticks"],
)
def test_a_page_made_to_take_long_does_not(markdown: str) -> None:
    """Some seconds at most; what takes time as the square of the length would take hours."""
    program = f"from goat_mcp.web.pages.pages import without_comments; without_comments({markdown})"

    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
