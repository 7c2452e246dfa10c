"""What a model reads of the tools that were found (DEF-2): at most 600 tokens, whatever they are."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import pytest

from goat_mcp.catalog.search_answer import MAX_ANSWER_CHARS, found_facts, found_text, names_text, purpose
from goat_mcp.catalog.search_index import ToolIndex
from goat_mcp.core.spec import ToolSpec
from tests.catalog.many_tools import QUERIES
from tests.catalog.test_search_index import many_tools, tool

TEXT = {"type": "string"}
TOKEN_CHARS = 4


def huge(number: int) -> ToolSpec:
    """As long as a tool can be: its name, its parameters, its description."""
    name = f"server__{'n' * 110}_{number:02}"
    parameters = {f"{'p' * 60}_{index}": {"enum": ["v" * 19] * 9} for index in range(200)}
    return replace(tool(name, "Word " * 2_000), input_schema={"properties": parameters, "required": list(parameters)})


def test_DEF_2_a_tool_is_a_signature_and_a_line_of_purpose() -> None:
    schema: dict[str, Any] = {"properties": {"n": {"type": "integer"}, "repo": TEXT}, "required": ["repo"]}
    spec = replace(tool("s__t", "Does it, e.g. now. And more.\n\nAnd more."), input_schema=schema)

    assert found_text([spec]) == "mcp__s__t(repo: str, n?: int)\n  Does it, e.g. now."
    assert found_facts([spec]) == [{"name": "mcp__s__t", "server": "s", "risk": "none"}]


def test_DEF_2_an_answer_is_at_most_600_tokens_even_of_tools_as_long_as_can_be() -> None:
    text = found_text([huge(number) for number in range(50)])

    assert 0 < len(text) <= MAX_ANSWER_CHARS == 600 * TOKEN_CHARS
    assert text.count("\nmcp__") + 1 == 5 and text.count("more)") == 5


def test_DEF_2_half_of_the_answers_are_at_most_400_tokens() -> None:
    index = ToolIndex([*many_tools(), *(huge(number) for number in range(5))])

    costs = [len(found_text(index.best(query, lambda _: True, 5)[0])) / TOKEN_CHARS for query in QUERIES]

    assert statistics.median(costs) <= 400 and max(costs) <= 600


def test_DEF_2_names_that_do_not_fit_are_counted() -> None:
    names = [f"mcp__server__tool_{number}" for number in range(1_000)]

    text = names_text(names)

    assert len(text) <= MAX_ANSWER_CHARS and text.endswith(f"... +{1_000 - text.count('mcp__')} more")
    assert names_text(names[:2]) == "mcp__server__tool_0, mcp__server__tool_1"


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("Sends it. Then more.", "Sends it."),
        ("Takes version 1.2 of a\nfile, i.e. the older. More", "Takes version 1.2 of a file, i.e. the older."),
        ("First line\n\nSecond", "First line"),
        ("送信します。詳細", "送信します。"),
        ("a\x1b[2J\u202eb", "a [2J b"),
        ("", ""),
    ],
)
def test_DEF_2_the_purpose_is_the_first_sentence_on_one_line(description: str, line: str) -> None:
    assert purpose(description) == line


def test_DEF_2_a_long_sentence_is_cut_at_a_word() -> None:
    assert purpose("word " * 100).endswith(" word...")
    assert len(purpose("x" * 5_000)) <= 110
