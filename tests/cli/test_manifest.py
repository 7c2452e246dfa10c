"""`goat-mcp manifest`: a tool of one's own from nothing, and what is said about manifests."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_call import run

pytestmark = pytest.mark.e2e

PARIS = {"city": "Paris", "degrees": 2, "unit": "C", "note": "example data"}
"""What the example of each language gives back, but for the number: each computes its own."""


def own(home: Path) -> Path:
    return home / ".config" / "goat-mcp" / "manifests"


def make(home: Path, *words: str) -> dict[str, Any]:
    done = run("manifest", "new", *words, "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_new_tool_answers_at_once_from_an_empty_folder(tmp_path: Path) -> None:
    made = run("manifest", "new", "weather", cwd=tmp_path)
    called = run("call", "weather__today", "city=Paris", cwd=tmp_path)

    place = own(tmp_path) / "weather"
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == (
        "Made weather__today:\n"
        f"  {place}/tool.yaml   its name, description and parameters\n"
        f"  {place}/handlers.py   what it does\n"
        "Call it:     goat-mcp call weather__today city=Paris\n"
        "Change it:   edit these files; a running server sees it within two seconds\n"
        f"Check it:    goat-mcp manifest check {place}\n"
    )
    assert (called.returncode, json.loads(called.stdout), called.stderr) == (0, PARIS, "")


def test_a_new_tool_in_a_directory_of_ones_own_choice_is_called_as_the_command_says(tmp_path: Path) -> None:
    made = make(tmp_path, "weather", "--dir", "my tools")

    place = tmp_path / "my tools" / "weather"
    assert made == {
        "tool": "weather__today",
        "files": [str(place / "tool.yaml"), str(place / "handlers.py")],
        "next": {
            "call": f"goat-mcp call --manifests '{tmp_path}/my tools' weather__today city=Paris",
            "check": f"goat-mcp manifest check '{place}'",
        },
    }
    called = run(*shlex.split(made["next"]["call"])[1:], cwd=tmp_path)
    checked = run(*shlex.split(made["next"]["check"])[1:], cwd=tmp_path)
    assert json.loads(called.stdout) == PARIS
    assert (checked.returncode, checked.stdout) == (0, "Nothing is wrong: 1 tool.\n")
    assert not own(tmp_path).exists()


@pytest.mark.parametrize("has_jq", [True, False])
def test_a_new_shell_tool_answers_with_jq_and_without_it(tmp_path: Path, has_jq: bool) -> None:
    if has_jq and not shutil.which("jq", path="/usr/bin:/bin"):
        pytest.skip("jq is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cksum", "awk", "python3", *(["jq"] if has_jq else [])):
        (programs / name).symlink_to(Path(shutil.which(name, path=f"/usr/bin:/bin:{os.environ['PATH']}") or ""))
    variables = {"PATH": str(programs), "SHELL": "/nonexistent"}

    made = run("manifest", "new", "weather", "--language", "shell", cwd=tmp_path, variables=variables)
    called = run("call", "weather__today", 'city=Pa"ris ü', cwd=tmp_path, variables=variables)

    script = own(tmp_path) / "weather" / "tool.sh"
    assert made.returncode == 0, made.stderr
    assert ("jq" in script.read_text()) is has_jq
    assert os.access(script, os.X_OK)
    assert json.loads(called.stdout) == {**PARIS, "city": 'Pa"ris ü', "degrees": 8}, called.stderr


def test_a_new_tool_over_http_is_sent_to_the_given_place(tmp_path: Path) -> None:
    made = make(tmp_path, "weather", "--language", "http", "--url", "http://127.0.0.1:9/weather")

    assert made["files"] == [str(own(tmp_path) / "weather" / "tool.yaml")]
    assert made["next"]["call"] == "goat-mcp call --allowed-tool weather__today weather__today city=Paris"
    called = run(*shlex.split(made["next"]["call"])[1:], "--json", cwd=tmp_path)
    assert called.returncode == 5
    assert "127.0.0.1" in json.loads(called.stdout)["content"][0]["text"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["my__tool"],
            "'my__tool' is no usable name: wanted are letters, digits, - and single _, beginning with a letter\n"
            "For example my-tool.",
        ),
        (["mcp"], "'mcp' is no usable name: mcp begins the names of upstream tools\nFor example mcp-tools."),
        (
            ["../up"],
            "'../up' is no usable name: wanted are letters, digits, - and single _, beginning with a letter\n"
            "For example up.",
        ),
        (
            ["a" * 44],
            f"'{'a' * 44}' is too long: {'a' * 44}__today may have at most 50 characters\nShorten it.",
        ),
        (
            ["weather", "--language", "http"],
            "--language http needs --url\nFor example --url http://127.0.0.1:8080/weather.",
        ),
        (
            ["weather", "--language", "http", "--url", "ftp://x"],
            "--url: 'ftp://x' is no http or https URL\nWrite e.g. https://host/path.",
        ),
        (
            ["weather", "--url", "http://x"],
            "--url is for --language http, and this is python\nLeave it out, or add --language http.",
        ),
    ],
)
def test_what_cannot_become_a_tool_is_refused_and_leaves_nothing(tmp_path: Path, words: list[str], said: str) -> None:
    done = run("manifest", "new", *words, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (1, f"goat-mcp: {said}\n")
    assert not own(tmp_path).exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    handlers = own(tmp_path) / "weather" / "handlers.py"
    handlers.write_text("mine")

    again = run("manifest", "new", "weather", cwd=tmp_path)
    (own(tmp_path) / "weather").rename(own(tmp_path) / "elsewhere")
    declared = run("manifest", "new", "weather", cwd=tmp_path)

    assert again.stderr == (
        f"goat-mcp: {own(tmp_path)}/weather is there already\n"
        "Edit it, take another name than weather, or remove it first.\n"
    )
    assert declared.stderr == (
        f"goat-mcp: weather is declared in {own(tmp_path)}/elsewhere/tool.yaml already\n"
        "Take another name, or edit that file.\n"
    )
    assert (again.returncode, declared.returncode) == (1, 1)
    assert (own(tmp_path) / "elsewhere" / "handlers.py").read_text() == "mine"


def test_each_problem_is_a_line_with_its_place_and_its_remedy(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    make(tmp_path, "tide", "--language", "shell")
    make(tmp_path, "moon")
    weather, tide, moon = (own(tmp_path) / name for name in ("weather", "tide", "moon"))
    (weather / "handlers.py").write_text("handlers = {'tomorrow': print}\n")
    (tide / "tool.sh").chmod(0o644)
    (moon / "handlers.py").write_text("import json\n\nhandlers = {'today': jsn.loads}\n")
    manifest = moon / "tool.yaml"
    manifest.write_text(manifest.read_text().replace("minLength: 1", "minLength: one"))

    done = run("manifest", "check", cwd=tmp_path)
    as_json = run("manifest", "check", "--json", cwd=tmp_path)
    one = run("manifest", "check", str(weather / "tool.yaml"), cwd=tmp_path)

    line = next(n for n, text in enumerate(manifest.read_text().splitlines(), 1) if "minLength" in text)
    name = next(n for n, text in enumerate(manifest.read_text().splitlines(), 1) if "- name: today" in text)
    command = next(n for n, text in enumerate((tide / "tool.yaml").read_text().splitlines(), 1) if "command:" in text)
    wanted = [
        f"{moon}/handlers.py:3: error: cannot be loaded: NameError: name 'jsn' is not defined; fix that file",
        f"{manifest}:{line}: error: parameters.properties.city.minLength is no JSON Schema: "
        "'one' is not of type 'integer'; see json-schema.org",
        f"{tide}/tool.yaml:{command}: error: ./tool.sh is not executable; chmod +x {tide}/tool.sh",
        f"{weather}/tool.yaml:{name}: error: `handlers` has no 'today'; it has tomorrow; "
        "add the function, or fix the name",
    ]
    assert done.stdout.splitlines() == wanted
    assert done.returncode == as_json.returncode == one.returncode == 1
    assert one.stdout.splitlines() == wanted[-1:]
    document = json.loads(as_json.stdout)
    assert done.stderr == "4 errors; read: 3 tools\n"
    lines = [f"{p['file']}:{p['line']}: {p['level']}: {p['what']}; {p['remedy']}" for p in document["problems"]]
    assert lines == wanted
    assert (document["errors"], document["warnings"], document["notes"]) == (4, 0, 0)
    assert document["read"] == {"tools": 3, "upstreams": 0, "toolsets": 0, "profiles": 0, "agents": 0}


@pytest.mark.parametrize(
    ("unusable", "why"),
    [
        ("pattern: (?=P)P", "its parameters has a pattern we do not run: '(?=P)P'"),
        ("$ref: http://127.0.0.1:1/x", "its parameters refers to something beside itself"),
        ("$ref: '#/properties/city'", "its parameters cannot be followed: RecursionError"),
    ],
)
def test_parameters_that_no_call_could_be_held_against_are_told_of_and_calls_say_whose_fault_it_is(
    tmp_path: Path, unusable: str, why: str
) -> None:
    make(tmp_path, "weather")
    file = own(tmp_path) / "weather" / "tool.yaml"
    file.write_text(file.read_text().replace("minLength: 1", unusable))
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "parameters:" in text)

    checked = run("manifest", "check", cwd=tmp_path)
    called = run("call", "weather__today", "city=Paris", cwd=tmp_path)

    assert checked.stdout == f"{file}:{line}: error: no call could be checked: {why}; write it without that\n"
    assert checked.returncode == 1
    assert "E_CONFIG" in called.stderr + called.stdout
    assert "the manifest of this tool: " in called.stderr + called.stdout


@pytest.mark.parametrize(
    ("folder", "place"),
    [
        (".", "tools"),
        (".", "tools/weather"),
        (".", "tools/weather/tool.yaml"),
        ("tools", "."),
        ("tools/weather", "."),
        ("tools/weather", "tool.yaml"),
    ],
)
def test_a_place_may_be_given_as_it_is_seen_from_here(tmp_path: Path, folder: str, place: str) -> None:
    make(tmp_path, "weather", "--dir", "tools")

    done = run("manifest", "check", place, cwd=tmp_path / folder)

    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing is wrong: 1 tool.\n", "")


def test_a_pattern_that_is_none_is_told_and_a_property_of_that_name_is_not(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    file = own(tmp_path) / "weather" / "tool.yaml"
    text = file.read_text()
    city = next(line for line in text.splitlines() if "minLength: 1" in line)
    blanks = city.removesuffix(city.lstrip())
    more = f"{blanks}pattern: {{type: array, items: {{type: string, pattern: '(a'}}}}"
    file.write_text(text.replace(city, f"{city}\n{more}"))

    done = run("manifest", "check", cwd=tmp_path)

    line = text.splitlines().index(city) + 2
    assert done.stdout.splitlines()[0] == (
        f"{file}:{line}: error: parameters.properties.pattern.items.pattern: '(a' is no pattern: missing ), "
        "unterminated subpattern at position 0; fix it; a bracket that is meant is written \\("
    )
    assert done.returncode == 1


def test_an_example_whose_text_yaml_takes_for_something_else_is_to_be_quoted(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    file = own(tmp_path) / "weather" / "tool.yaml"
    text = file.read_text()
    assert text.count("input: {city: Paris}") == 1
    file.write_text(text.replace("input: {city: Paris}", "input: {city: NO}"))

    done = run("manifest", "check", cwd=tmp_path)

    (said,) = done.stdout.splitlines()
    assert said.endswith(
        ": warning: the example is refused by its own parameters: False is not of type 'string'; quote it: 'NO'"
    )
    assert (done.returncode, done.stderr) == (0, "1 warning; read: 1 tool\n")


def test_checking_runs_nothing_but_what_loads_the_handlers(tmp_path: Path) -> None:
    make(tmp_path, "weather", "--language", "shell")
    (own(tmp_path) / "weather" / "tool.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")

    done = run("manifest", "check", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "Nothing is wrong: 1 tool.\n")
    assert not (tmp_path / "ran").exists()


def test_a_place_without_manifests_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    empty = run("manifest", "check", "empty", cwd=tmp_path)
    gone = run("manifest", "check", "gone", cwd=tmp_path)
    none = run("manifest", "check", cwd=tmp_path)

    assert (empty.returncode, gone.returncode, none.returncode) == (1, 1, 0)
    assert empty.stderr == (
        "goat-mcp: empty: no manifest is there\nName a directory of manifests, or a file that is one.\n"
    )
    assert gone.stdout == "gone: error: cannot be read: No such file or directory; name a directory of manifests\n"
    assert none.stdout == "Nothing is declared. Begin with: goat-mcp manifest new weather\n"


OTHERS = """\
apiVersion: goat-mcp/v1
kind: Upstream
metadata: {name: notes}
spec: {command: notes-server}
---
apiVersion: goat-mcp/v1
kind: Toolset
metadata: {name: mine}
spec: {tools: [Read, weather]}
---
apiVersion: goat-mcp/v1
kind: Profile
metadata: {name: quiet}
spec: {read_only: true}
"""


def test_what_is_declared_is_listed_with_its_state(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    make(tmp_path, "tide", "--language", "shell")
    (own(tmp_path) / "broken.yaml").write_text("apiVersion: goat-mcp/v1\nkind: Tol\n")
    (own(tmp_path) / "others.yaml").write_text(OTHERS)

    as_json = run("manifest", "list", "--json", "--disallowed-tool", "tide__today", cwd=tmp_path)
    as_text = run("manifest", "list", "--disallowed-tool", "tide__today", cwd=tmp_path)

    document = json.loads(as_json.stdout)
    tools = {row["name"]: row for row in document["tools"] if row["toolset"] not in ("goa", "base")}
    assert tools["weather__today"] == {
        "name": "weather__today",
        "file": f"{own(tmp_path)}/weather/tool.yaml",
        "entry": "python",
        "side_effect": "none",
        "toolset": "manifests",
        "state": "loaded",
        "reason": "",
    }
    assert {name: row["state"] for name, row in tools.items()} == {
        "tide__today": "hidden",
        "weather__today": "loaded",
        "": "broken",
    }
    others = f"{own(tmp_path)}/others.yaml"
    assert document["upstreams"] == [{"name": "notes", "file": others}]
    assert document["toolsets"] == [{"name": "mine", "file": others, "tools": ["Read", "weather"]}]
    assert document["profiles"] == [{"name": "quiet", "file": others}]
    assert [problem["line"] for problem in document["problems"]] == [1, 1, 2]
    assert f"weather__today\tloaded\tpython\tnone\t{own(tmp_path)}/weather/tool.yaml" in as_text.stdout.splitlines()
    assert f"upstream\tnotes\t{others}" in as_text.stdout.splitlines()
    assert f"{own(tmp_path)}/broken.yaml:2: kind: the text 'Tol' is unknown; did you mean Tool?" in as_text.stderr


def test_tools_that_come_with_us_are_listed_as_hidden_until_their_toolset_is_on(tmp_path: Path) -> None:
    before = json.loads(run("manifest", "list", "--json", cwd=tmp_path).stdout)["tools"]
    after = json.loads(run("manifest", "list", "--json", "--toolset", "base", cwd=tmp_path).stdout)["tools"]

    assert {row["state"] for row in before} <= {"hidden"}
    assert {row["state"] for row in after if row["toolset"] == "base"} <= {"loaded"}


BAD_OTHERS = """\
apiVersion: goat-mcp/v1
kind: Upstream
metadata: {name: notes}
spec:
  transport:
    command: ./notes-server
