"""A page about a tool: what is on it, for a tool of ours and for an upstream's."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from goat_mcp.catalog.registry import Registry
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample, ToolSpec
from goat_mcp.tools.docs import document, long_doc, short_doc, type_in_words
from tests.tool_doubles import FakeTool, spec


def described(text: str) -> ToolSpec:
    return replace(spec("X"), description=text)


@pytest.mark.parametrize(
    ("description", "short"),
    [
        ("Find files. Newest first.", "Find files."),
        ("Find files\nby name. Newest\nfirst.", "Find files by name."),
        ("Find **/*.py at any depth. More.", "Find **/*.py at any depth."),
        ("Find things, e.g. files, i.e. these. More.", "Find things, e.g. files, i.e. these."),
        ("No full stop\n\nSecond paragraph.", "No full stop"),
        ("Really? Yes.", "Really?"),
        ("", ""),
    ],
)
def test_the_short_text_is_the_first_sentence(description: str, short: str) -> None:
    assert short_doc(described(description)) == short


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "minLength": 2}, "string, at least 2"),
        ({"type": "integer", "exclusiveMinimum": 0}, "integer > 0"),
        ({"type": "integer", "minimum": 0, "maximum": 600_000}, "integer, 0 to 600000"),
        ({"type": "integer", "maximum": 9}, "integer, at most 9"),
        ({"enum": ["a", "b", "c"], "type": "string"}, "a, b or c"),
        ({"enum": ["only"]}, "only"),
        ({"type": ["string", "boolean", "number"]}, "string, boolean or number"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or list of string"),
        (
            {"type": "array", "minItems": 1, "maxItems": 4, "items": {"type": "object", "properties": {"x": {}}}},
            "list of object {x}, 1 to 4",
        ),
        ({"type": "object"}, "object"),
        ({"type": "array"}, "list of any"),
        ({}, "any"),
    ],
)
def test_a_type_is_said_in_words(schema: dict[str, Any], words: str) -> None:
    assert type_in_words(schema) == words


def test_the_page_of_a_tool_says_all_there_is_to_say_of_it() -> None:
    tool = replace(
        spec("mcp__x__send", SideEffect.NETWORK, toolset="upstream"),
        description="Send it.\n\nCarefully | now.",
        input_schema={
            "type": "object",
            "properties": {
                "to": {"type": "string", "description": "Who|what\nfor"},
                "times": {"type": "integer", "default": 1},
            },
            "required": ["to"],
        },
        examples=(ToolExample("To Åsa", {"to": "Åsa"}, "sent"),),
    )

    assert document(tool).markdown() == (
        "# mcp__x__send\n\nSend it.\n\n"
        "| effects | toolset | side effect | risk | hints |\n| --- | --- | --- | --- | --- |\n"
        "| uses the network | upstream | network | high "
        "| repeating changes nothing more, reaches beyond the workspace |\n\n"
        "## Input\n\n"
        "| field | type | default | meaning |\n| --- | --- | --- | --- |\n"
        "| `to` | string | required | Who\\|what for |\n| `times` | integer | 1 |  |\n\n"
        "## What a model reads\n\n> Send it.\n>\n> Carefully | now.\n\n"
        '## Examples\n\nTo Åsa:\n\n```json\n{\n  "to": "Åsa"\n}\n```\n\n```text\nsent\n```\n'
    )


def test_a_registered_tools_own_long_text_is_on_its_page() -> None:
    registry = Registry()
    registry.register(FakeTool(replace(spec("X"), long_doc="All about it.")), source="mine")

    tool = registry.get("X")

    assert tool is not None
    assert document(tool.spec).long == "All about it."
    assert "## What it does\n\nAll about it.\n" in document(tool.spec).markdown()
    assert "All about it." not in str(tool.spec.wire())


def test_a_tool_that_is_off_says_what_turns_it_on() -> None:
    assert document(described("Do it."), "Ask.").markdown().startswith("# X\n\nDo it.\n\n**Off.** Ask.\n\n| effects")


def test_a_tool_without_input_says_so() -> None:
    assert "## Input\n\nNone.\n" in document(described("Do it.")).markdown()


@pytest.mark.parametrize("name", ["../page", "../../README", "/etc/passwd", "page.py", "Bash\n", "nothing"])
def test_a_name_never_becomes_a_path(name: str) -> None:
    assert long_doc(name) == ""


def test_an_upstreams_tool_of_our_name_gets_none_of_our_words() -> None:
    assert document(spec("Bash", canonical_name="mcp__evil__Bash")).long == ""
    assert document(spec("Bash")).long != ""


def test_pages_cost_a_start_nothing() -> None:
    program = "import sys, goat_mcp.gateway.gateway; print([name for name in sys.modules if 'tool_docs' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
