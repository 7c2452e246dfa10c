"""Whatever becomes of a good manifest, reading it ends in a document or in problems that can be acted on."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.manifests.folder import ManifestFolders
from goat_mcp.manifests.kinds import is_manifest, read_declared
from goat_mcp.manifests.yaml_document import BrokenManifest, ManifestProblem, read_documents
from tests.manifests.documents import GOOD, TOOL, put
from tests.repetitions import examples

SETTINGS = settings(
    deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | texts
    | st.sampled_from(["", "a", "./handlers.py"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
_LINE_ENDS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""As YAML counts lines."""


def places(tree: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a document."""
    found = [place]
    members: Any = (
        cast("dict[Any, Any]", tree).items()
        if isinstance(tree, dict)
        else enumerate(cast("list[Any]", tree))
        if isinstance(tree, list)
        else ()
    )
    for key, child in members:
        found += places(child, (*place, key))
    return found


@st.composite
def changed_trees(draw: st.DrawFn) -> Any:
    """A good document with some values replaced, removed, renamed or doubled."""
    tree: Any = yaml.safe_load(GOOD[draw(st.sampled_from(sorted(GOOD)))])
    for _ in range(draw(st.integers(1, 3))):
        below = [place for place in places(tree) if place]
        if not below:
            break
        *path, last = draw(st.sampled_from(below))
        around: Any = tree
        for step in path:
            around = around[step]
        is_mapping = not isinstance(around, list)
        match draw(st.sampled_from(["replace", "remove", "rename", "add"])):
            case "replace":
                around[last] = draw(VALUES)
            case "remove":
                del around[last]
            case "rename" if is_mapping:
                around[draw(texts)] = around.pop(last)
            case _:
                if is_mapping:
                    around[draw(texts)] = draw(VALUES)
                else:
                    around.append(copy.deepcopy(around[last]))
    return tree


def assert_usable(problem: ManifestProblem, file: Path, text: str) -> None:
    assert problem.file == file
    assert 1 <= problem.line <= max(1, len(_LINE_ENDS.split(text)))
    assert problem.what.strip() and problem.remedy.strip()
    assert "Traceback" not in problem.what
    assert len(problem.what) < 400


def read_all(file: Path, data: bytes) -> tuple[int, list[ManifestProblem]]:
    """How many documents can be used, and what is wrong. Anything but `BrokenManifest` is a bug."""
    good, problems = 0, list[ManifestProblem]()
    try:
        documents = read_documents(file, data)
    except BrokenManifest as broken:
        return 0, list(broken.problems)
    for document in filter(is_manifest, documents):
        try:
            _, odd = read_declared(document)
        except BrokenManifest as broken:
            assert broken.problems
            problems += broken.problems
        else:
            good += 1
            problems += odd
    return good, problems


@SETTINGS
@given(changed_trees())
def test_a_document_with_other_values_is_read_or_told_what_is_wrong(tmp_path: Path, tree: Any) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)
    file = put(tmp_path, text)

    good, problems = read_all(file, text.encode("utf-8", "surrogatepass"))

    assert (
        good or problems or not (isinstance(tree, dict) and {"apiVersion", "kind"} & tree.keys()) or "goondan" in text
    )
    for problem in problems:
        assert_usable(problem, file, text)


@SETTINGS
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_file_with_other_bytes_is_read_or_told_what_is_wrong(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    whole = bytearray(GOOD[kind].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 10)))
        whole[start:end] = data.draw(st.binary(max_size=6) | texts.map(str.encode))
    file = put(tmp_path, bytes(whole))

    _, problems = read_all(file, bytes(whole))

    for problem in problems:
        assert_usable(problem, file, whole.decode("utf-8", "replace"))


@settings(SETTINGS, max_examples=examples(50))  # each is several documents
@given(st.lists(st.none() | changed_trees(), min_size=1, max_size=6))
def test_every_good_document_of_a_directory_is_loaded_whatever_lies_beside_it(
    tmp_path_factory: pytest.TempPathFactory, trees: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("manifests")
    good: list[str] = []
    for index, tree in enumerate(trees):
        if tree is None:
            good.append(f"good{index}")
            text = TOOL.replace("name: weather", f"name: good{index}")
        else:
            text = yaml.safe_dump(tree, allow_unicode=True)
        put(folder / f"{index}", text)

    read = ManifestFolders([folder]).read()

    assert [name for tool in read.tools if (name := tool.name).startswith("good")] == good
    for problem in read.problems:
        assert_usable(problem, problem.file, problem.file.read_text())