---
apiVersion: goat-mcp/v1
kind: Upstream
metadata: {name: wiki}
spec:
  url: https://wiki.example/mcp
  start: soon
  timeouts: 3
---
apiVersion: goat-mcp/v1
kind: Profile
metadata: {name: quiet}
spec:
  readonly: true
"""


def test_upstreams_and_profiles_are_checked_as_their_settings_are(tmp_path: Path) -> None:
    own(tmp_path).mkdir(parents=True)
    file = own(tmp_path) / "others.yaml"
    file.write_text(BAD_OTHERS)

    done = run("manifest", "check", cwd=tmp_path)

    assert done.stdout.splitlines() == [
        f'{file}:6: error: command: "./notes-server" is a relative path; '
        "write an absolute one, a name that is on PATH, or a cwd",
        f'{file}:13: error: start: "soon" is not a way to start; write lazy or eager',
        f"{file}:14: warning: timeouts: unknown key, ignored; did you mean timeout_s?",
        f"{file}:20: error: spec.readonly is unknown; did you mean read_only?",
    ]
    assert done.returncode == 1


TOOLSETS = """\
apiVersion: goat-mcp/v1
kind: Toolset
metadata: {name: mine}
spec:
  tools:
    - Read
    - weather
    - weather__today
    - toolset:core
    - json-query
    - mcp__notes
    - wether
    - Bsh
    - qqqqqqqq
    - weather__tomorow
    - toolset:loop
    - toolset:mine
    - mcp__notes__*
    - {kind: Tool, name: jsn-query, package: "@goondan/base"}
