"""Which of the resources, templates and prompts an upstream lists are passed on."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.catalog.offerings import Kind
from goat_mcp.files.documents.visible_text import hides_something
from goat_mcp.upstreams.listing import entry_validation
from goat_mcp.upstreams.listing.entry_validation import valid_entries, valid_resources
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry
from tests.upstreams.listing.definition_texts import HIDING, HONEST


# COL-1, OBS-1
def test_a_broken_entry_is_rejected_alone_and_named() -> None:
    listed = [
        "no object",
        {"title": "nameless"},
        {"name": "half \ud800"},
        {"name": "good", "vendor": 1},
        {"name": "broken", "arguments": "none"},
        {"name": "good", "title": "again"},
        {"name": "hidden\u200b"},
    ]

    usable = valid_resources("prompts", listed)

    assert usable.entries == ({"name": "good", "vendor": 1}, {"name": "hidden\u200b"})
    nameless = RejectedEntry("", "it is not an object with a name", kind="prompt")
    assert usable.rejected == (
        nameless,
        nameless,
        nameless,
        RejectedEntry("broken", "it is not valid: arguments: Input should be a valid list", kind="prompt"),
        RejectedEntry("good", "it is listed twice; the first one is used", ReasonCode.LISTED_TWICE, kind="prompt"),
    )


# COL-1
def test_our_own_uris_are_ours() -> None:
    usable = valid_resources("templates", [{"uriTemplate": "goat://x/{y}", "name": "x"}])

    assert usable.entries == ()
    reason = "goat:// is goat-mcp's own; an upstream's is not read by it"
    assert usable.rejected == (RejectedEntry("goat://x/{y}", reason, ReasonCode.NAME_COLLISION, kind="template"),)


PAIRS = [
    *(("t1", "T1"), ("read_file", "Read_File"), ("readFile", "readfile"), ("READ", "read"), ("a", "A"), ("x-y", "X-y")),
    *(("git.push", "git.Push"), ("Delete", "DELETE"), ("sendMail", "SendMail"), ("tool__x", "tool__X"), ("aB", "Ab")),
    *(("caf\u00e9", "CAF\u00c9"), ("stra\u00dfe", "STRASSE"), ("\u0434\u0430", "\u0414\u0410"), ("\u03c3", "\u03c2")),
    *((f"name{number}", f"Name{number}") for number in range(8)),
    *((f"get_{letter}", f"get_{letter.upper()}") for letter in "abcdefgh"),
]


# R-UP-5
@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("turned", [False, True])
def test_f13_28_case_alone_makes_no_second_name_and_the_first_one_stays(first: str, second: str, turned: bool) -> None:
    names = (second, first) if turned else (first, second)
    schema = {"type": "object"}

    tools = valid_entries([{"name": name, "inputSchema": schema} for name in (*names, "other", names[0])])
    prompts = valid_resources("prompts", [{"name": name} for name in (*names, "other", names[0])])

    assert [one["name"] for one in tools.entries] == [one["name"] for one in prompts.entries] == [names[0], "other"]
    for rejected in (tools.rejected, prompts.rejected):
        assert [(one.name, one.reason_code) for one in rejected] == [
            (names[1], ReasonCode.NAME_COLLISION),
            (names[0], ReasonCode.LISTED_TWICE),
        ]
        assert rejected[0].reason.startswith(f"its name differs from that of {names[0]} in upper and lower case only")


def test_uris_that_differ_in_case_are_two() -> None:
    listed = [{"uri": "x://a", "name": "a"}, {"uri": "x://A", "name": "a"}]

    assert len(valid_resources("resources", listed).entries) == 2


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("kind", ["resources", "templates", "prompts"])
def test_f13_12_hidden_in_items_is_shown(kind: Kind, text: str) -> None:
    known = {"resources": {"uri": "x:a", "name": text}, "templates": {"uriTemplate": "x:{a}", "name": text}}
    entry: dict[str, Any] = {
        **known.get(kind, {"name": "p", "arguments": [{"name": "a", "title": text, "description": text, "x": text}]}),
        "title": text,
        "description": text,
        "icons": [{"src": f"https://x.example/{text}", "mimeType": text}],
        "_meta": {"note": [text], text: 1},
        "vendor": {text: text},
    }

    usable = valid_resources(kind, [entry])

    (shown,) = usable.entries
    assert not hides_something(dict(shown))
    assert usable.originals == (entry,)


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
def test_f13_12_hidden_in_items_rejects_them_if_it_is_data(text: str) -> None:
    prompt = {"name": "p", "arguments": [{"name": "a"}, {"name": text}]}
    template = {"name": "t", "uriTemplate": f"x:{text}/{{a}}"}

    found = [*valid_resources("prompts", [prompt]).rejected, *valid_resources("templates", [template]).rejected]

    assert [one.reason_code for one in found] == [ReasonCode.HIDDEN_DATA] * 2
    assert not hides_something([[one.name, one.reason] for one in found])


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_honest_items_pass_as_they_are(text: str) -> None:
    prompt = {"name": "p", "title": text, "description": text, "arguments": [{"name": text, "description": text}]}

    assert valid_resources("prompts", [prompt]).entries == (prompt,)


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


_DESCRIPTIONS = [
    *HIDING.values(),
    *HONEST,
    "two\nlines\tand \\ \\u202e as text",
    "a line end\r\nof another system",
    "\x7f",
]
_SCHEMAS: list[dict[str, Any]] = [
    *(_nested(levels) for levels in (1, 30, 63, 64, 65, 130)),
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"enum": ["\u202e"]}}},
    {"type": "object", "properties": {"a\u200b": {"type": "string", "description": "\x1b[8m"}}},
    {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(11_000)}},
    {"type": "object", "description": "x" * entry_validation.MAX_SCHEMA_BYTES},
    {"type": "array"},
]


def test_a_definition_that_is_passed_by_one_look_fares_as_by_a_look_at_each_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schemas = [{"type": "object"}, *_SCHEMAS]
    listed: list[dict[str, Any]] = [
        *({"name": f"d{at}", "description": text, "inputSchema": schemas[0]} for at, text in enumerate(_DESCRIPTIONS)),
        *({"name": f"i{at}", "inputSchema": schema} for at, schema in enumerate(schemas)),
        *({"name": f"o{at}", "inputSchema": {}, "outputSchema": schema} for at, schema in enumerate(schemas)),
        *({"name": f"m{at}", "inputSchema": {}, "_meta": {"x": text}} for at, text in enumerate(_DESCRIPTIONS)),
        *({"name": text, "inputSchema": {}} for text in _DESCRIPTIONS),
    ]
    by_one_look = valid_entries(listed)

    def never(given: dict[str, Any]) -> bool:
        return False

    monkeypatch.setattr(entry_validation, "_is_simple", never)

    assert by_one_look == valid_entries(listed)
