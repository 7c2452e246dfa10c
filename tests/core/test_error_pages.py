"""The help behind errors."""

from __future__ import annotations

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.error_pages import PAGES, ErrorPages
from goat_mcp.core.errors import ErrorCode

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("code", list(ErrorCode))
async def test_every_code_has_its_page(code: ErrorCode) -> None:
    """A new code wants an entry in `core/error_pages.py`: what it means, and what to do."""
    assert code in PAGES

    page = await ErrorPages().read(code.help_url, ToolContext(call_id="c"))

    assert page is not None
    meaning, advice = PAGES[code]
    assert page.text == f"# {code}\n\n{meaning}\n\n## What to do\n\n{advice}\n"
    assert meaning.endswith(".") and advice.endswith(".")


async def test_the_first_page_names_all_codes() -> None:
    page = await ErrorPages().read("goat://errors", ToolContext(call_id="c"))

    assert page is not None
    assert [line.split("]")[0] for line in page.text.splitlines()[2:]] == [f"- [{code}" for code in PAGES]


@pytest.mark.parametrize("uri", ["goat://errors/", "goat://errors/E_NOPE", "goat://errors/E_INPUT/x", "goat://error"])
async def test_what_is_no_code_has_no_page(uri: str) -> None:
    assert await ErrorPages().read(uri, ToolContext(call_id="c")) is None
