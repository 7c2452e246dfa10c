"""goa's Documentable, for every tool: a short text, a long one, and examples. Source: goa, "Documentable"."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from goat_mcp.catalog.builtin_contracts import builtin_contracts, builtin_names
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.spec import ToolSpec
from goat_mcp.settings.settings import setting_keys
from goat_mcp.tools import docs as tool_docs
from goat_mcp.tools.docs import OUTPUTS, document
from scripts.example_outputs import example_outputs

FOLDER = Path(str(tool_docs.__file__)).parent
MAX_SHORT_CHARS = 160
MIN_LONG_CHARS = 600
SECTIONS = ["## What comes back", "## Limits", "## When it fails"]
ONE_WAY_TO_CALL = {"TaskStop"}
"""Tools of which a second example would show nothing new."""

documented = pytest.mark.parametrize("spec", builtin_contracts(), ids=lambda spec: spec.name)


@documented
def test_a_tool_has_a_short_and_a_long_text(spec: ToolSpec) -> None:
    page = document(spec)

    assert page.short.endswith((".", "?", "!")) or "`" in page.short
    assert len(page.short) <= MAX_SHORT_CHARS
    assert len(page.long) >= MIN_LONG_CHARS
    assert page.short not in page.long


@documented
def test_a_long_text_is_not_paid_for_by_models(spec: ToolSpec) -> None:
    listed = json.dumps(spec.wire())
    paragraphs = [part for part in document(spec).long.split("\n\n") if len(part) > 80]

    assert not [part for part in paragraphs if part[:80] in listed]


@documented
def test_a_long_text_says_what_comes_back_what_is_the_limit_and_what_fails(spec: ToolSpec) -> None:
    headings = re.findall(r"^## .*$", document(spec).long, re.MULTILINE)

    assert [heading for heading in headings if heading != "## Settings"] == SECTIONS


@documented
def test_the_error_codes_and_settings_it_names_exist(spec: ToolSpec) -> None:
    long = document(spec).long
    codes = set(re.findall(r"\bE_[A-Z_]+", long))
    _, _, settings = long.partition("## Settings")
    keys = set(re.findall(r"^\| `([^`]+)`", settings, re.MULTILINE))

    assert codes, "a tool fails somehow"
    assert codes <= {code.value for code in ErrorCode}
    assert keys <= set(setting_keys())


@documented
def test_the_fields_that_a_page_shows_are_those_of_the_schema(spec: ToolSpec) -> None:
    shown = re.findall(r"^\| `([^`]+)` \|", document(spec).markdown().split("## What it does")[0], re.MULTILINE)
    assert shown == list(spec.input_schema["properties"])


@documented
def test_a_tool_is_shown_in_use_more_than_once(spec: ToolSpec) -> None:
    assert len(spec.examples) >= (1 if spec.name in ONE_WAY_TO_CALL else 2)
    assert len({json.dumps(dict(example.input)) for example in spec.examples}) == len(spec.examples)


def test_each_text_belongs_to_a_tool() -> None:
    assert {file.stem for file in FOLDER.glob("*.md")} == set(builtin_names())


@documented
def test_each_example_of_a_page_shows_what_comes_back(spec: ToolSpec) -> None:
    page = document(spec)

    assert [example.description for example in page.examples if not example.output] == []
    assert page.markdown().count("```text\n") >= len(spec.examples)


def test_what_an_example_says_comes_back_does() -> None:
    assert example_outputs() == json.loads(OUTPUTS.read_text())


def test_an_example_that_fails_is_none() -> None:
    outputs = [output for shown in json.loads(OUTPUTS.read_text()).values() for output in shown]

    assert [output for output in outputs if re.search(r"^\[E_[A-Z_]+\]$", output, re.MULTILINE)] == []
