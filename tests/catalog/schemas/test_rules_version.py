"""What is stored of schemas counts as long as the rules are the same: whoever changes the rules has to say so."""

from __future__ import annotations

import hashlib
from pathlib import Path

from goat_mcp.catalog.schemas import dialects

RULES = ("dialects", "keywords", "parameter_names", "portable", "references", "root", "subschemas")
DIGEST = "c971259af9e97146aa8fa9b8f6c3ecefacd23d9aeb531bd0b5661dc8a28deef9"


def test_a_change_of_the_rules_is_a_change_of_their_version() -> None:
    folder = Path(dialects.__file__).parent
    digest = hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in RULES)).hexdigest()

    assert digest == DIGEST, (
        "A file of catalog/schemas has changed. If some schema is listed in another way now, raise RULES_VERSION in "
        "dialects.py: catalogs on disk say of schemas that they need no repair. "
        f"Either way the digest here becomes {digest}."
    )
