"""Stored definitions were made visible by some rules: whoever changes these has to say so."""

from __future__ import annotations

import hashlib
from pathlib import Path

import goat_mcp

RULES = ("files/documents/visible_text.py", "catalog/schemas/visible_schema.py")
DIGEST = "7e30af2a2986191101cc203d663528de59be00af223a05056a540dc79b83b19c"


def test_a_change_of_what_is_made_visible_is_a_change_of_its_version() -> None:
    folder = Path(goat_mcp.__file__).parent
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in RULES)).hexdigest()

    assert digest == DIGEST, (
        "What is made visible may have changed. If some definition is shown in another way now, or rejected, raise "
        "VISIBLE_RULES in visible_text.py: catalogs on disk hold definitions as they were shown. "
        f"Either way the digest here becomes {digest}."
    )
