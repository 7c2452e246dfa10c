"""Every reason code is explained to people."""

from __future__ import annotations

import pytest

from goat_mcp.upstreams.reason_pages import REASON_PAGES, reasons_page
from goat_mcp.upstreams.status import ReasonCode


def test_every_reason_code_has_a_meaning_and_a_remedy_in_the_docs() -> None:
    assert list(REASON_PAGES) == list(ReasonCode)


@pytest.mark.parametrize("code", ReasonCode)
def test_a_reason_is_told_in_whole_sentences(code: ReasonCode) -> None:
    page = REASON_PAGES[code]

    assert page.meaning.endswith(".") and page.remedy.endswith(".")
    assert f"| `{code}` | {page.meaning} | {page.remedy} |" in reasons_page()
