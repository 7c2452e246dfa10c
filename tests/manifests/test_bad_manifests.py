"""What is wrong with a manifest is said with file, line and remedy, and the rest is loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.manifests.folder import ManifestFolders
from tests.manifests.documents import TOOL, put

HEAD = "apiVersion: goat-mcp/v1\nkind: {}\nmetadata: {{name: other}}\n"
NAME_WANTED = "letters, digits, - and single _, beginning with a letter"
EFFECT = "      sideEffect: read_only\n"
BOMB = "\n".join(f"{name}: &{name} [{', '.join([of] * 10)}]" for name, of in (("a", "1"), ("b", "*a"), ("c", "*b")))


def but(old: str, new: str) -> str:
    """The good document with one thing changed."""
    assert TOOL.count(old) == 1
    return TOOL.replace(old, new)


def entry(text: str) -> str:
    return but("./handlers.py", text)


def export(text: str) -> str:
    """With a line more in its export, the eleventh."""
    return but(EFFECT, f"{EFFECT}      {text}\n")


BAD: dict[str, tuple[str | bytes, str]] = {
    # What is no YAML, or more of it than a manifest is.
    "indentation": (
        but("  name: weather\n", "  name: weather\n bad\n"),
        "5: not YAML: did not find expected key; fix the indentation or quote the value",
    ),
    "tab": (
        but("  name: weather", "\tname: weather"),
        "4: not YAML: found character that cannot start any token; fix the indentation or quote the value",
    ),
    "colon-in-text": (
        but("The weather of", "The weather: of"),
        "9: not YAML: mapping values are not allowed in this context; fix the indentation or quote the value",
    ),
    "control-character": (
        f"{TOOL}# \0\n",
        "16: not YAML: unacceptable character #x0000: control characters are not allowed; "
        "fix the indentation or quote the value",
    ),
    "not-utf-8": (TOOL.encode() + b"# \xff\n", "16: the file is not UTF-8 text; save it as UTF-8"),
    "key-twice": (
        but("kind: Tool\n", "kind: Tool\nkind: Tool\n"),
        "3: the key 'kind' stands twice; take one of them away",
    ),
    "merge-key": (
        but("  name: weather", "  <<: {name: x}"),
        "4: a key is not a plain text; write it out; `<<` is not supported",
    ),
    "tag": (
        but("name: weather", "name: !!python/name:os.system x"),
        "4: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported; write a plain value",
    ),
    "bomb": (
        f"apiVersion: goat-mcp/v1\n{BOMB}\nd: [{', '.join(['*c'] * 10)}]\n",
        "2: holds too many values; at most 10000, 40 deep",
    ),
    "holds-itself": (
        "apiVersion: goat-mcp/v1\nspec: &a\n  b: *a\n",
        "2: holds too many values; at most 10000, 40 deep",
    ),
    **{
        f"deep-{name}": (text, "1: holds too many values; at most 10000, 40 deep")
        # The reader calls itself for each level: these ended the process.
        for name, text in (("flow", "[" * 200_000), ("lines", "- " * 100_000), ("keys", "? " * 100_000))
    },
    "huge-number": (
        export(f"timeoutMs: 0x{'F' * 6000}"),
        f"11: '0x{'F' * 57} is no whole number that JSON has; quote it to make it a text",
    ),
    "long-number": (
        export(f"timeoutMs: {'9' * 200}"),
        f"11: spec.exports[0].timeoutMs: {'9' * 60} is out of range; write 1 to 45000",
    ),
    **{
        f"no-number-{value}": (
            but("{type: string}", f"{{type: number, maximum: {value}}}"),
            f"14: '{value}' is no number that JSON has; quote it to make it a text",
        )
        for value in (".inf", "-.Inf", ".nan")
    },
    "tag-of-a-mapping": (
        but("metadata:\n", "metadata: !!python/object:os.system\n"),
        "3: the tag 'tag:yaml.org,2002:python/object:os.system' is not supported; write a plain value",
    ),
    "tag-of-a-list": (
        but("  exports:\n", "  exports: !!omap\n"),
        "7: the tag 'tag:yaml.org,2002:omap' is not supported; write a plain value",
    ),
    "alias-of-nothing": (
        but("The weather of a city, today.", "*weather"),
        "9: not YAML: found undefined alias; fix the indentation or quote the value",
    ),
    "utf-16": (TOOL.encode("utf-16"), "1: the file is not UTF-8 text; save it as UTF-8"),
    "ten-megabytes": (TOOL + "#" * 10_000_000, "1: the file is longer than 262144 bytes; split it"),
    **{
        f"holds-{name}": (
            text,
            f"1: here is {said}; begin it with apiVersion: goat-mcp/v1 and kind: Tool, or remove it",
        )
        for name, text, said in (("a-list", "- 1\n", "a list"), ("a-text", "weather\n", "the text 'weather'"))
    },
    "too-long": (TOOL + "#" * 256 * 1024, "1: the file is longer than 262144 bytes; split it"),
    **{
        f"empty-{name}": (
            text,
            "1: the file is empty; begin it with apiVersion: goat-mcp/v1 and kind: Tool, or remove it",
        )
        for name, text in (("file", ""), ("document", "---\n"), ("comments", "# name: weather\n# kind: Tool\n"))
    },
    # The outermost members.
    "no-version": (but("apiVersion: goat-mcp/v1\n", ""), "1: apiVersion is missing; write goat-mcp/v1"),
    "other-version": (but("goat-mcp/v1", "goat-mcp/v2"), "1: apiVersion 'goat-mcp/v2' is unknown; write goat-mcp/v1"),
    "no-kind": (but("kind: Tool\n", ""), "1: kind is missing; write one of Tool, Upstream, Toolset, Profile, Agent"),
    "empty-kind": (
        but("kind: Tool\n", "kind:\n"),
        "2: kind has no value; write one of Tool, Upstream, Toolset, Profile, Agent",
    ),
    "other-kind": (but("kind: Tool\n", "kind: tools\n"), "2: kind: the text 'tools' is unknown; did you mean Tool?"),
    "unknown-member": (f"{TOOL}specs: 1\n", "16: specs is unknown; did you mean spec?"),
    "no-metadata": (
        but("metadata:\n  name: weather\n", ""),
        "1: metadata is missing; write members, as `key: value`",
    ),
    "empty-spec": (f"{HEAD.format('Tool')}spec:\n", "4: spec has no value; write members, as `key: value`"),
    # Names.
    "no-name": (but("  name: weather\n", "  labels: {}\n"), f"3: metadata.name is missing; write {NAME_WANTED}"),
    "separator-in-name": (
        but("name: weather", "name: my__weather"),
        f"4: metadata.name: 'my__weather' is no usable name; write {NAME_WANTED}",
    ),
    "upstreams-name": (
        but("name: weather", "name: mcp"),
        "4: metadata.name: mcp begins the names of upstream tools; choose another name",
    ),
    "name-is-no-text": (
        but("name: today", "name: off"),
        "8: spec.exports[0].name is the boolean 'off'; quote it: 'off'",
    ),
    "name-is-a-number": (
        but("name: today", "name: 5"),
        f"8: spec.exports[0].name is the number '5'; write {NAME_WANTED}",
    ),
    "resource-name-is-no-text": (
        but("name: weather", "name: on"),
        "4: metadata.name is the boolean 'on'; quote it: 'on'",
    ),
    "required-is-no-text": (
        but("required: [city]", "required: [city, on]"),
        "15: the schema: required holds the boolean 'on'; quote it: 'on'",
    ),
    "argument-is-no-text": (
        entry("{command: [./tool, yes]}"),
        "6: spec.entry.command holds the boolean 'yes'; quote it: 'yes'",
    ),
    "name-too-long": (
        but("name: today", f"name: {'x' * 42}"),
        f"8: weather__{'x' * 42} has 51 characters; hosts take 50: shorten a part",
    ),
    # What runs.
    "no-entry": (
        but("  entry: ./handlers.py\n", ""),
        "5: spec.entry is missing; write a Python or JavaScript file (./tool.py, ./index.js), {command: [...]}, "
        "or {http: {url: ...}}",
    ),
    "entry-is-gone": (
        entry("./handler.py"),
        "6: ./handler.py is not there; create handler.py beside the manifest, or fix the path",
    ),
    "entry-with-nul": (
        entry('"./hand\\0lers.py"'),
        "6: './hand\\x00lers.py' holds a NUL character; take it out",
    ),
    "entry-leads-to-itself": (
        entry("./loop.py"),
        "6: ./loop.py is not there; create loop.py beside the manifest, or fix the path",
    ),
    "entry-is-a-pipe": (
        entry("./pipe.py"),
        "6: ./pipe.py is not there; create pipe.py beside the manifest, or fix the path",
    ),
    "argument-with-nul": (
        entry('{command: [./tool, "a\\0b"]}'),
        "6: spec.entry.command holds a NUL character; take it out",
    ),
    "variable-with-nul": (
        entry('{command: [./tool], env: {KEY: "a\\0b"}}'),
        "6: spec.entry.env.KEY is no value of a variable: 'a\\x00b'; take the NUL character out",
    ),
    "variable-without-a-name": (
        entry('{command: [./tool], env: {"KEY=a": b}}'),
        "6: spec.entry.env: 'KEY=a' is no name of a variable; write e.g. WEATHER_KEY",
    ),
    "header-of-two-lines": (
        entry('{http: {url: "https://weather.example", headers: {key: "a\\nhost: b"}}}'),
        "6: spec.entry.http.headers.key is no value of a header: 'a\\nhost: b'; write it in one line",
    ),
    "header-without-a-name": (
        entry('{http: {url: "https://weather.example", headers: {"my key": b}}}'),
        "6: spec.entry.http.headers: 'my key' is no name of a header; write e.g. X-Api-Key",
    ),
    "url-with-nul": (
        entry('"https://weather.example/\\0"'),
        "6: 'https://weather.example/\\x00' is no http or https URL; write e.g. https://host/path",
    ),
    "entry-outside": (
        entry("../handlers.py"),
        "6: ../handlers.py lies outside the manifest's directory; move the file beside the manifest",
    ),
    "entry-is-a-script": (
        entry("./tool.sh"),
        "6: spec.entry: ./tool.sh is no Python or JavaScript file; write entry: {command: [bash, ./tool.sh]}",
    ),
    "two-entries": (
        entry("{command: [a], module: b}"),
        "6: spec.entry is to be one thing; give exactly one of python, module, command, http",
    ),
    "command-is-one-text": (
        entry("{command: node tool.js}"),
        "6: spec.entry.command is one text; no shell reads it: write a list, [node, tool.js]",
    ),
    "no-url": (
        entry("{http: {url: weather.example}}"),
        "6: 'weather.example' is no http or https URL; write e.g. https://host/path",
    ),
    "password-in-url": (
        entry("'https://u:p@weather.example'"),
        "6: the URL holds a user name or password; send it as a header: headers: {Authorization: ...}",
    ),
    "method": (
        entry("{http: {url: 'https://weather.example', method: post}}"),
        "6: spec.entry.http.method: the text 'post' is unknown; did you mean POST?",
    ),
    # Exports.
    "no-exports": (
        f"{HEAD.format('Tool')}spec:\n  entry: ./handlers.py\n",
        "4: spec.exports is missing; write a list with at least one entry, each begun with `- `",
    ),
    "empty-exports": (
        f"{HEAD.format('Tool')}spec:\n  entry: ./handlers.py\n  exports: []\n",
        "6: spec.exports is empty; declare at least one",
    ),
    "exports-are-no-list": (
        f"{HEAD.format('Tool')}spec:\n  entry: ./handlers.py\n  exports: {{name: a}}\n",
        "6: spec.exports is a mapping; write a list with at least one entry, each begun with `- `",
    ),
    "export-is-a-text": (
        f"{HEAD.format('Tool')}spec:\n  entry: ./handlers.py\n  exports: [today]\n",
        "6: spec.exports[0] is the text 'today'; write its members",
    ),
    "export-twice": (
        f"{TOOL}    - {{name: today, description: Again., sideEffect: none}}\n",
        "16: the export 'today' is declared twice; rename one of them",
    ),
    "no-description": (
        but("      description: The weather of a city, today.\n", ""),
        "8: spec.exports[0].description is missing; write what it does and gives back, in a sentence or two",
    ),
    "unknown-in-export": (
        but("parameters:", "paramaters:"),
        "11: spec.exports[0].paramaters is unknown; did you mean parameters?",
    ),
    "side-effect": (
        but("read_only", "readonly"),
        "10: spec.exports[0].sideEffect: the text 'readonly' is unknown; did you mean read_only?",
    ),
    "reading-of-what-only-reads": (
        export("readOnlyWhen: {city: [a]}"),
        "11: readOnlyWhen says nothing of the side effect read_only; it is for mutating and blocking",
    ),
    "reading-by-no-parameter": (
        but(EFFECT, "      sideEffect: mutating\n      readOnlyWhen: {action: [list]}\n"),
        "11: readOnlyWhen names 'action', which is no parameter; name a parameter",
    ),
    "reading-by-nothing": (
        but(EFFECT, "      sideEffect: mutating\n      readOnlyWhen: {city: []}\n"),
        "11: readOnlyWhen.city has an empty text; write texts, * for any part of one",
    ),
    "risk": (export("risk: hihg"), "11: spec.exports[0].risk: the text 'hihg' is unknown; did you mean high?"),
    "unknown-hint": (
        export("hints: {readOnly: true}"),
        "11: spec.exports[0].hints.readOnly is unknown; did you mean readOnlyHint?",
    ),
    "hint-is-a-text": (
        export("hints: {readOnlyHint: 'yes'}"),
        "11: spec.exports[0].hints.readOnlyHint is the text 'yes'; write true or false",
    ),
    "timeout-too-long": (
        export("timeoutMs: 60000"),
        "11: spec.exports[0].timeoutMs: 60000 is out of range; write 1 to 45000",
    ),
    "timeout-with-unit": (
        export("timeoutMs: 60s"),
        "11: spec.exports[0].timeoutMs is the text '60s'; write a whole number from 1 to 45000",
    ),
    "access": (
        export("access: {reads: [path]}"),
        "11: access.reads names 'path', which is no parameter; name a parameter",
    ),
    "example-without-input": (
        export("examples: [{description: No input}]"),
        "11: spec.exports[0].examples[0].input is missing; write members, as `key: value`",
    ),
    "toolset-of-ours": (
        f"{TOOL}  toolset: base\n",
        "16: spec.toolset is unknown; known are entry, exports, errorMessageLimit, timeoutMs, config",
    ),
    # Schemas.
    "schema-of-no-object": (
        but("type: object", "type: array"),
        "11: spec.exports[0].parameters describes no object; begin it with `type: object`",
    ),
    "no-json-type": (
        but("{type: string}", "{type: text}"),
        "14: properties.city: type 'text' is no JSON type; "
        "write one of string, number, integer, boolean, array, object, null",
    ),
    "required-is-no-property": (
        but("required: [city]", "required: [town]"),
        "15: required names 'town', which is no property; declare it or take it off",
    ),
    "required-in-property": (
        but("{type: string}", "{type: string, required: true}"),
        "14: properties.city: required is no list of names; "
        "write a list of names beside `properties`: required: [city]",
    ),
    "property-without-schema": (
        but(" {type: string}", ""),
        "14: properties.city is no schema; write e.g. {type: string}",
    ),
    # The other kinds.
    "upstream-of-nothing": (
        f"{HEAD.format('Upstream')}spec: {{timeout_s: 3}}\n",
        "4: spec.transport is missing; write transport: {command: ..., args: [...]} or {url: ...}",
    ),
    "upstream-in-two-places": (
        f"{HEAD.format('Upstream')}spec:\n  command: x\n  transport: {{command: y}}\n",
        "5: command stands in spec and in spec.transport; take one of them away",
    ),
    "toolset-named-as-one-of-ours": (
        f"{HEAD.format('Toolset').replace('other', 'core')}spec: {{tools: [Read]}}\n",
        "3: core is a toolset of goat-mcp's own, which stays; give this one another name",
    ),
    "toolset-of-a-text": (
        f"{HEAD.format('Toolset')}spec: {{tools: Read}}\n",
        "4: spec.tools is no list of tools; write e.g. tools: [Read, weather__today, toolset:base]",
    ),
    "toolset-of-a-number": (
        f"{HEAD.format('Toolset')}spec: {{tools: [7]}}\n",
        "4: spec.tools[0] is no tool; write a name, or {kind: Tool, name: ...}",
    ),
    "agent-of-a-missing-prompt": (
        f"{HEAD.format('Agent')}spec: {{prompts: {{systemRef: gone.md}}}}\n",
        "4: gone.md is not there; create it beside the manifest, or fix the path",
    ),
    "agent-of-a-prompt-elsewhere": (
        f"{HEAD.format('Agent')}spec: {{prompts: {{systemRef: ../../x.md}}}}\n",
        "4: '../../x.md' lies outside the manifest's directory; move the file there",
    ),
    "agent-of-an-unknown-member": (
        f"{HEAD.format('Agent')}spec: {{tool: [Read]}}\n",
        "4: spec.tool is unknown; did you mean tools?",
    ),
    "goondan-of-an-unknown-kind": (
        "apiVersion: goondan.ai/v1\nkind: Tol\nmetadata: {name: other}\nspec: {}\n",
        "2: kind: the text 'Tol' is unknown; did you mean Tool?",
    ),
    "toolset-of-another-package": (
        f"{HEAD.format('Toolset')}spec: {{tools: [{{name: x, package: other}}]}}\n",
        "4: the package 'other' is not installed; known are @goondan/base, goat-mcp",
    ),
}
UNFIT = {
    # Texts that YAML takes for something else, and other values that their own type refuses: the kind, what is written,
    # and what is said of it.
    "enum": ("string", "enum: [true, auto]", "enum.0 is the boolean 'true', and the type is string; quote it: 'true'"),
    "time": (
        "string",
        "default: 12:30",
        "default is the number '12:30', and the type is string; quote it: '12:30'",
    ),
    "const": ("string", "const: False", "const is the boolean 'False', and the type is string; quote it: 'False'"),
    "example": ("string", "examples: [a, 7]", "examples.1 is the number '7', and the type is string; quote it: '7'"),
    "digits": (
        "integer",
        'enum: [1, "2"]',
        "enum.1 is the text '2', and the type is integer; take the quotes off: 2",
    ),
    "text": (
        "integer",
        "default: many",
        "default is the text 'many', and the type is integer; write a value of type integer, or fix the type",
    ),
    "null": (
        "string",
        "default: null",
        'default is nothing, and the type is string; write type: [string, "null"], or take it off',
    ),
    "null-word": (
        "string",
        "enum: [a, null]",
        "enum.1 is nothing, and the type is string; quote it: 'null', or write type: [string, \"null\"]",
    ),
    "item": (
        "array",
        "items: {type: string, enum: [7]}",
        "items.enum.0 is the number '7', and the type is string; quote it: '7'",
    ),
}
ODD = {
    **{
        f"unfit-{name}": (but("{type: string}", f"{{type: {kind}, {written}}}"), f"14: properties.city.{said}")
        for name, (kind, written, said) in UNFIT.items()
    },
    "empty-side-effect": (
        but("sideEffect: read_only", "sideEffect:"),
        "10: sideEffect has no value, so people are asked before each call; "
        "write one of none, read_only, mutating, network, blocking, spawns; until then it counts as network",
    ),
    "no-side-effect": (
        but(EFFECT, ""),
        "8: sideEffect is missing, so people are asked before each call; "
        "write one of none, read_only, mutating, network, blocking, spawns; until then it counts as network",
    ),
    **{
        f"limit-{limit}": (
            but("  exports:", f"  errorMessageLimit: {limit}\n  exports:"),
            f"7: spec.errorMessageLimit: {limit} is out of range and counts as {counts_as}; write 100 to 10000",
        )
        for limit, counts_as in ((99, 100), (-1, 100), (10_001, 10_000))
    },
    "long-description": (
        but("The weather of a city, today.", "x" * 1201),
        "9: the description has 1201 characters; hosts cut it: keep it to 1200",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_manifest_is_told_with_line_and_remedy_and_its_neighbours_are_loaded(tmp_path: Path, kind: str) -> None:
    text, said = BAD[kind]
    put(tmp_path / "a", TOOL.replace("name: weather", "name: first"))
    file = put(tmp_path / "b", text)
    (file.parent / "loop.py").symlink_to("loop.py")
    os.mkfifo(file.parent / "pipe.py")
    put(tmp_path / "c", TOOL.replace("name: weather", "name: last"))

    read = ManifestFolders([tmp_path]).read()

    assert [str(problem) for problem in read.problems] == [f"{file}:{said}"]
    assert [tool.name for tool in read.tools] == ["first", "last"]
    assert (read.upstreams, read.toolsets, read.profiles) == ((), (), ())


@pytest.mark.parametrize(
    "schema",
    [
        "{type: string, enum: ['on', 2024-01-01], default: 'on'}",
        "{type: boolean, default: on}",
        "{type: number, enum: [1, 2.5], default: 1}",
        "{type: integer, default: 2.0}",
        '{type: [integer, "null"], default: null, enum: [1, null]}',
        "{enum: [1, on, a]}",
        "{type: object, properties: {enum: {type: string}, default: {type: string}}}",
    ],
)
def test_values_that_fit_their_type_are_nothing_to_tell(tmp_path: Path, schema: str) -> None:
    put(tmp_path / "a", but("{type: string}", schema))

    assert ManifestFolders([tmp_path]).read().problems == ()


@pytest.mark.parametrize("kind", ODD)
def test_what_is_only_odd_is_told_and_used(tmp_path: Path, kind: str) -> None:
    text, said = ODD[kind]
    file = put(tmp_path / "a", text)

    read = ManifestFolders([tmp_path]).read()

    assert [str(problem) for problem in read.problems] == [f"{file}:{said}"]
    assert [tool.name for tool in read.tools] == ["weather"]


def test_all_that_is_wrong_with_a_document_is_told_at_once_in_the_order_of_its_lines(tmp_path: Path) -> None:
    text = but("{type: string}", "{type: text}").replace("read_only", "readonly").replace("./handlers", "./gone")
    file = put(tmp_path / "a", text)

    read = ManifestFolders([tmp_path]).read()

    assert [f"{problem.file}:{problem.line}" for problem in read.problems] == [f"{file}:{line}" for line in (6, 10, 14)]


def test_a_broken_document_leaves_the_others_of_its_file_alone(tmp_path: Path) -> None:
    file = put(tmp_path / "a", "---\n".join([TOOL, but("read_only", "readonly"), TOOL.replace("weather\n", "tide\n")]))

    read = ManifestFolders([tmp_path]).read()

    assert [tool.name for tool in read.tools] == ["weather", "tide"]
    assert [str(problem) for problem in read.problems] == [
        f"{file}:26: spec.exports[0].sideEffect: the text 'readonly' is unknown; did you mean read_only?"
    ]


def test_of_a_name_declared_twice_the_first_is_kept_and_the_second_told(tmp_path: Path) -> None:
    first = put(tmp_path / "a", TOOL)
    second = put(tmp_path / "b", f"# a comment\n{TOOL}")

    read = ManifestFolders([tmp_path]).read()

    assert [tool.document.file for tool in read.tools] == [first]
    assert [str(problem) for problem in read.problems] == [
        f"{second}:5: Tool weather is declared at {first}:1 already; rename one of them"
    ]


def test_a_directory_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    put(tmp_path / "open" / "a", TOOL)
    (tmp_path / "open").chmod(0o777)

    read = ManifestFolders([tmp_path / "open"]).read()

    assert read.tools == ()
    (problem,) = read.problems
    assert (problem.file, problem.line, problem.remedy) == (tmp_path / "open", 0, "fix its rights")
    assert problem.what.startswith("nothing of it is used: the directory is in ")
