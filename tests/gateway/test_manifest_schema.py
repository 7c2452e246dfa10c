"""The JSON Schema for editors says what the reader of manifests says, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from goat_mcp.catalog.filter import ProfileOptions
from goat_mcp.cli.manifest_new import LANGUAGES, scaffold
from goat_mcp.gateway.build.manifests import shipped_folder
from goat_mcp.gateway.manifest_schema import manifest_schema
from goat_mcp.manifests.kinds import KINDS, is_manifest, read_declared
from goat_mcp.manifests.yaml_document import BrokenManifest, read_documents
from goat_mcp.upstreams.config.entry_parser import KNOWN_KEYS
from tests.manifests.documents import GOOD, TOOL, put
from tests.manifests.test_bad_manifests import BAD
from tests.manifests.test_mutated_manifests import changed_trees
from tests.repetitions import examples

SCHEMA = manifest_schema()
CHECKER: Any = Draft202012Validator(SCHEMA)
SEEN_BY_AN_EDITOR = (
    *("other-version", "no-kind", "empty-kind", "other-kind", "unknown-member", "no-metadata", "empty-spec", "no-name"),
    *("separator-in-name", "upstreams-name", "name-is-no-text", "no-entry", "two-entries", "no-url", "method"),
    *("no-exports", "empty-exports", "exports-are-no-list", "export-is-a-text", "no-description", "unknown-in-export"),
    *("side-effect", "risk", "unknown-hint", "hint-is-a-text", "timeout-too-long", "timeout-with-unit"),
    *("example-without-input", "toolset-of-ours", "toolset-of-a-text", "toolset-of-a-number", "no-version"),
    "toolset-of-another-package",
)


def refusals(tree: Any) -> list[str]:
    return [error.message for error in CHECKER.iter_errors(tree)]


def test_it_is_a_schema_and_what_is_shipped_is_up_to_date() -> None:
    Draft202012Validator.check_schema(SCHEMA)

    assert json.loads((shipped_folder() / "schema.json").read_text()) == SCHEMA


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_document_of_each_kind_is_accepted(kind: str) -> None:
    assert refusals(yaml.safe_load(GOOD[kind])) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_new_tool_begins_with_is_accepted(language: str) -> None:
    files = scaffold("weather", language, url="https://example.com")

    assert refusals(yaml.safe_load(files["tool.yaml"].text)) == []


@pytest.mark.parametrize("kind", SEEN_BY_AN_EDITOR)
def test_a_bad_document_is_refused_in_the_editor_too(kind: str) -> None:
    text, _ = BAD[kind]

    assert refusals(yaml.safe_load(text)) != []


def test_it_knows_the_members_that_the_readers_of_the_other_kinds_know() -> None:
    specs = {kind: SCHEMA["allOf"][index]["then"]["properties"]["spec"] for index, kind in enumerate(KINDS)}

    assert set(specs["Upstream"]["properties"]) == KNOWN_KEYS
    assert set(specs["Profile"]["properties"]) == set(ProfileOptions.model_fields)


@pytest.mark.parametrize("place", [(), ("metadata",), ("spec",), ("spec", "exports", 0)])
def test_a_member_that_the_reader_does_not_know_is_refused(tmp_path: Path, place: tuple[str | int, ...]) -> None:
    tree: Any = yaml.safe_load(TOOL)
    around = tree
    for step in place:
        around = around[step]
    around["surprise"] = 1

    (document,) = read_documents(put(tmp_path, yaml.safe_dump(tree)), yaml.safe_dump(tree).encode())
    with pytest.raises(BrokenManifest, match="surprise is unknown"):
        read_declared(document)
    assert any("surprise" in refusal for refusal in refusals(tree))


@settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changed_trees())
def test_what_the_reader_takes_the_schema_takes(tmp_path: Path, tree: Any) -> None:
    """Of tools and toolsets: upstreams and profiles are read more thoroughly elsewhere."""
    text = yaml.safe_dump(tree, allow_unicode=True)
    file = put(tmp_path, text)
    try:
        documents = [one for one in read_documents(file, text.encode("utf-8", "surrogatepass")) if is_manifest(one)]
        declared = [read_declared(one)[0] for one in documents]
    except BrokenManifest:
        return

    for document, one in zip(documents, declared, strict=True):
        kind = cast("dict[str, Any]", document.tree)["kind"]
        if one is not None and kind in ("Tool", "Toolset"):
            assert refusals(_without_nothing(document.tree)) == []


def _without_nothing(value: Any) -> Any:
    """A member without a value is as one that is not there, to the reader."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: _without_nothing(child) for key, child in members if child is not None}
    if isinstance(value, list):
        return [_without_nothing(child) for child in cast("list[Any]", value)]
    return value
