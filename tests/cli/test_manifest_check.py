"""`goat-mcp manifest check` over many documents reads like a compiler: a line each, a summary, an exit status."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.test_call import run
from tests.manifests.documents import GOOD, TOOL, put
from tests.manifests.test_bad_manifests import BAD, ODD

pytestmark = pytest.mark.e2e

BROKEN = [name for name, (text, _) in BAD.items() if isinstance(text, str) and len(text) < 2_000][:24]
WARNED = [name for name in ODD if not name.startswith("limit")][:6]
COMPILER_LINE = re.compile(
    r"(?P<file>[^:]+):(?P<line>\d+): (?P<level>error|warning|note): (?P<what>.+); (?P<remedy>.+)"
)


def forty_documents(folder: Path) -> list[str]:
    """The documents, valid and broken; and what is to be said of them."""
    said: list[str] = []
    for name, text in GOOD.items():
        put(folder / f"good-{name}", text)
    for number in range(4):
        put(folder / f"good-{number}", TOOL.replace("name: weather", f"name: other-{number}"))
    for level, names, table in (("error", BROKEN, BAD), ("warning", WARNED, ODD)):
        for name in names:
            text, problem = table[name]
            assert isinstance(text, str)
            file = put(folder / f"{level}-{name}", text.replace("name: weather", f"name: w-{name.lower()}"[:30]))
            line, what = problem.split(": ", 1)
            said.append(f"{file}:{line}: {level}: {what}")
    assert len(list(folder.rglob("tool.yaml"))) == 40
    return sorted(said)


def test_forty_documents_are_one_line_for_each_problem_and_a_summary(tmp_path: Path) -> None:
    said = forty_documents(tmp_path / "tools")

    done = run("manifest", "check", str(tmp_path / "tools"), cwd=tmp_path)

    lines = done.stdout.splitlines()
    assert sorted(lines) == said
    assert all(COMPILER_LINE.fullmatch(line) for line in lines)
    assert done.stderr == "24 errors, 6 warnings; read: 13 tools, 1 upstream, 1 toolset, 1 profile, 1 agent\n"
    assert done.returncode == 1


def test_as_json_it_is_the_same(tmp_path: Path) -> None:
    said = forty_documents(tmp_path / "tools")

    done = run("manifest", "check", "--json", str(tmp_path / "tools"), cwd=tmp_path)

    document = json.loads(done.stdout)
    assert (
        sorted(
            f"{one['file']}:{one['line']}: {one['level']}: {one['what']}; {one['remedy']}"
            for one in document["problems"]
        )
        == said
    )
    assert (document["errors"], document["warnings"], document["notes"], done.returncode) == (24, 6, 0, 1)


def test_a_missing_side_effect_is_a_warning_the_tool_is_loaded_and_the_check_succeeds(tmp_path: Path) -> None:
    put(tmp_path / "tools" / "weather", TOOL.replace("      sideEffect: read_only\n", ""))

    checked = run("manifest", "check", "tools", cwd=tmp_path)
    listed = json.loads(run("manifest", "list", "--manifests", "tools", "--json", cwd=tmp_path).stdout)
    status = json.loads(run("list", "--manifests", "tools", "--json", cwd=tmp_path).stdout)

    assert checked.stdout.startswith("tools/weather/tool.yaml:8: warning: sideEffect is missing")
    assert (checked.returncode, checked.stderr) == (0, "1 warning; read: 1 tool\n")
    (weather,) = (row for row in listed["tools"] if row["name"] == "weather__today")
    assert weather["state"] == "loaded"
    assert [problem["level"] for problem in listed["problems"]] == ["warning"]
    assert [problem["reason_code"] for problem in status["problems"]] == ["manifest_warning"]


JAVASCRIPT = {
    "no-such-export": (
        "export const handlers = { tomorrow() {} };\n",
        "{manifest}:8: error: `handlers` has no 'today'; it has tomorrow; add the function, or fix the name",
    ),
    "no-handlers": (
        "export const other = 1;\n",
        "{manifest}:6: error: index.js cannot be loaded: ReferenceError: there is no map `handlers` from export names "
        "to functions `async (ctx, input)`; end it with e.g. export const handlers = {{ today }};",
    ),
    "syntax": (
        "// one\nconst = 1;\nexport const handlers = {};\n",
        "{script}:2: error: cannot be loaded: SyntaxError: Unexpected token '='; fix that file",
    ),
    "syntax-of-a-module": (
        "import 'node:fs';\n\nexport const handlers = {;\n",
        "{script}:3: error: cannot be loaded: SyntaxError: Unexpected token ';'; fix that file",
    ),
    "fails": (
        "// one\n\nexport const handlers = { today: nothing };\n",
        "{script}:3: error: cannot be loaded: ReferenceError: nothing is not defined; fix that file",
    ),
    "no-such-package": (
        "import 'almanac';\n",
        "{manifest}:6: error: index.js cannot be loaded: Error: Cannot find package 'almanac' imported from {script}; "
        "install almanac in the manifest's directory (npm install), or fix the name",
    ),
}


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.parametrize(("source", "said"), JAVASCRIPT.values(), ids=JAVASCRIPT.keys())
def test_a_javascript_file_that_cannot_be_used_has_its_line(tmp_path: Path, source: str, said: str) -> None:
    manifest = put(tmp_path / "my tools" / "weather", TOOL.replace("./handlers.py", "./index.js"))
    script = manifest.with_name("index.js")
    script.write_text(source)

    done = run("manifest", "check", str(tmp_path / "my tools"), cwd=tmp_path)

    assert done.stdout.splitlines() == [said.format(manifest=manifest, script=script)]
    assert done.returncode == 1


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_a_syntax_error_in_a_file_that_it_imports_has_that_files_line(tmp_path: Path) -> None:
    manifest = put(tmp_path / "weather", TOOL.replace("./handlers.py", "./index.js"))
    manifest.with_name("index.js").write_text("import './almanac.mjs';\nexport const handlers = { today() {} };\n")
    almanac = manifest.with_name("almanac.mjs")
    almanac.write_text("\nexport const = 3;\n")

    done = run("manifest", "check", str(tmp_path / "weather"), cwd=tmp_path)

    assert done.stdout == f"{almanac}:2: error: cannot be loaded: SyntaxError: Unexpected token '='; fix that file\n"
