"""Make what is generated from the code: the contracts, manifests/builtin/*.yaml, manifests/schema.json,
docs/tools/*.md with what examples give back, the tables in README.md and docs/moving-in.md, docs/upstream-problems.md,
docs/commands.md and manifests/packaging/*.json; and from tables of the tests docs/attack-cases.md, docs/security.md,
docs/gateway.md and docs/seeds.md.

`python scripts/generated_files.py` writes them; `--check` only compares, and exits 1 with what differs.
"""

from __future__ import annotations

import difflib
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from goat_mcp.catalog.builtin_contracts import APP_FILE, FILE, META_FILE, contract_document
from goat_mcp.catalog.goa_tools import goa_tools
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.build.builtin_tools import APP_CLASSES, META_CLASSES, TOOL_CLASSES
from goat_mcp.gateway.build.manifests import shipped
from goat_mcp.gateway.manifest_schema import manifest_schema
from goat_mcp.settings.settings import Settings
from goat_mcp.tools.docs import OUTPUTS, document, short_doc
from goat_mcp.upstreams.reason_pages import reasons_page

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = ROOT / "manifests" / "builtin"
PAGES = ROOT / "docs" / "tools"
CONTRACTS = ROOT / "goat_mcp" / "catalog"
README = ROOT / "README.md"
ATTACKS = ROOT / "docs" / "attack-cases.md"
SECURITY = ROOT / "docs" / "security.md"
GATEWAY = ROOT / "docs" / "gateway.md"
SEEDS = ROOT / "docs" / "seeds.md"
COMMANDS = ROOT / "docs" / "commands.md"
REASONS = ROOT / "docs" / "upstream-problems.md"
SCHEMA = ROOT / "manifests" / "schema.json"
MOVING_IN = ROOT / "docs" / "moving-in.md"
TABLE_START, TABLE_END = "<!-- tools: generated -->", "<!-- /tools -->"
LINKS_START, LINKS_END = "<!-- links: generated -->", "<!-- /links -->"
HOSTS_START, HOSTS_END = "<!-- hosts: generated -->", "<!-- /hosts -->"


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
        link = f"[`{spec.name}`]({folder}{page_name(spec)}.md)"
        rows.append(f"| {link} | {summary} | {spec.side_effect.value} | {spec.risk.name.lower()} |")
    return "\n".join(rows)


def shipped_specs() -> list[ToolSpec]:
    """The optional tools, by toolset and resource."""
    specs = [export.spec for resource in shipped().tools for export in resource.exports]
    specs += [tool.spec for tool in goa_tools(_not_loaded)]
    return sorted(specs, key=lambda spec: (spec.toolset, spec.name.partition("__")[0]))


def _not_loaded(name: str) -> Any:
    raise LookupError(name)  # pages need contracts only


def page_name(spec: ToolSpec) -> str:
    """goa's `read` beside our `Read`: some file systems take these for one name."""
    return spec.name if spec.rule_name == spec.name or "__" in spec.name else f"goa-{spec.name}"


def pages(specs: list[ToolSpec], outputs: dict[str, list[str]]) -> dict[Path, str]:
    """One page for each tool, and the list of them."""
    optional = shipped_specs()
    files = {
        PAGES / f"{page_name(spec)}.md": document(spec, outputs=outputs).markdown() for spec in (*specs, *optional)
    }
    lines = ["# The tools", "", "`goat-mcp docs TOOL` prints these pages.", "", tools_table(specs, folder="")]
    lines += ["", "## Optional tools", "", "They are off until you turn their toolset on, e.g. `--toolset base`."]
    for toolset in sorted({spec.toolset for spec in optional}):
        of_it = [spec for spec in optional if spec.toolset == toolset]
        lines += ["", f"### `{toolset}`", "", tools_table(of_it, folder="")]
    return {**files, PAGES / "README.md": "\n".join(lines) + "\n"}


def attacks_page() -> str:
    """Every agreed attack case, with the tests that run it or the reason why none does."""
    table = _table("attack_cases")
    rows = ["| case | area | what happens | test or reason |", "| --- | --- | --- | --- |"]
    for case in table.ATTACK_CASES:
        where = f"[{case.where}](../tests/{case.where})" if case.is_tested else case.where
        rows.append(f"| {case.id} | {case.area} | {case.what_happens} | {where} |")
    head = "# The attack cases\n\nGenerated by `make generated` from the table that the tests are held against.\n"
    return "\n".join([head, table.count_line().capitalize() + ".", "", *rows]) + "\n"


def security_page() -> str:
    """Every rule of security and reliability: the promise, where it is kept, what shows it, what is not covered."""
    lines = [
        "# What is promised, and how you can check it",
        "",
        "Generated by `make generated` from a table that the tests are held against: what a line names is there.",
        "[SECURITY.md](../SECURITY.md) says the same in few words;",
        "[the attack cases](attack-cases.md) are listed one by one.",
        "",
        "All of it was measured and tested on Linux. [Platforms](platforms.md) says what was shown of it for macOS and",
        "Windows, and how: nothing here is claimed for a system on which nobody has run it.",
        "",
    ]
    for rule in _table("security_rules").SECURITY_RULES:
        lines += _shown_rule(rule, heading="##")
    return "\n".join(lines).rstrip() + "\n"


