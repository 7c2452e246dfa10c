"""What a change of one cell does to a notebook, and what it leaves alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.editing.notebook_cells import CellType, Notebook
from tests.repetitions import examples

Json = Any


def replaced_text(text: str, index: int, source: str, cell_type: CellType | None = None) -> str:
    changed = Notebook(text, "n.ipynb")
    changed.replace(index, source, cell_type)
    return changed.text(utf=True)


def inserted_text(text: str, behind: int | None, source: str, cell_type: CellType = "code") -> str:
    changed = Notebook(text, "n.ipynb")
    changed.insert(behind, source, cell_type)
    return changed.text(utf=True)


def deleted_text(text: str, index: int) -> str:
    changed = Notebook(text, "n.ipynb")
    changed.delete(index)
    return changed.text(utf=True)


def cell(cell_type: str, source: Json, **more: Json) -> dict[str, Json]:
    outputs: dict[str, Json] = {"execution_count": None, "outputs": []} if cell_type == "code" else {}
    return {"cell_type": cell_type, **outputs, "metadata": {}, "source": source, **more}


def notebook(*cells: Json, minor: int = 5) -> dict[str, Json]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


# Any notebook, written down in any way


@dataclass
class Scribe:
    """Writes JSON with the blanks and escapes that chance wants."""

    draw: Any
    blanks: str

    def write(self, value: Json) -> str:
        if isinstance(value, dict):
            pairs = cast("dict[str, Json]", value).items()
            members = [f"{self.gap()}{self.text(key)}{self.gap()}:{self.gap()}{self.write(it)}" for key, it in pairs]
            return f"{{{','.join(member + self.gap() for member in members) or self.gap()}}}"
        if isinstance(value, list):
            items = [self.gap() + self.write(item) + self.gap() for item in cast("list[Json]", value)]
            return f"[{','.join(items) or self.gap()}]"
        return self.text(value) if isinstance(value, str) else json.dumps(value)

    def text(self, value: str) -> str:
        return json.dumps(value, ensure_ascii=self.draw(st.booleans()))

    def gap(self) -> str:
        return self.draw(st.text(self.blanks, max_size=3)) if self.blanks else ""


texts = st.text('ab \n\r\t"\\\u00e9\u2028\U0001f600{}[],:', max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
sources = texts | st.lists(texts, max_size=3)


@st.composite
def cells(draw: Any) -> dict[str, Json]:
    kind = draw(st.sampled_from(["code", "markdown", "raw"]))
    fields: dict[str, Json] = {"cell_type": kind, "metadata": draw(st.dictionaries(texts, values, max_size=2))}
    fields["source"] = draw(sources)
    if kind == "code":
        fields["execution_count"] = draw(st.none() | st.integers(0, 99))
        fields["outputs"] = draw(st.lists(values, max_size=2))
    elif draw(st.booleans()):
        fields["attachments"] = draw(st.dictionaries(texts, values, max_size=1))
    if draw(st.booleans()):
        fields["id"] = draw(st.text("abc-_1", min_size=1, max_size=6))
    return {key: fields[key] for key in draw(st.permutations(list(fields)))}


@st.composite
def notebooks(draw: Any, min_cells: int = 0) -> tuple[dict[str, Json], str]:
    """A notebook and its text."""
    fields = {
        "cells": draw(st.lists(cells(), min_size=min_cells, max_size=4)),
        "metadata": draw(st.dictionaries(texts, values, max_size=2)),
        "nbformat": 4,
        "nbformat_minor": draw(st.sampled_from([0, 4, 5])),
    }
    tree = {key: fields[key] for key in draw(st.permutations(list(fields)))}
    style = draw(st.sampled_from(["1", "2", "tab", "line", "compact", "any"]))
    if style == "any":
        scribe = Scribe(draw, draw(st.sampled_from(["", " ", " \n", "\r\n\t "])))
        return tree, scribe.gap() + scribe.write(tree) + scribe.gap()
    indent = {"1": 1, "2": 2, "tab": "\t"}.get(style)
    separators = (",", ":") if style == "compact" else None
    text = json.dumps(tree, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return tree, (text + draw(st.sampled_from(["", "\n"]))).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def joined(source: Json) -> str:
    return source if isinstance(source, str) else "".join(source)


@settings(deadline=None, max_examples=examples(150))
@given(data=st.data(), made=notebooks(min_cells=1), source=texts, cell_type=st.sampled_from(["code", "markdown", None]))
def test_replacing_changes_only_what_it_must_of_one_cell(
    data: Any, made: tuple[dict[str, Json], str], source: str, cell_type: CellType | None
) -> None:
    tree, text = made
    index: int = data.draw(st.integers(0, len(tree["cells"]) - 1))
    old = tree["cells"][index]

    result = json.loads(replaced_text(text, index, source, cell_type))

    new = result["cells"][index]
    kind = cell_type or old["cell_type"]
    expected = {**old, "cell_type": kind, "source": new["source"]}
    if kind == "code":
        expected |= {"execution_count": None, "outputs": []}
    if kind != old["cell_type"]:
        for gone in ("attachments",) if kind == "code" else ("execution_count", "outputs"):
            expected.pop(gone, None)
    assert new == expected
    assert (joined(new["source"]), type(new["source"])) == (source, type(old["source"]))
    result["cells"][index] = old
    assert result == tree


@settings(deadline=None, max_examples=examples(150))
@given(data=st.data(), made=notebooks(), source=texts, cell_type=st.sampled_from(["code", "markdown"]))
def test_inserting_only_adds_a_cell(
    data: Any, made: tuple[dict[str, Json], str], source: str, cell_type: CellType
) -> None:
    tree, text = made
    behind = data.draw(st.none() | st.integers(0, len(tree["cells"]) - 1) if tree["cells"] else st.none())
    changed = Notebook(text, "n")

    change = changed.insert(behind, source, cell_type)

    result = json.loads(changed.text(utf=True))
    new = result["cells"].pop(0 if behind is None else behind + 1)
    assert result == tree
    new_id = {"id": change.cell_id} if tree["nbformat_minor"] >= 5 else {}
    assert new == {**cell(cell_type, new["source"]), **new_id}
    assert joined(new["source"]) == source
    if tree["nbformat_minor"] >= 5:
        assert new["id"] not in [other.get("id") for other in tree["cells"]]


@settings(deadline=None, max_examples=examples(100))
@given(data=st.data(), made=notebooks(min_cells=1))
def test_deleting_only_takes_away_a_cell(data: Any, made: tuple[dict[str, Json], str]) -> None:
    tree, text = made
    index: int = data.draw(st.integers(0, len(tree["cells"]) - 1))

    result = deleted_text(text, index)

    del tree["cells"][index]
    assert json.loads(result) == tree


@settings(deadline=None, max_examples=examples(100))
@given(
    indent=st.sampled_from([1, 2, 4, "\t", None]),
    source=texts,
    cell_type=st.sampled_from(["code", "markdown"]),
    behind=st.sampled_from([None, 0, 1, 2]),
    total=st.sampled_from([1, 2, 3]),
)
def test_a_notebook_as_jupyter_writes_it_stays_as_jupyter_would_write_it(
    indent: Any, source: str, cell_type: CellType, behind: int | None, total: int
) -> None:
    """Parsing and dumping the result again gives the very same text."""
    every = [cell("markdown", ["# a\n", "b"], id="a"), cell("code", ["x"], id="b"), cell("raw", ["y"], id="c")]
    whole = notebook(*every[:total])
    behind = None if behind is None else min(behind, total - 1)

    def dumped(tree: Json) -> str:
        return json.dumps(tree, indent=indent, ensure_ascii=False, sort_keys=True) + "\n"

    text = dumped(whole)
    for result in (
        inserted_text(text, behind, source, cell_type),
        replaced_text(text, 0 if behind is None else behind, source, cell_type),
        deleted_text(text, 0 if behind is None else behind),
    ):
        assert result == dumped(json.loads(result))
        nbformat.validate(json.loads(result))


# Single points of the layout


PRETTY = json.dumps(notebook(cell("code", ["a\n", "b"], id="a")), indent=1) + "\n"


def test_the_first_cell_of_an_empty_notebook_is_indented_as_the_notebook_is() -> None:
    text = '{\r\n  "cells": [],\r\n  "nbformat": 4,\r\n  "nbformat_minor": 4\r\n}\r\n'

    result = inserted_text(text, None, "a\nb", "markdown")

    assert result == (
        '{\r\n  "cells": [\r\n    {\r\n      "cell_type": "markdown",\r\n      "metadata": {},\r\n'
        '      "source": [\r\n        "a\\n",\r\n        "b"\r\n      ]\r\n    }\r\n  ],\r\n'
        '  "nbformat": 4,\r\n  "nbformat_minor": 4\r\n}\r\n'
    )


def test_a_notebook_on_one_line_stays_on_one_line() -> None:
    text = '{"nbformat":4,"nbformat_minor":4,"cells":[{"cell_type":"markdown","metadata":{},"source":"a"}]}'

    result = inserted_text(text, 0, "b\nc", "code")

    assert result == (
        '{"nbformat":4,"nbformat_minor":4,"cells":[{"cell_type":"markdown","metadata":{},"source":"a"},'
        '{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":"b\\nc"}]}'
    )


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param("\\u00e9", "\\u00fc", id="escaped"),
        pytest.param("\u00e9", "\u00fc", id="as they are"),
        pytest.param("\u00e9\\u00e9", "\u00fc", id="some so, some so"),
        pytest.param("e", "\u00fc", id="none there yet"),
        pytest.param("\\\\u00e9", "\u00fc", id="a backslash and the letter u"),
        pytest.param("\\u001b", "\u00fc", id="control characters must be escaped anyway"),
    ],
)
def test_characters_beyond_ascii_are_escaped_where_the_notebook_escapes_them(known: str, expected: str) -> None:
    text = PRETTY.replace('"b"', f'"{known}"')

    assert f'"{expected}"' in replaced_text(text, 0, "\u00fc")


def test_a_number_that_is_none_stays_and_one_that_would_become_none_is_refused() -> None:
    text = '{"cells": [{"cell_type": "raw", "source": "a"}], "x": %s, "nbformat": 4, "nbformat_minor": 4} '

    assert replaced_text(text % "NaN", 0, "b") == (text % "NaN").replace('"a"', '"b"')
    for number in ("1E400", "9" * 5000):
        with pytest.raises(ToolError) as refused:
            replaced_text(text % number, 0, "b")
        assert refused.value.code is ErrorCode.NOTEBOOK


def test_half_of_a_character_pair_stays_an_escape() -> None:
    text = '{"cells": [{"cell_type": "raw", "source": "a"}], "x": "\\ud800", "y": "\u00e9", "nbformat": 4}'

    result = json.loads(replaced_text(text, 0, "b"))

    assert result == {**json.loads(text), "cells": [{"cell_type": "raw", "source": "b"}]}


def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    text = '{"cells": [], "cells": [{"source": "a", "source": "b", "cell_type": "raw"}], "nbformat": 4}'

    assert json.loads(replaced_text(text, 0, "c"))["cells"] == [{"source": "c", "cell_type": "raw"}]


def test_a_source_of_the_same_text_keeps_its_lines_as_they_are() -> None:
    text = PRETTY.replace('"a\\n",', '"", "a", "\\n",')

    assert json.loads(replaced_text(text, 0, "a\nb")) == json.loads(text)


def test_code_that_becomes_markdown_and_code_again_has_the_keys_of_its_type() -> None:
    text = json.dumps(notebook(dict(sorted(cell("code", ["a"], id="a").items()))))
    markdown = replaced_text(text, 0, "x", "markdown")
    code = replaced_text(markdown, 0, "x", "code")

    assert list(json.loads(markdown)["cells"][0]) == ["cell_type", "id", "metadata", "source"]
    # sorted, as nbformat sorts them
    assert list(json.loads(code)["cells"][0]) == [
        "cell_type", "execution_count", "id", "metadata", "outputs", "source",
    ]  # fmt: skip


def test_a_new_id_is_none_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["b", "a", "b", "new"])
    monkeypatch.setattr("nbformat.v4.nbbase.random_cell_id", lambda: next(ids))
    text = json.dumps(notebook(cell("code", "", id="a"), cell("code", "", id="b")))

    assert json.loads(inserted_text(text, None, "x"))["cells"][0]["id"] == "new"


def test_an_id_as_it_is_goes_before_one_that_only_looks_so() -> None:
    cells = Notebook(json.dumps(notebook(cell("raw", "", id="a&b"), cell("raw", "", id="a&amp;b"))), "n.ipynb")

    assert [cells.find(cell_id).index for cell_id in ("a&b", "a&amp;b")] == [0, 1]


def test_a_cell_that_cannot_be_of_the_other_type_is_refused() -> None:
    text = json.dumps(notebook(cell("raw", "x", metadata={"collapsed": "yes"}, id="a")))

    with pytest.raises(ToolError) as refused:
        replaced_text(text, 0, "x", "code")

    assert refused.value.code is ErrorCode.CELL
    assert "cannot become a code cell of a valid notebook" in refused.value.message
    assert "'yes' is not of type 'boolean'" in refused.value.message