---
apiVersion: goat-mcp/v1
kind: Upstream
metadata: {name: notes}
spec: {command: notes-server}
"""
NO_TOOLS = (
    "12: the toolset mine: 'wether' names no tool; did you mean weather?",
    "13: the toolset mine: 'Bsh' names no tool; did you mean Bash or bash?",
    "14: the toolset mine: 'qqqqqqqq' names no tool; the tools are those that `goat-mcp list` shows",
    "15: the toolset mine: 'weather__tomorow' names no tool; did you mean weather__today?",
    "16: the toolset mine: 'toolset:loop' names no toolset; there are core, tasks, state, network, agent, mcp, "
    "notebook, teams, code, goa, base, manifests, upstream, meta, apps",
    "17: the toolset mine: 'toolset:mine': a toolset holds none that is declared; write the tools that it holds",
    "18: the toolset mine: 'mcp__notes__*' names no tool; write mcp__notes for all of its tools",
    "19: the toolset mine: 'jsn-query' names no tool; did you mean json-query?",
)


def test_what_a_toolset_names_and_nobody_has_is_told_with_near_names(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    file = own(tmp_path) / "others.yaml"
    file.write_text(TOOLSETS)

    checked = run("manifest", "check", cwd=tmp_path)
    listed = run("manifest", "list", cwd=tmp_path)
    called = run("call", "--toolset", "mine", "weather__today", "city=Paris", cwd=tmp_path)

    assert checked.stdout.splitlines() == [f"{file}:{said.replace(': ', ': warning: ', 1)}" for said in NO_TOOLS]
    assert checked.returncode == 0
    assert listed.stderr.splitlines() == [f"{file}:{said}" for said in NO_TOOLS]
    assert (called.returncode, json.loads(called.stdout)) == (0, PARIS)


def test_a_tool_of_an_upstream_that_is_not_configured_is_a_note_and_no_failure(tmp_path: Path) -> None:
    own(tmp_path).mkdir(parents=True)
    file = own(tmp_path) / "others.yaml"
    file.write_text(OTHERS.replace("[Read, weather]", "[Read, mcp__notes__find, mcp__nots__find, mcp__github]"))

    checked = run("manifest", "check", cwd=tmp_path)
    listed = run("manifest", "list", cwd=tmp_path)

    notes = [
        f"{file}:9: the toolset mine: 'mcp__github' is of an upstream that is not configured; "
        "add it to mcpServers, or fix the name",
        f"{file}:9: the toolset mine: 'mcp__nots__find' is of an upstream that is not configured; did you mean notes?",
    ]
    assert checked.stdout.splitlines() == [
        *(note.replace(":9: ", ":9: note: ") for note in notes),
        "Nothing is wrong: 1 upstream, 1 toolset, 1 profile.",
    ]
    assert checked.returncode == 0
    assert sorted(listed.stderr.splitlines()) == notes


def test_a_toolset_in_another_place_may_name_what_a_start_would_read(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    (tmp_path / "mine.yaml").write_text(TOOLSETS.partition("    - wether")[0])

    done = run("manifest", "check", "mine.yaml", cwd=tmp_path)

    assert done.stdout.splitlines() == [
        "mine.yaml:11: note: the toolset mine: 'mcp__notes' is of an upstream that is not configured; "
        "add it to mcpServers, or fix the name",
        "Nothing is wrong: 1 toolset.",
    ]


def test_a_new_tool_is_nobody_elses_to_change_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(tmp_path, "weather", "--language", "shell")
    finally:
        os.umask(before)

    made = [own(tmp_path), *sorted(own(tmp_path).rglob("*"))]
    assert [f"{path.stat().st_mode & 0o777:o} {path.name}" for path in made] == [
        "755 manifests",
        "755 weather",
        "755 tool.sh",
        "644 tool.yaml",
    ]
    assert run("call", "weather__today", "city=Paris", cwd=tmp_path).returncode == 0


def test_where_nothing_would_be_used_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    done = run("manifest", "new", "weather", "--dir", "open", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"goat-mcp: nothing in {tmp_path}/open would be used: it is in {tmp_path}/open, which"
    )
    assert list((tmp_path / "open").iterdir()) == []


def test_a_resource_with_the_name_of_one_that_comes_with_us_is_said_and_no_failure(tmp_path: Path) -> None:
    make(tmp_path, "json-query")
    file = own(tmp_path) / "json-query" / "tool.yaml"

    done = run("manifest", "check", cwd=tmp_path)
    as_json = json.loads(run("manifest", "check", "--json", cwd=tmp_path).stdout)

    note, *rest = done.stdout.splitlines()
    assert note.startswith(f"{file}:") and ": note: this json-query replaces the one that " in note
    assert (done.returncode, rest) == (0, ["Nothing is wrong: 1 tool."])
    assert [problem["is_fatal"] for problem in as_json["problems"]] == [False]


def test_a_new_tool_in_another_directory_says_when_a_change_is_seen_there(tmp_path: Path) -> None:
    made = run("manifest", "new", "weather", "--dir", "tools", cwd=tmp_path)

    assert (
        "Change it:   edit these files; a running server sees it within two seconds, "
        "or at its next start where its tools may write to them\n"
    ) in made.stdout


@pytest.mark.parametrize("folder", ["weather", "another"])
def test_a_call_of_a_tool_whose_manifest_is_broken_says_what_is_wrong_with_it(tmp_path: Path, folder: str) -> None:
    make(tmp_path, "weather")
    make(tmp_path, "moon")
    (own(tmp_path) / "weather").rename(own(tmp_path) / folder)
    file = own(tmp_path) / folder / "tool.yaml"
    text = file.read_text()
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "sideEffect:" in each)
    file.write_text(text.replace("sideEffect: none", "sideEffect: nothing"))

    broken = run("call", "weather__today", "city=Paris", cwd=tmp_path)
    unknown = run("call", "tide__today", "city=Paris", cwd=tmp_path)

    assert broken.returncode == unknown.returncode != 0
    assert (
        f"weather__today is not there, since its manifest cannot be used: {file}:{line}: "
        "spec.exports[0].sideEffect: the text 'nothing' is unknown"
    ) in broken.stdout
    assert "Tell the user: write one of none, read_only" in broken.stdout
    assert "tool not found: tide__today" in unknown.stdout + unknown.stderr


def test_a_handler_that_does_not_take_what_it_is_called_with_is_told(tmp_path: Path) -> None:
    make(tmp_path, "weather")
    handlers = own(tmp_path) / "weather" / "handlers.py"
    manifest = own(tmp_path) / "weather" / "tool.yaml"
    name = next(n for n, text in enumerate(manifest.read_text().splitlines(), 1) if "- name: today" in text)
    handlers.write_text("async def today(input):\n    return input\n\n\nhandlers = {'today': today}\n")

    done = run("manifest", "check", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (
        1,
        f"{manifest}:{name}: error: the handler 'today' takes (input), and is called with ctx and the input; "
        "give it the parameters (ctx, input)\n",
    )
