"""docs/architecture.md says what is in each layer of imports: it leaves out none of those that the contracts name."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.docs.test_documents import ROOT, blocks

PAGE = ROOT / "docs" / "architecture.md"
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


@pytest.mark.parametrize(
    ("number", "contract"), list(enumerate(CONTRACTS)), ids=[contract["containers"][0] for contract in CONTRACTS]
)
def test_every_module_that_has_a_layer_is_on_the_page(number: int, contract: dict[str, Any]) -> None:
    words = re.findall(r"[\w*]+", blocks(PAGE, "")[number])

    modules = [module.strip() for layer in contract["layers"] for module in layer.split("|")]

    missing = [one for one in modules if one != "__main__" and not any(fnmatchcase(one, word) for word in words)]
    assert missing == []
