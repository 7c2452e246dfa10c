"""Editing JSON as people write it: what is not concerned keeps its bytes, and the meaning is what was meant. CFG-2."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.settings.json_text import NotJson, edited_json, read_json

WITH_COMMENTS = """\
// settings of mine
{
    "theme": "dark", // not light
    /* servers */
    "servers": {
        // the first
        "a": { "command": "x" }, // behind a
        // the second
        "b": { "url": "https://h/mcp" },
        "c": { "command": "y//z", },
    },
}
"""


def edited(text: str, *remove: str, root: str = "servers", **add: Any) -> str:
    return edited_json(text, [root], remove=remove, add=add, with_comments=True)


def test_a_member_is_added_behind_the_others_and_nothing_else_moves() -> None:
    last = '        "c": { "command": "y//z", },\n'
    goat = '        "goat": {\n            "command": "goat-mcp",\n            "args": ["serve"]\n        },\n'

    added = edited(WITH_COMMENTS, goat={"command": "goat-mcp", "args": ["serve"]})

    assert added == WITH_COMMENTS.replace(last, last + goat)


def test_a_member_goes_with_its_comments_and_those_of_others_stay() -> None:
    without_b = WITH_COMMENTS.replace('\n        // the second\n        "b": { "url": "https://h/mcp" },', "")

    assert edited(WITH_COMMENTS, "b") == without_b


def test_the_last_members_go_with_the_comma_before_them() -> None:
    assert edited('{"servers": {"a": 1, "b": 2, "c": 3}}', "b", "c") == '{"servers": {"a": 1}}'


def test_all_members_change_places_with_another() -> None:
    assert edited(WITH_COMMENTS, "a", "b", "c", goat={"command": "g"}) == (
        '// settings of mine\n{\n    "theme": "dark", // not light\n    /* servers */\n    "servers": {\n'
        '        "goat": {\n            "command": "g"\n        }\n    },\n}\n'
    )


def test_objects_on_the_way_are_made() -> None:
    assert edited("", goat={}) == '{\n  "servers": {\n    "goat": {}\n  }\n}\n'
    assert edited('{"a": 1}', goat={}) == '{"a": 1, "servers": {"goat": {}}}'
    assert edited('{\r\n\t"a": 1\r\n}', x="y") == '{\r\n\t"a": 1,\r\n\t"servers": {\r\n\t\t"x": "y"\r\n\t}\r\n}'


def test_a_comment_ends_where_it_ends_though_another_one_ends_the_line() -> None:
    text = '{"servers": {\n  "a": 1 /* x */} /* y */\n}'

    assert edited(text, goat=2) == '{"servers": {\n  "a": 1,\n  "goat": 2 /* x */} /* y */\n}'
    assert edited(text, "a") == '{"servers": {} /* y */\n}'


def test_two_that_go_side_by_side_take_the_blank_between_them_once() -> None:
    text = '{"servers": {"a": 1, // about b\n"b": 2, "c": 3}}'

    assert edited(text, "b", "c") == '{"servers": {"a": 1 // about b\n}}'


@pytest.mark.parametrize(
    ("text", "place"), [("// mine\n{}", "line 1, column 1"), ('{\n  "a": 1,\n}', "line 3, column 1")]
)
def test_where_comments_are_not_allowed_that_is_said(text: str, place: str) -> None:
    with pytest.raises(NotJson, match=f"^{place}: JSON has no comments and no comma behind the last item$"):
        read_json(text, with_comments=False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "is not an object"),
        ('{"a": 1', "line 1, column"),
        ('{"a": 1, "a": 2}', "holds 'a' twice"),
        ('{"a": tru}', "line 1, column 7"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(NotJson, match=told):
        edited(text)


def test_where_a_host_reads_strict_json_comments_are_an_error() -> None:
    with pytest.raises(NotJson, match="line 1, column 1"):
        read_json(WITH_COMMENTS, with_comments=False)


_KEYS = st.text('ab/*,"\\ {}é\n', min_size=1, max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('x/*,"\\ {}[]:', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_BLANKS = st.sampled_from(["", " ", "\n  ", "\r\n\t", " // c, }\n", '/* " } */', "\n// x\n"])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """JSON for `value` with blanks and comments wherever they may stand."""
    if isinstance(value, dict):
        parts = [
            draw(_BLANKS) + json.dumps(key) + draw(_BLANKS) + ":" + draw(_BLANKS) + draw(written(child)) + draw(_BLANKS)
            for key, child in cast("dict[str, Any]", value).items()
        ]
        return "{" + ",".join(parts) + draw(st.sampled_from(["", ","]) if parts else st.just("")) + draw(_BLANKS) + "}"
    if isinstance(value, list):
        return (
            "["
            + ",".join(draw(_BLANKS) + draw(written(item)) for item in cast("list[Any]", value))
            + draw(_BLANKS)
            + "]"
        )
    return json.dumps(value)


@settings(deadline=None)
@given(st.data())
def test_any_edit_means_what_was_meant(data: st.DataObject) -> None:
    servers = data.draw(st.dictionaries(_KEYS, _VALUES, max_size=4))
    others = data.draw(st.dictionaries(st.sampled_from(["x", "y", "z"]), _VALUES))
    tree = {**others, "servers": servers}
    text = data.draw(written(tree))
    remove = data.draw(st.lists(st.sampled_from(sorted(servers)), unique=True) if servers else st.just([]))
    add = data.draw(st.dictionaries(st.sampled_from(["goat", "new", *remove]), _VALUES))

    after = edited_json(text, ["servers"], remove=remove, add=add, with_comments=True)

    assert read_json(text, with_comments=True) == tree
    kept = {key: value for key, value in servers.items() if key not in remove}
    assert read_json(after, with_comments=True) == {**others, "servers": {**kept, **add}}


@settings(deadline=None)
@given(st.data())
def test_what_does_not_concern_the_servers_keeps_its_bytes(data: st.DataObject) -> None:
    servers = data.draw(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=3))
    head = data.draw(_BLANKS) + "{" + data.draw(_BLANKS) + '"a": ' + data.draw(_VALUES.flatmap(written)) + ","
    inner, tail = data.draw(written(servers)), data.draw(_BLANKS) + ', "z": 1' + data.draw(_BLANKS) + "}"
    lead = f'{head}"servers": '

    after = edited_json(lead + inner + tail, ["servers"], remove=[*servers][:1], add={"goat": 1}, with_comments=True)

    assert after.startswith(lead) and after.endswith(tail)


COMMENTED = """\
{
  "mcpServers": {
    // about all servers

    // a is old
    "a": {"command": "a"}, // behind a
    // b is good
    "b": {
      // inside b
      "command": "b" // behind command
    }, // behind b
    /* c */
    "c": {"command": "c"} // behind c
    // "off": {"command": "commented out"}
  }
}
"""
OF_A = ["// a is old", '"a": {"command": "a"}, // behind a']
OF_B = ["// b is good", '"b": {', "// inside b", '"command": "b" // behind command', "}, // behind b"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("gone", "kept"), [(["a", "c"], OF_B), (["b", "c"], OF_A), (["c"], [*OF_A, *OF_B])])
def test_comments_of_members_that_stay_are_kept_in_their_places(gone: list[str], kept: list[str], newline: str) -> None:
    text = COMMENTED.replace("\n", newline)

    edited = edited_json(text, ["mcpServers"], remove=gone, add={"goat": {"command": "g"}}, with_comments=True)

    assert [line.strip() for line in edited.split(newline)] == [
        *("{", '"mcpServers": {', "// about all servers", "", *kept),
        *('"goat": {', '"command": "g"', "}", '// "off": {"command": "commented out"}', "}", "}", ""),
    ]


def test_a_member_that_is_replaced_keeps_its_place_and_the_comments_around_it() -> None:
    edited = edited_json(
        COMMENTED, ["mcpServers"], remove=["a", "b"], add={"a": {"command": "new"}}, with_comments=True
    )

    assert [line.strip() for line in edited.split("\n")] == [
        *("{", '"mcpServers": {', "// about all servers", "", "// a is old"),
        *('"a": {', '"command": "new"', "}, // behind a", "/* c */", '"c": {"command": "c"} // behind c'),
        *('// "off": {"command": "commented out"}', "}", "}", ""),
    ]


def test_the_comment_behind_a_last_member_with_a_comma_goes_with_it() -> None:
    text = '{\n  "s": {\n    "a": 1, // a\n    "b": 2, // b\n  }\n}\n'

    edited = edited_json(text, ["s"], remove=["b"], add={"goat": 3}, with_comments=True)

    assert edited == '{\n  "s": {\n    "a": 1, // a\n    "goat": 3\n  }\n}\n'
