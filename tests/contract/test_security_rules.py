"""docs/security.md says of each rule where it is kept and what shows it: both have to be there."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.contract.security_rules import SECURITY_RULES, SecurityRule

ROOT = Path(__file__).resolve().parents[2]
NUM_RULES = {
    "FILE": 11,
    "SHELL": 7,
    "PROC": 9,
    "NET": 9,
    "SCHEMA": 5,
    "PERM": 7,
    "HOOK": 3,
    "UP": 9,
    "HTTP": 6,
    "CONF": 2,
    "SECRET": 3,
    "AUDIT": 5,
    "LIMIT": 1,
    "STOP": 3,
    "CRASH": 1,
    "LOAD": 1,
}
"""How many rules the contract has in each area."""


def test_every_rule_of_the_contract_is_in_the_table_once() -> None:
    ids = [f"R-{area}-{number}" for area, count in NUM_RULES.items() for number in range(1, count + 1)]

    # A rule that ends in a letter adds to the one before it.
    assert sorted(rule.id for rule in SECURITY_RULES if rule.id[-1].isdigit()) == sorted(ids)
    assert len({rule.id for rule in SECURITY_RULES}) == len(SECURITY_RULES)
    assert {rule.id.rstrip("bcd") for rule in SECURITY_RULES} == set(ids)


@pytest.mark.parametrize("rule", SECURITY_RULES, ids=lambda rule: rule.id)
def test_what_keeps_and_what_shows_a_rule_is_there(rule: SecurityRule) -> None:
    missing = [
        module
        for module in rule.kept_in
        if not (ROOT / "goat_mcp" / f"{module}.py").exists() and not (ROOT / "goat_mcp" / module).is_dir()
    ]
    missing += [shown for shown in rule.shown_by if not _tests(shown)]

    assert missing == []
    assert rule.shown_by or rule.not_covered


def _tests(shown: str) -> list[str]:
    file, _, pattern = shown.partition("::")
    path = ROOT / "tests" / file
    if not path.exists():
        return []
    names = re.findall(r"^(?:    )?(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    return [name for name in names if fnmatchcase(name, pattern)]
