"""Editing YAML as people write it: what is not concerned keeps its bytes, and the meaning is what was meant. CFG-2."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any, cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.settings.yaml_spans import MAX_CHARS
from goat_mcp.settings.yaml_text import REMOVED, edited_list, edited_yaml, read_yaml

TEXT = """\
# settings of mine
theme: 'dark'  # not light

extensions:   # all of them
  # the first
  a:
    cmd: x  # behind cmd
    args:
    - one
    - "two"
    # - three
  # the second
  b: {uri: "https://h/mcp", timeout: 300}

# rules
allow:
- Read
# and what is denied
deny: []
"""
GOAT: dict[str, Any] = {"cmd": "goat-mcp", "args": ["serve", "--x"], "envs": {}, "enabled": True}


def test_a_key_comes_behind_the_others_of_its_mapping_and_before_the_next_ones_comment() -> None:
    last = '  b: {uri: "https://h/mcp", timeout: 300}\n'
    goat = '  goat:\n    cmd: goat-mcp\n    args:\n    - serve\n    - "--x"\n    envs: {}\n    enabled: true\n'

    assert edited_yaml(TEXT, ["extensions", "goat"], GOAT) == TEXT.replace(last, last + goat)


def test_a_key_goes_with_its_comments_and_those_of_others_stay() -> None:
    of_a = TEXT[TEXT.index("  # the first") : TEXT.index("  # the second")]

    assert edited_yaml(TEXT, ["extensions", "a"], REMOVED) == TEXT.replace(of_a, "")


def test_the_last_key_leaves_an_empty_mapping_that_takes_new_ones() -> None:
    without = edited_yaml(edited_yaml(TEXT, ["extensions", "b"], REMOVED), ["extensions", "a"], REMOVED)

    assert "\nextensions: {}   # all of them\n\n# rules\n" in without
    assert "\nextensions:   # all of them\n  goat:\n" in edited_yaml(without, ["extensions", "goat"], {"cmd": "g"})


def test_a_value_is_replaced_and_the_comment_behind_it_stays() -> None:
    edited = edited_yaml(TEXT, ["theme"], "off")

    assert edited == TEXT.replace("theme: 'dark'  #", 'theme: "off"  #')
    assert edited_yaml(edited, ["theme"], {"name": "dark"}) == TEXT.replace(
        "theme: 'dark'  # not light\n", "theme:  # not light\n  name: dark\n"
    )
    assert edited_yaml(TEXT, ["extensions", "b", "timeout"], 5) == TEXT.replace("300", "5")


@pytest.mark.parametrize("text", ["", "\n", "# mine\n", "# mine", "{}\n", "---\n", "extensions:\n", "extensions: {}"])
def test_mappings_on_the_way_are_made_in_a_text_that_has_none(text: str) -> None:
    edited = edited_yaml(text, ["extensions", "goat", "args"], ["serve"])

    assert yaml.safe_load(edited) == {"extensions": {"goat": {"args": ["serve"]}}}
    assert edited.startswith(text.strip("{}\n").strip())
    assert "goat:\n    args:\n      - serve" in edited


def test_items_come_and_go_and_the_comments_between_stay() -> None:
    text = (
        "permissions:\n  allow:\n    # files\n    - Read  # all\n    # git\n    - 'Bash(git *)'\n\n  deny: [WebFetch]\n"
    )

    added = edited_list(text, ["permissions", "allow"], add=["Grep", "Read", "Grep"])
    removed = edited_list(text, ["permissions", "allow"], remove=["Read", "Write"])

    assert added == text.replace("'Bash(git *)'\n", "'Bash(git *)'\n    - Grep\n")
    assert removed == text.replace("    # files\n    - Read  # all\n", "")
    assert edited_list(text, ["permissions", "deny"], add=["Bash(rm *)"]) == text.replace(
        "[WebFetch]", '[WebFetch, "Bash(rm *)"]'
    )
    assert edited_list(text, ["permissions", "ask"], add=["Edit"]) == text + "  ask:\n    - Edit\n"


def test_a_list_that_loses_all_is_an_empty_one_and_takes_new_ones() -> None:
    assert edited_list(TEXT, ["allow"], remove=["Read"]) == TEXT.replace("allow:\n- Read\n", "allow: []\n")
    assert edited_list(TEXT, ["deny"], add=["Read"]) == TEXT.replace("deny: []\n", "deny:\n- Read\n")
    assert edited_list(TEXT, ["allow"], remove=["Read"], add=["Edit"]) == TEXT.replace("- Read", "- Edit")
    assert edited_list("a: [1, 2, 3, 4]\n", ["a"], remove=[1, 2, 4]) == "a: [3]\n"


def test_what_changes_nothing_returns_the_same_text() -> None:
    assert edited_list(TEXT, ["allow"], add=["Read"], remove=["Edit"]) == TEXT
    assert edited_yaml(TEXT, ["nothing", "here"], REMOVED) == TEXT


@pytest.mark.parametrize(
    "word",
    ["yes", "No", "on", "null", "~", "1", "1e3", "0o17", "1:30", "", " x", "a: b", "a #b", "#", "- x", "{x}", "*",
     "é\n", "\x85", "\u2028", "\ufeff", "😀", "2026-01-01", "=", "<<", "Bash(git log:*)", "a:", "@x", "%x", '"', "'",
     "\\"],
)  # fmt: skip
def test_a_text_stays_the_text_it_is_as_value_key_and_item(word: str) -> None:
    edited = edited_yaml(edited_yaml("", ["value"], word), ["list"], [word, {"key": [word]}])
    if word:
        edited = edited_yaml(edited, ["keys", word], {word: word})
        assert read_yaml(edited)["keys"] == {word: {word: word}}

    assert yaml.safe_load(edited)["value"] == word
    assert yaml.safe_load(edited)["list"] == [word, {"key": [word]}]


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("a: [", ["b"], "line 1, column 5: it is not valid YAML"),
        ("a: 1\nb: 2\na: 3\n", ["c"], "line 3, column 1: it is not valid YAML: the key 'a' stands here twice"),
        ("a:\n  b: text\n", ["a", "b", "c"], "line 2, column 6: a.b is not a mapping"),
        ("- a\n", ["a"], "it is not a mapping"),
        ("x: &x {a: 1}\nb: *x\n", ["b", "c"], "line 2, column 4: an anchor, an alias or a tag"),
        ("x: &x {a: 1}\nb: *x\n", ["x", "c"], "line 1, column 4: an anchor, an alias or a tag"),
        ("a: !mine {}\n", ["a", "b"], "not valid YAML: could not determine a constructor"),
        ("? a\n: 1\n", ["a"], "line 1, column 3: a key that is written with `?` stands here"),
        ("a: 1\n---\nb: 2\n", ["a"], "expected a single document in the stream, but found another document"),
        (f"# {'x' * MAX_CHARS}", ["b"], "it is longer than 1048576 characters"),
        ("a: " + "[" * 1_200, ["b"], "it is not valid YAML"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_or_edited_is_refused_with_the_position(text: str, path: list[str], said: str) -> None:
    with pytest.raises(ToolError) as raised:
        edited_yaml(text, path, {"d": 2})

    assert raised.value.code is ErrorCode.CONFIG
    assert said in str(raised.value)


def test_aliases_that_stand_for_more_than_there_is_memory_for_are_refused() -> None:
    rows = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))

    with pytest.raises(ToolError, match="more than 100000 values"):
        edited_yaml(f"a0: &a0 [x]\n{rows}\n", ["b"], 1)


def test_aliases_elsewhere_stay_as_they_are() -> None:
    text = "x: &x {a: 1}\nb: *x\nlist:\n  - *x  # one\n"

    assert edited_yaml(text, ["c"], 1) == text + "c: 1\n"
    assert edited_list(text, ["list"], add=[2]) == text + "  - 2\n"
    with pytest.raises(ToolError, match="line 1, column 4: an anchor"):
        edited_yaml(text, ["x"], REMOVED)
    with pytest.raises(ToolError, match="cannot be edited without changing the rest"):
        edited_yaml("x: {a: &x 1}\nb: *x\n", ["x"], REMOVED)


def test_merged_mappings_elsewhere_stay_as_they_are() -> None:
    text = "base: &base {a: 1}\nmodels:\n  - <<: *base\n    b: 2\n"

    assert edited_list(text, ["servers"], add=["x"]) == text + "servers:\n  - x\n"
    assert edited_yaml(text, ["models"], REMOVED) == "base: &base {a: 1}\n"
    with pytest.raises(ToolError, match="an anchor, an alias or a tag"):
        edited_yaml("base: &base {a: 1}\nx:\n  <<: *base\n", ["x", "<<", "b"], 2)


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(ToolError, match=r"extensions[.]a is not a list"):
        edited_list(TEXT, ["extensions", "a"], add=["x"])
    with pytest.raises(ToolError, match="theme is not a mapping"):
        edited_list(TEXT, ["theme", "a"], add=["x"])


NAMES = st.sampled_from(["a", "b", "on", "1", "long name", "x-y", "é", "k:v"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.text("ab #:-'\"{é\n", max_size=6), st.just("Bash(git *)")
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(NAMES, TREES, min_size=1, max_size=4)


class Writer:
    """Writes a tree as somebody might: indents, comments, quotes, brackets and blank lines as chance has it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.unit = chance.choice([1, 2, 4])
        self.dash = chance.choice([0, 2, self.unit])
        self.comments = 0

    def comment(self) -> str:
        self.comments += 1
        return f"# comment {self.comments}: it's {{}}"

    def above(self, indent: int) -> list[str]:
        blank = [""] if self.chance.random() < 0.2 else []
        return [*blank, " " * indent + self.comment()] if self.chance.random() < 0.3 else blank

    def behind(self) -> str:
        return f"  {self.comment()}" if self.chance.random() < 0.3 else ""

    def inline(self, value: Any) -> str:
        if "\\n" in json.dumps(value):
            return json.dumps(value)
        style = self.chance.choice([None, '"', "'"]) if isinstance(value, str) else None
        flow = yaml.safe_dump(value, default_flow_style=True, default_style=style, width=10_000, allow_unicode=True)
        return flow.removesuffix("...\n").removesuffix("\n")

    def lines(self, value: Any, indent: int) -> list[str]:
        found: list[str] = []
        pairs: Any = (
            cast("dict[str, Any]", value).items() if isinstance(value, dict) else [(None, item) for item in value]
        )
        for key, child in pairs:
            head = " " * indent + ("-" if key is None else f"{self.inline(key)}:")
            found += self.above(indent)
            if isinstance(child, dict | list) and child and self.chance.random() < 0.8:
                further = self.dash if isinstance(child, list) and key is not None else self.unit
                found += [head + self.behind(), *self.lines(child, indent + further)]
            elif isinstance(child, str) and child.endswith("a\n") and not child.startswith((" ", "\n")):
                found += [f"{head} |", *(" " * (indent + 3) + line for line in child.splitlines())]
            elif child is None and self.chance.random() < 0.5:
                found.append(head + self.behind())
            else:
                found.append(f"{head} {self.inline(child)}{self.behind()}")
        return found

    def text(self, tree: Mapping[str, Any]) -> str:
        newline = self.chance.choice(["\n", "\n", "\r\n"])
        end = self.chance.choice([newline, newline, ""])
        lines = [*self.above(0), *self.lines(tree, 0)]
        return newline.join(lines) + (newline if any(line.endswith("|") for line in lines) else end)


