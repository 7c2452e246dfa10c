"""References to tools, in Toolsets and Agents: a name, or Goondan's `{kind: Tool, name, package}`.

A text may mean a tool in any way that a person writes it. A reference means one declared tool and nothing else.
"""

from __future__ import annotations

import re
from typing import Any, cast

from goat_mcp.core.names import RESOURCE_PREFIX, SEPARATOR, SHIPPED_PREFIX, UPSTREAM_PREFIX
from goat_mcp.manifests.fields import Fields

PACKAGES = ("@goondan/base", "goat-mcp")
"""Packages of a reference that mean the set that ships with us."""
REFERENCE_KEYS = ("kind", "name", "package")
_NAME_SHAPE = re.compile(rf"(?!{UPSTREAM_PREFIX}(?:(?!{SEPARATOR}).)*\Z)[A-Za-z][\w.-]*\Z")
"""Of one tool: no pattern, no `toolset:NAME`, and not all of a server."""
_NAME_WANTED = "the name of one tool, e.g. bash or bash__exec"


def read_references(spec: Fields) -> tuple[str, ...]:
    """The member `tools` as selections: a text as it is written, `resource:NAME` or `shipped:NAME` for a reference."""
    value: Any = spec.tree.get("tools")
    if not isinstance(value, list) or not value:
        spec.fail("spec.tools is no list of tools", "write e.g. tools: [Read, weather__today, toolset:base]")
        return ()
    names: list[str] = []
    for index, item in enumerate(cast("list[Any]", value)):
        if isinstance(item, str) and item.strip():
            names.append(_from_text(item.strip()))
        elif isinstance(item, dict):
            given = cast("dict[str, Any]", item)
            path: tuple[str | int, ...] = ("tools", index)
            if isinstance(given.get("ref"), dict | str):
                Fields(spec.document, (*spec.path, *path), given, spec.problems).only("ref")
                given, path = given["ref"], (*path, "ref")
            if isinstance(given, str):
                names.append(_from_text(given.strip()))
                continue
            names.append(_reference(Fields(spec.document, (*spec.path, *path), given, spec.problems)))
        else:
            spec.fail(f"spec.tools[{index}] is no tool", "write a name, or {kind: Tool, name: ...}", "tools", index)
    return tuple(name for name in names if name)


def _from_text(text: str) -> str:
    """`Tool/NAME` is a reference, too; else it is taken as it is written."""
    kind, slash, name = text.partition("/")
    return _of_tool(name) if slash and kind == "Tool" and _NAME_SHAPE.match(name) else text


def _of_tool(name: str) -> str:
    return name if SEPARATOR in name else f"{RESOURCE_PREFIX}{name}"


def _reference(ref: Fields) -> str:
    ref.only(*REFERENCE_KEYS)
    if ref.tree.get("kind", "Tool") != "Tool":
        ref.fail("a reference is to a tool", "write kind: Tool", "kind")
    package = ref.text("package", default="")
    if package and package not in PACKAGES:
        ref.fail(f"the package {package!r:.60} is not installed", f"known are {', '.join(PACKAGES)}", "package")
    name = ref.matching("name", _NAME_SHAPE, _NAME_WANTED)
    if not name.strip():
        return ""
    if package:
        return f"{SHIPPED_PREFIX}{name}"
    return _of_tool(name)
