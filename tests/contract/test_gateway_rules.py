"""docs/gateway.md says of each promise where it is kept and what shows it: both have to be there, under its id."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.contract.gateway_rules import AREAS, GATEWAY_RULES, GatewayRule

ROOT = Path(__file__).resolve().parents[2]
NUM_RULES = {
    "AGG": 6,
    "NAM": 6,
    "COL": 2,
    "REL": 7,
    "ERA": 7,
    "FLW": 4,
    "CHG": 5,
    "SCH": 4,
    "RSK": 4,
    "LIF": 9,
    "ISO": 5,
    "CFG": 5,
    "PRF": 2,
    "WSP": 2,
    "DEF": 4,
    "SPL": 2,
    "AUT": 3,
    "PIN": 2,
    "CHN": 2,
    "OBS": 2,
}
"""How many promises the contract has in each area."""


def test_every_promise_of_the_contract_is_in_the_table_once_and_in_order() -> None:
    ids = [f"{area}-{number}" for area, count in NUM_RULES.items() for number in range(1, count + 1)]
    ids.insert(ids.index("ERA-2") + 1, "ERA-2b")

    assert [rule.id for rule in GATEWAY_RULES] == ids
    assert list(AREAS) == list(NUM_RULES)


@pytest.mark.parametrize("rule", GATEWAY_RULES, ids=lambda rule: rule.id)
def test_what_keeps_and_what_shows_a_promise_is_there(rule: GatewayRule) -> None:
    missing = [
        module
        for module in rule.kept_in
        if not (ROOT / "goat_mcp" / f"{module}.py").exists() and not (ROOT / "goat_mcp" / module).is_dir()
    ]
    missing += [shown for shown in rule.shown_by if not _tests(shown)]

    assert missing == []
    assert rule.shown_by or rule.waived
    assert rule.kept_in or rule.waived


@pytest.mark.parametrize("rule", GATEWAY_RULES, ids=lambda rule: rule.id)
def test_each_file_that_shows_a_promise_says_its_id(rule: GatewayRule) -> None:
    said = re.compile(rf"\b{rule.id}\b|(?:\b|_){rule.id.replace('-', '_')}_")

    silent = {shown.partition("::")[0] for shown in rule.shown_by}
    silent = {file for file in silent if not said.search((ROOT / "tests" / file).read_text())}

    assert silent == set()


@pytest.mark.parametrize("rule", [rule for rule in GATEWAY_RULES if rule.waived], ids=lambda rule: rule.id)
def test_what_waits_has_a_date_and_a_reason(rule: GatewayRule) -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\d: .{10,}\.", rule.waived)


def _tests(shown: str) -> list[str]:
    file, _, pattern = shown.partition("::")
    path = ROOT / "tests" / file
    if not path.exists():
        return []
    names = re.findall(r"^(?:    )?(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    return [name for name in names if fnmatchcase(name, pattern)]