def written(tree: Mapping[str, Any], seed: int) -> str:
    text = Writer(random.Random(seed)).text(tree)
    assert yaml.safe_load(text) == yaml.safe_load(yaml.safe_dump(tree)), text
    return text


@settings(max_examples=80, deadline=None)
@given(tree=MAPPINGS, value=TREES, seed=st.integers(0, 10_000), data=st.data())
def test_a_new_key_changes_no_line_and_taken_out_again_leaves_the_bytes(
    tree: dict[str, Any], value: Any, seed: int, data: st.DataObject
) -> None:
    text = written(tree, seed)
    inside = [[name] for name, child in tree.items() if isinstance(child, dict) and child]
    path = [*data.draw(st.sampled_from([[], *inside])), "new"]

    edited = edited_yaml(text, path, value)

    meant = yaml.safe_load(yaml.safe_dump(tree))
    (meant if len(path) == 1 else meant[path[0]])["new"] = value
    assert yaml.safe_load(edited) == meant
    if "{" not in edited.replace(text, "") or len(path) == 1:
        rest = iter(edited.splitlines())
        assert all(line in rest for line in text.splitlines() if "{" not in line)
    assert edited_yaml(edited, path, REMOVED) == text


@settings(max_examples=80, deadline=None)
@given(tree=MAPPINGS, value=TREES, seed=st.integers(0, 10_000), data=st.data())
def test_a_key_is_replaced_or_taken_out_and_the_other_keys_keep_their_lines(
    tree: dict[str, Any], value: Any, seed: int, data: st.DataObject
) -> None:
    text = written(tree, seed)
    name = data.draw(st.sampled_from(list(tree)))
    others = {key: child for key, child in read_yaml(text).items() if key != name}

    replaced, without = edited_yaml(text, [name], value), edited_yaml(text, [name], REMOVED)

    assert read_yaml(replaced) == {**others, name: read_yaml(edited_yaml("", ["x"], value))["x"]}
    assert list(read_yaml(replaced)) == list(read_yaml(text))
    assert read_yaml(without) == others
    rest = iter(text.splitlines())
    assert all(line in rest for line in without.splitlines())


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(SCALARS.filter(lambda item: item is not None), max_size=5, unique_by=repr),
    add=st.lists(st.text("xyz #", max_size=4), max_size=3),
    seed=st.integers(0, 10_000),
    data=st.data(),
)
def test_a_list_has_the_items_that_were_meant(items: list[Any], add: list[str], seed: int, data: st.DataObject) -> None:
    text = written({"a": {"list": items, "after": 1}, "b": 2}, seed)
    remove = data.draw(st.lists(st.sampled_from(items), max_size=3)) if items else []

    found = yaml.safe_load(edited_list(text, ["a", "list"], add=add, remove=remove))

    stays = [item for item in items if item not in remove]
    new = list(dict.fromkeys(item for item in add if item not in stays))
    assert found == {"a": {"list": [*stays, *new], "after": 1}, "b": 2}