def gateway_page() -> str:
    """Every promise of the gateway, by area, in the way of the security page; and what waits, with its date."""
    table = _table("gateway_rules")
    lines = [
        "# What the gateway promises",
        "",
        "Between MCP clients and the MCP servers behind goat-mcp (*upstreams*). Generated by `make generated` from a",
        "table that the tests are held against: the modules and tests it names are there, and each test file says the",
        "id. [What is promised about security](security.md) holds beside it, and wins where it is stricter.",
        "",
        table.count_line() + " All of it was tested on Linux.",
        "",
    ]
    area = ""
    for rule in table.GATEWAY_RULES:
        if rule.area != area:
            area = rule.area
            lines += [f"## {table.AREAS[area]}", ""]
        lines += _shown_rule(rule, heading="###")
    return "\n".join(lines).rstrip() + "\n"


def seeds_page() -> str:
    """What of the systems that we grew from works here, and the tests that show it."""
    table = _table("seed_rows")
    lines = [
        "# What we grew from",
        "",
        "goat-mcp does what five systems did before it. Generated by `make generated` from a table that the tests are",
        "held against: each test that it names is there.",
        "",
    ]
    for seed, name in table.SEEDS.items():
        lines += [f"## {name}", "", "| what works | shown by |", "| --- | --- |"]
        for row in (row for row in table.SEED_ROWS if row.seed == seed):
            shown = [_shown_test(one) for one in row.shown_by] + ([f"waits since {row.waits}"] if row.waits else [])
            lines.append(f"| {row.what} | {'<br>'.join(shown)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _shown_test(shown: str) -> str:
    file, _, test = shown.partition("::")
    return f"[{file}](../tests/{file})" + (f" `{test}`" if test else "")


def _shown_rule(rule: Any, *, heading: str) -> list[str]:
    lines = [f"{heading} {rule.id}", "", rule.promise, ""]
    if rule.kept_in:
        kept = (f"[{module}](../goat_mcp/{_file_of(module)})" for module in rule.kept_in)
        lines.append(f"- kept in: {', '.join(kept)}")
    for shown in rule.shown_by:
        file, _, test = shown.partition("::")
        lines.append(f"- shown by: [{file}](../tests/{file}) `{test}`")
    if rule.not_covered:
        lines.append(f"- not covered: {rule.not_covered}")
    if waived := getattr(rule, "waived", ""):
        lines.append(f"- waived on {waived}")
    return [*lines, ""]


def _file_of(module: str) -> str:
    return f"{module}.py" if (ROOT / "goat_mcp" / f"{module}.py").exists() else module


def _table(name: str) -> Any:
    return _from_root(f"tests.contract.{name}")


def _from_root(name: str) -> Any:
    # Only the root of the repository has these, and a script's own folder stands first on the path.
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(name)


def packaging() -> dict[Path, str]:
    """What registries and hosts are told of the package."""
    files = _from_root("scripts.packaging_files")
    offered = [spec for spec in builtin_specs() if spec.toolset in Settings().catalog.toolsets]
    documents = {files.REGISTRY_FILE: files.registry_entry(), files.BUNDLE_FILE: files.bundle_manifest(offered)}
    return {path: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for path, document in documents.items()}


def contract_files() -> dict[Path, str]:
    """What a start reads of the tools. The examples run with it."""
    files: dict[Path, str] = {}
    for file, classes in ((FILE, TOOL_CLASSES), (META_FILE, META_CLASSES), (APP_FILE, APP_CLASSES)):
        documents = [contract_document(tool.contract) for tool in classes]
        files[CONTRACTS / file] = json.dumps(documents, indent=1, ensure_ascii=False) + "\n"
    return files


def wanted_files() -> dict[Path, str]:
    specs = builtin_specs()
    meta = [tool.contract for tool in (*META_CLASSES, *APP_CLASSES)]
    outputs: dict[str, list[str]] = _from_root("scripts.example_outputs").example_outputs()
    files = {MANIFESTS / f"{spec.name}.yaml": manifest(spec) for spec in (*specs, *meta)} | pages(specs, outputs)
    files[OUTPUTS] = json.dumps(outputs, indent=1, ensure_ascii=False) + "\n"
    files |= contract_files()
    files[ATTACKS] = attacks_page()
    files[SECURITY] = security_page()
    files[GATEWAY] = gateway_page()
    files[SEEDS] = seeds_page()
    files[REASONS] = reasons_page()
    files[COMMANDS] = _from_root("scripts.commands_page").commands_page()
    files |= packaging()
    files[SCHEMA] = json.dumps(manifest_schema(), indent=1, ensure_ascii=False) + "\n"
    readme = _with_part(README.read_text(), TABLE_START, tools_table(specs, folder="docs/tools/"), TABLE_END)
    files[README] = _with_part(readme, LINKS_START, _from_root("scripts.install_links").links(), LINKS_END)
    hosts_table = _from_root("scripts.hosts_table").hosts_table()
    files[MOVING_IN] = _with_part(MOVING_IN.read_text(), HOSTS_START, hosts_table, HOSTS_END)
    return files


def _with_part(page: str, start: str, part: str, end: str) -> str:
    head, _, rest = page.partition(start)
    return f"{head}{start}\n\n{part.strip()}\n\n{end}{rest.partition(end)[2]}"


def main() -> int:
    if "--check" not in sys.argv:
        for path, text in contract_files().items():
            path.write_text(text)
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
