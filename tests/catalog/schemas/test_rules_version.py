"""What is stored of schemas counts as long as the rules are the same: whoever changes the rules has to say so."""

from __future__ import annotations

import hashlib
from pathlib import Path

from goat_mcp.catalog.schemas import dialects

RULES = ("dialects", "keywords", "parameter_names", "portable", "references", "root_schema", "subschemas")
DIGEST = "7a6d86e4c13762a1a9ace49af05d4e531cc5c6fb3908a2f49515c3a13e771f3d"


def test_a_change_of_the_rules_is_a_change_of_their_version() -> None:
    folder = Path(dialects.__file__).parent
    digest = hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in RULES)).hexdigest()

    assert digest == DIGEST, (
        "A file of catalog/schemas has changed. If some schema is listed in another way now, raise RULES_VERSION in "
        "dialects.py: catalogs on disk say of schemas that they need no repair. "
        f"Either way the digest here becomes {digest}."
    )
