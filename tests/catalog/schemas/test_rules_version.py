"""What is stored of schemas counts as long as the rules are the same: whoever changes the rules has to say so."""

from __future__ import annotations

import hashlib
from pathlib import Path

from goat_mcp.catalog.schemas import dialects

RULES = ("dialects", "keywords", "parameter_names", "portable", "references", "root", "subschemas")
DIGEST = "e4ffe07713fe01b4bc6f23bb82a1ff84f5c715fdf39d60fdd0f07434bc475f38"


def test_a_change_of_the_rules_is_a_change_of_their_version() -> None:
    folder = Path(dialects.__file__).parent
    digest = hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in RULES)).hexdigest()

    assert digest == DIGEST, (
        "A file of catalog/schemas has changed. If some schema is listed in another way now, raise RULES_VERSION in "
        "dialects.py: catalogs on disk say of schemas that they need no mending. "
        f"Either way the digest here becomes {digest}."
    )
