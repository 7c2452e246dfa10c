"""What the page on notifications shows is what a program gets."""

from __future__ import annotations

import json
from pathlib import Path

from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.approvals.notify.message import document_about, message_about
from tests.docs.test_documents import ROOT, blocks
from tests.gateway.approvals.notify.desk import Desk

PAGE = ROOT / "docs" / "notify.md"


def test_the_document_on_the_page_has_the_members_of_a_real_one(tmp_path: Path) -> None:
    (shown,) = [json.loads(block) for block in blocks(PAGE, "json")]

    document = document_about(message_about(Desk(tmp_path).add(), Redactor()), Redactor())

    assert document.keys() == shown.keys()
