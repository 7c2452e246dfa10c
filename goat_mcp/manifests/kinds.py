"""From a YAML document to what its `kind` declares: a tool, an upstream, a toolset, a profile or an agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from goat_mcp.core.spec import Toolset
from goat_mcp.manifests.agent_document import AgentDocument, read_agent
from goat_mcp.manifests.fields import Fields
from goat_mcp.manifests.references import read_references
from goat_mcp.manifests.tool_document import ToolDocument, read_tool
from goat_mcp.manifests.yaml_document import BrokenManifest, ManifestProblem, YamlDocument

API_VERSIONS = ("goat-mcp/v1", "goondan.ai/v1")
KINDS = ("Tool", "Upstream", "Toolset", "Profile", "Agent")
ROOT_KEYS = ("apiVersion", "kind", "metadata", "spec")
METADATA_KEYS = ("name", "description", "labels", "annotations")
NAME_SHAPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_NAME_WANTED = "letters, digits, - and _"
_GOONDAN = "goondan.ai/v1"
_OF_ITS_RUNTIME: Mapping[str, str] = {
    "Model": "models are the settings `agent.*`",
    "Swarm": "agents start each other with the tool Agent",
    "Connector": "clients connect over MCP",
    "Connection": "clients connect over MCP",
    "Package": "goat-mcp reads the documents of a directory as they are",
}
"""Kinds of Goondan that have no effect here, and what does their work. An extension is code that would be missed."""


@dataclass(frozen=True)
class UpstreamDocument:
    """Another MCP server. `entry` is what an `mcpServers` object would hold of it."""

    name: str
    document: YamlDocument
    entry: Mapping[str, Any]


@dataclass(frozen=True)
class ToolsetDocument:
    """A name for some tools: each a selection as in `catalog.allow`, or a reference (see `references`)."""

    name: str
    document: YamlDocument
    tools: tuple[str, ...]


@dataclass(frozen=True)
class ProfileDocument:
    """What `profiles.NAME` of the settings would hold."""

    name: str
    document: YamlDocument
    options: Mapping[str, Any]


Declared = ToolDocument | UpstreamDocument | ToolsetDocument | ProfileDocument | AgentDocument


def is_manifest(document: YamlDocument) -> bool:
    """Whether it means to be one: other YAML may lie in the same directory."""
    tree = document.tree
    return isinstance(tree, dict) and bool({"apiVersion", "kind"} & cast("dict[str, Any]", tree).keys())


def read_declared(
    document: YamlDocument, *, ships_with_us: bool = False
) -> tuple[Declared | None, tuple[ManifestProblem, ...]]:
    """What the document declares, and what is odd about it. None for a kind that has no effect here.

    Raises `BrokenManifest` with every problem of a document that cannot be used.
    """
    problems: list[ManifestProblem] = []
    root = Fields(document, (), document.tree, problems)
    version = root.text("apiVersion", what=API_VERSIONS[0])
    if version == _GOONDAN and (problem := _without_effect(root)):
        return None, (problem,)
    if version and version not in API_VERSIONS:
        root.fail(f"apiVersion {version!r:.60} is unknown", f"write {API_VERSIONS[0]}", "apiVersion")
    root.only(*ROOT_KEYS)
    kind = root.choice("kind", KINDS)
    if root.tree.get("kind") is None:
        state, below = ("has no value", ("kind",)) if "kind" in root.tree else ("is missing", ())
        root.fail(f"kind {state}", f"write one of {', '.join(KINDS)}", *below)
    metadata = root.mapping("metadata", required=True)
    spec = root.mapping("spec", required=True)
    declared: Declared | None = None
    if kind is not None and metadata is not None and spec is not None:
        metadata.only(*METADATA_KEYS)
        declared = _of_kind(kind, document, metadata, spec, ships_with_us=ships_with_us)
    if declared is None or any(problem.is_fatal for problem in problems):
        raise BrokenManifest(*sorted(problems))
    return declared, tuple(sorted(problems))


def _without_effect(root: Fields) -> ManifestProblem | None:
    kind: Any = root.tree.get("kind")
    if kind == "Extension":
        return root.document.problem(
            ("kind",),
            "kind: Extension has no effect here: what it does around calls is not done",
            "write it in Python (docs/extensions.md), or as a hook (docs/hooks.md)",
            level="warning",
        )
    if not isinstance(kind, str) or kind not in _OF_ITS_RUNTIME:
        return None
    return root.document.problem(("kind",), f"kind: {kind} has no effect here", _OF_ITS_RUNTIME[kind], level="note")


def _of_kind(
    kind: str, document: YamlDocument, metadata: Fields, spec: Fields, *, ships_with_us: bool
) -> Declared | None:
    if kind == "Tool":
        return read_tool(document, metadata, spec, ships_with_us=ships_with_us)
    name = metadata.matching("name", NAME_SHAPE, _NAME_WANTED)
    if kind == "Upstream":
        return UpstreamDocument(name, document, _upstream_entry(spec))
    if kind == "Toolset":
        spec.only("tools")
        if name in get_args(Toolset):
            # Rules that deny `toolset:core` would otherwise speak of whatever this one holds.
            metadata.fail(f"{name} is a toolset of goat-mcp's own, which stays", "give this one another name", "name")
        return ToolsetDocument(name, document, read_references(spec))
    if kind == "Agent":
        return read_agent(name, document, metadata, spec)
    return ProfileDocument(name, document, dict(spec.tree))


def _upstream_entry(spec: Fields) -> Mapping[str, Any]:
    """Its `transport` may also be given by its members right in `spec`, as an `mcpServers` entry has them."""
    transport: Any = spec.tree.get("transport")
    if not isinstance(transport, dict):
        if not {"command", "url"} & spec.tree.keys():
            spec.fail("spec.transport is missing", "write transport: {command: ..., args: [...]} or {url: ...}")
        return dict(spec.tree)
    given = cast("dict[str, Any]", transport)
    rest = {key: value for key, value in spec.tree.items() if key != "transport"}
    for key in given.keys() & rest.keys():
        spec.fail(f"{key} stands in spec and in spec.transport", "take one of them away", key)
    return {**given, **rest}
