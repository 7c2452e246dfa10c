"""Small projects for the programs whose output is recorded: the same content and the same dates each time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_GOODS = ("apples", "pears", "plums", "quinces", "medlars", "cherries", "currants", "gooseberries")
_AREAS = ("warehouse", "delivery", "invoicing")


def make_python(folder: Path, environment: Mapping[str, str]) -> None:
    """A repository with a history, then with changes that are staged, unstaged and untracked."""
    _git(folder, environment, "init", "-q", "-b", "main")
    for number, area in enumerate(_AREAS):
        for good in _GOODS:
            _write(folder / f"src/shop/{area}/{good}_{area}.py", _module(good, area))
        _commit(folder, environment, number, f"{area}: stock of every fruit can be counted", _LONG_BODY)
    for number, good in enumerate(_GOODS, len(_AREAS)):
        _write(folder / f"tests/test_{good}.py", _tests(good))
        _commit(folder, environment, number, f"tests: {good} are counted as they are sold", "")
    _write(folder / "tests/test_prices.py", _PRICES)
    _write(folder / "tests/conftest.py", _CONFTEST)
    _write(folder / "pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    _commit(folder, environment, 20, "prices: rounding is tested", _BODY_WITH_PLACES)
    _change(folder, "pears", "warehouse", "    return self.counts.get(name, 0)", "    return self.counts[name]")
    _change(folder, "plums", "delivery", "        limit = 10", "        limit = 12")
    _commit(folder, environment, 21, "pears: a missing count fails at once\n\nFixes #114", "")

    _write(folder / "src/shop/delivery/routes.py", "ROUTES = ()\n")
    _change(folder, "quinces", "warehouse", "        limit = 10", "        limit = 20")
    _git(folder, environment, "add", "-A")
    _git(folder, environment, "mv", "src/shop/invoicing/plums_invoicing.py", "src/shop/invoicing/plum_bills.py")
    _git(folder, environment, "rm", "-q", "src/shop/invoicing/medlars_invoicing.py")
    for good in ("apples", "cherries", "currants"):
        _change(folder, good, "delivery", "        limit = 10", "        limit = 15")
    _change(folder, "cherries", "delivery", "        self.name = name", "        self.name = name.strip()")
    _change(folder, "quinces", "warehouse", "        self.name = name", "        self.name = name.lower()")
    _write(folder / "notes/harvest.md", "# Harvest\n")
    _write(folder / "src/shop/delivery/drivers.py", "DRIVERS = ()\n")
    _write(folder / "service.log", _SERVICE_LOG)
    for path in sorted(folder.rglob("*")):
        if ".git" not in path.parts:
            os.utime(path, (1_780_000_000, 1_780_000_000))


def make_go(folder: Path, environment: Mapping[str, str]) -> None:
    _write(folder / "go.mod", "module example.com/shop\n\ngo 1.19\n")
    _write(folder / "cmd/main.go", "package main\n\nfunc main() {}\n")
    _write(folder / "stock/stock.go", _GO_STOCK)
    _write(folder / "stock/stock_test.go", _GO_STOCK_TEST)
    names = "".join(f"func Test{good.title()}(t *testing.T) {{}}\n" for good in _GOODS)
    for package in ("price", "route", "bill", "order", "driver"):
        _write(folder / package / f"{package}_test.go", f'package {package}\n\nimport "testing"\n\n{names}')


def make_rust(folder: Path, environment: Mapping[str, str]) -> None:
    _write(folder / "Cargo.toml", '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n')
    tests = "".join(
        f"    #[test]\n    fn {good}_are_counted() {{ assert_eq!(super::level(3), 3); }}\n" for good in _GOODS
    )
    _write(
        folder / "src/lib.rs",
        "pub fn level(count: u32) -> u32 { count }\n\n#[cfg(test)]\nmod stock {\n"
        + tests
        + "    #[test]\n    fn nothing_is_no_stock() { assert_eq!(super::level(0), 1); }\n}\n",
    )


def make_jest(folder: Path, environment: Mapping[str, str]) -> None:
    """Needs `npm install jest`, which takes a registry."""
    _write(folder / "package.json", '{"name": "shop", "version": "1.0.0"}\n')
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "jest"], cwd=folder, env=environment, check=True)
    cases = "".join(f'  test("{good} are counted", () => expect(1 + 2).toBe(3));\n' for good in _GOODS)
    for area in _AREAS:
        _write(folder / f"src/{area}.test.js", f'describe("{area}", () => {{\n{cases}}});\n')
    _write(
        folder / "src/prices.test.js",
        'test("rounds", () => {\n  expect(Math.round(2.4)).toBe(2);\n});\n\n'
        'test("adds up", () => {\n  expect(0.1 + 0.2).toBe(0.3);\n});\n',
    )


def _module(good: str, area: str) -> str:
    return f'''"""How many {good} there are in {area}."""

from __future__ import annotations


class {good.title()}{area.title()}:
    """Counts of one kind of fruit. Nothing is known of its price."""

    def __init__(self, name: str) -> None:
        limit = 10
        self.name = name
        self.limit = limit
        self.counts: dict[str, int] = {{}}

    def level(self, name: str) -> int:
        if not self.counts:
            return 0
        return self.counts.get(name, 0)

    def put(self, name: str, count: int) -> None:
        if count > self.limit:
            raise ValueError(f"{{name}}: {{count}} are too many")
        self.counts[name] = self.counts.get(name, 0) + count

    def take(self, name: str, count: int) -> int:
        for known in sorted(self.counts):
            if known == name:
                self.counts[known] = max(0, self.counts[known] - count)
        return self.counts.get(name, 0)
'''


def _tests(good: str) -> str:
    odd = "\n\ndef test_more_than_all_are_not_sold():\n    there = 3\n    sold = 5\n"
    odd += "    left = there - sold\n    assert left >= 0\n"
    return (
        f'"""{good.title()}."""\n\nimport pytest\n\n\n@pytest.mark.parametrize("count", range(8))\n'
        f"def test_{good}_are_counted(count):\n    assert count < 100\n"
    ) + (odd if good in ("plums", "medlars") else "")


def _change(folder: Path, good: str, area: str, old: str, new: str) -> None:
    path = folder / f"src/shop/{area}/{good}_{area}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _commit(folder: Path, environment: Mapping[str, str], number: int, subject: str, body: str) -> None:
    date = f"2026-03-{number % 9 + 1:02d}T{number:02d}:15:00 +0000"
    author = ("Ada Marsh", "Ben Rowan")[number % 5 == 4]
    mail = f"{author.split()[0].lower()}.{author.split()[1].lower()}@shop.example"
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", author), ("EMAIL", mail), ("DATE", date))
    }
    _git(folder, environment, "add", "-A")
    message = f"{subject}\n\n{body}" if body else subject
    _git(folder, {**environment, **who}, "commit", "-q", "-m", message)


def _git(folder: Path, environment: Mapping[str, str], *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True)


_LONG_BODY = """Until now each kind of fruit was counted by hand, in a list of its own,
and the lists were put together once a week. Now there is one class for
each of them, so that a count is right as soon as it is made.

