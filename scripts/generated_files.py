"""Make what is generated from the code: the contracts, manifests/builtin/*.yaml, docs/tools/*.md, the README's table.

`python scripts/generated_files.py` writes them; `--check` only compares, and exits 1 with what differs.
"""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from goat_mcp.builtin_contracts import FILE, contract_document
from goat_mcp.builtin_tools import TOOL_CLASSES
from goat_mcp.core.spec import ToolSpec
from goat_mcp.tool_docs.page import document, short_doc

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = ROOT / "manifests" / "builtin"
PAGES = ROOT / "docs" / "tools"
CONTRACTS = ROOT / "goat_mcp" / FILE
README = ROOT / "README.md"
TABLE_START, TABLE_END = "<!-- tools: generated -->", "<!-- /tools -->"


def builtin_specs() -> list[ToolSpec]:
    return [tool.contract for tool in TOOL_CLASSES]


def manifest(spec: ToolSpec) -> str:
    document: dict[str, Any] = {
        "apiVersion": "goat-mcp/v1",
        "kind": "Tool",
        "metadata": {"name": spec.name},
        "spec": {
            "title": spec.title,
            "description": spec.description,
            "toolset": spec.toolset,
            "sideEffect": spec.side_effect.value,
            "risk": spec.risk.name.lower(),
            "hints": spec.hints.wire(),
            "parameters": spec.input_schema,
            "meta": dict(spec.meta),
            "examples": [{"description": e.description, "input": dict(e.input)} for e in spec.examples],
        },
    }
    head = "# Generated from the code by `make generated`. A change here is a changed contract.\n"
    return head + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that a diff shows the line that changed."""


def _text(dumper: Any, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def tools_table(specs: list[ToolSpec], *, folder: str) -> str:
    """A row for each tool; `folder` is where their pages lie, seen from the table."""
    rows = ["| tool | what it does | side effect | risk |", "| --- | --- | --- | --- |"]
    for spec in specs:
        summary = short_doc(spec).replace("|", "\\|")
        link = f"[`{spec.name}`]({folder}{spec.name}.md)"
        rows.append(f"| {link} | {summary} | {spec.side_effect.value} | {spec.risk.name.lower()} |")
    return "\n".join(rows)


def pages(specs: list[ToolSpec]) -> dict[Path, str]:
    """One page for each tool, and the list of them."""
    files = {PAGES / f"{spec.name}.md": document(spec).markdown() for spec in specs}
    index = f"# The tools\n\n`goat-mcp docs TOOL` prints these pages.\n\n{tools_table(specs, folder='')}\n"
    return {**files, PAGES / "README.md": index}


def wanted_files() -> dict[Path, str]:
    specs = builtin_specs()
    files = {MANIFESTS / f"{spec.name}.yaml": manifest(spec) for spec in specs} | pages(specs)
    documents = [contract_document(spec) for spec in specs]
    files[CONTRACTS] = json.dumps(documents, indent=1, ensure_ascii=False) + "\n"
    head, _, rest = README.read_text().partition(TABLE_START)
    _, _, tail = rest.partition(TABLE_END)
    files[README] = f"{head}{TABLE_START}\n\n{tools_table(specs, folder='docs/tools/')}\n\n{TABLE_END}{tail}"
    return files


def main() -> int:
    files = wanted_files()
    stale = [path for path in (*MANIFESTS.glob("*.yaml"), *PAGES.glob("*.md")) if path not in files]
    if "--check" not in sys.argv:
        for folder in (MANIFESTS, PAGES):
            folder.mkdir(parents=True, exist_ok=True)
        for path in stale:
            path.unlink()
        for path, text in files.items():
            path.write_text(text)
        return 0
    wrong = [f"{path.relative_to(ROOT)}: belongs to no tool" for path in stale]
    for path, text in files.items():
        have = path.read_text() if path.exists() else ""
        name = str(path.relative_to(ROOT))
        wrong += difflib.unified_diff(have.splitlines(), text.splitlines(), name, f"{name} (generated)", lineterm="")
    if wrong:
        sys.stderr.write("\n".join([*wrong, "", "Run `make generated` and review the change as a user would.", ""]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