Nothing is known yet of what fruit costs."""
_BODY_WITH_PLACES = """Half a cent was rounded up in one place and down in another, see
tests/test_prices.py:4, where both are asked for the same amount.

Found by #97."""
_CONFTEST = "import warnings\n"
_PRICES = '''"""Prices."""

import pytest


@pytest.mark.parametrize("cents", range(24))
def test_half_a_cent_is_rounded_to_even(cents):
    assert round(cents) == cents
'''
_SERVICE_LOG = (
    "".join(
        f"2026-03-0{day} 08:00:00 INFO started\n\n" + "worker: waiting for orders, none has come so far\n" * 40
        for day in range(1, 5)
    )
    + "2026-03-05 09:12:31 ERROR orders.db:117 is locked\n"
)
_GO_STOCK = """package stock

// Level is how many of an item there are.
func Level(counts map[string]int, item string) int { return counts[item] }

func First(items []string) string { return items[0] }
"""
_GO_STOCK_TEST = """package stock

import "testing"

func TestLevel(t *testing.T) {
	for _, name := range []string{"apples", "pears", "plums"} {
		t.Run(name, func(t *testing.T) {
			if got := Level(map[string]int{name: 3}, name); got != 3 {
				t.Errorf("Level(%q) = %d; want 3", name, got)
			}
		})
	}
}

func TestLevelOfNothing(t *testing.T) {
	if got := Level(nil, "apples"); got != 1 {
		t.Errorf("Level(nil) = %d; want 1", got)
	}
}

func TestSkipped(t *testing.T) { t.Skip("not on this machine") }

func TestFirst(t *testing.T) {
	if First(nil) != "" {
		t.Fatal("unreachable")
	}
}
"""
