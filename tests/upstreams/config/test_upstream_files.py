"""What a user may write about upstreams, and what they are told when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.config.entry import HttpEndpoint, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.config.upstream_files import UpstreamProblem, load_upstream_files
from tests.upstreams.fleet import load


def one(folder: Path, entry: Any, **environ: str) -> UpstreamConfig | UpstreamProblem:
    files = load(folder, {"x": entry}, **environ)
    (found,) = (*files.configs, *files.problems)
    return found


# CFG-1
def test_a_claude_desktop_file_loads_as_it_is(tmp_path: Path) -> None:
    files = load(
        tmp_path,
        {
            "files": {"command": "npx", "args": ["-y", "@scope/server", "/tmp"], "env": {"TOKEN": "t"}},
            "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}},
        },
    )

    assert files.problems == ()
    assert files.configs == (
        UpstreamConfig(
            name="files",
            server="files",
            target=StdioLaunch("npx", ("-y", "@scope/server", "/tmp"), {"TOKEN": "t"}),
        ),
        UpstreamConfig(
            name="web",
            server="web",
            target=HttpEndpoint("https://example.org/mcp", {"Authorization": "Bearer x"}),
        ),
    )


def test_our_own_keys_are_read(tmp_path: Path) -> None:
    config = one(
        tmp_path,
        {
            "command": "x",
            "naming": "gh",
            "timeout_s": 5,
            "idle_timeout_s": 2.5,
            "concurrency": 3,
            "start": "eager",
            "trust_annotations": True,
            "sanitize": True,
            "input_check": "off",
            "output_check": "strict",
            "enabled_tools": ["a", "b"],
            "disabled_tools": ["b"],
        },
    )

    assert config == UpstreamConfig(
        name="x",
        server="x",
        target=StdioLaunch("x"),
        naming="gh",
        timeout_s=5.0,
        idle_timeout_s=2.5,
        concurrency=3,
        start="eager",
        trust_annotations=True,
        sanitize=True,
        input_check="off",
        output_check="strict",
        enabled_tools=("a", "b"),
        disabled_tools=("b",),
    )


# CFG-1
def test_a_script_among_the_arguments_may_be_longer_than_a_name_of_a_file(tmp_path: Path) -> None:
    script = "print('/')" + "#" * 5_000

    config = one(tmp_path, {"command": "python", "args": ["-c", script]})

    assert isinstance(config, UpstreamConfig)
    assert config.target == StdioLaunch("python", ("-c", script))


def test_an_unknown_key_is_reported_and_the_entry_works(tmp_path: Path) -> None:
    files = load(tmp_path, {"x": {"command": "x", "autoApprove": ["a"]}})

    assert [config.name for config in files.configs] == ["x"]
    (problem,) = files.problems
    assert (problem.reason_code, problem.message, problem.is_fatal) == (
        "unknown_key",
        "autoApprove: unknown key, ignored",
        False,
    )


def test_an_unknown_key_that_is_nearly_a_known_one_is_reported_with_that(tmp_path: Path) -> None:
    files = load(tmp_path, {"x": {"command": "x", "Args": [], "timeout": 3}})

    assert [problem.message for problem in files.problems] == [
        "Args: unknown key, ignored; did you mean args?",
        "timeout: unknown key, ignored; did you mean timeout_s?",
    ]


# NAM-3, CFG-3
@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("npx", '"npx" is not an object'),
        ({}, "has neither command nor url; write one of them"),
        ({"comand": "x"}, "comand: unknown key; did you mean command?"),
        ({"URL": "http://h"}, "URL: unknown key; did you mean url?"),
        ({"command": "x", "url": "http://h"}, "has both command and url; write one of them"),
        ({"command": ""}, 'command: "" is not a program'),
        ({"command": ["x"]}, 'command: ["x"] is not a program'),
        ({"command": "x\0y"}, 'command: "x\\u0000y" holds a NUL'),
        ({"command": "x", "args": ["a", "b\0"]}, 'args: "b\\u0000" holds a NUL'),
        ({"command": "x", "cwd": "/a\0"}, 'cwd: "/a\\u0000" holds a NUL'),
        ({"command": "x", "env": {"A=B": "c"}}, 'env: "A=B" is no name'),
        ({"command": "x", "env": {"": "c"}}, 'env: "" is no name'),
        ({"url": "http://h", "headers": {"A\nB": "c"}}, 'headers: "A\\nB" is no name'),
        (
            {"url": "https://h", "oauth": {"client_id": "a", "client_secret": "b"}},
            "oauth.client_secret: goes with an issuer",
        ),
        ({"command": "x", "args": "-y"}, 'args: "-y" is not a list of texts'),
        ({"command": "x", "env": {"PORT": 80}}, "env.PORT: is int, not text; put it in quotes"),
        pytest.param({"command": "./server"}, 'command: "./server" is a relative path', id="UP-42-relative"),
        pytest.param({"command": "bin/server"}, 'command: "bin/server" is a relative path', id="UP-42-below"),
        ({"command": "x", "cwd": "here"}, 'cwd: "here" is not an absolute path'),
        ({"command": "x", "timeout_s": "fast"}, 'timeout_s: "fast" is not a number of seconds'),
        ({"command": "x", "timeout_s": -1}, "timeout_s: -1 is not a number of seconds"),
        ({"command": "x", "concurrency": 0}, "concurrency: 0 is not a whole number from 1 to 1000"),
        ({"command": "x", "start": "now"}, 'start: "now" is not a way to start; write lazy or eager'),
        ({"command": "x", "naming": "a__b"}, 'naming: "a__b" is not qualified, flat or an alias'),
        ({"command": "x", "naming": "mcp"}, 'naming: "mcp" is not qualified, flat or an alias'),
        ({"command": "x", "trust_annotations": "yes"}, 'trust_annotations: "yes" is not true or false'),
        ({"command": "x", "input_check": "warn"}, 'input_check: "warn" is not a mode; write off or strict'),
        ({"command": "x", "output_check": "loud"}, 'output_check: "loud" is not a mode; write off, warn or strict'),
        ({"command": "x", "enabled_tools": "a"}, 'enabled_tools: "a" is not a list of names'),
        ({"command": "x", "disabled_tools": [1]}, "disabled_tools: [1] is not a list of names"),
        ({"command": "x", "docs": ["a"]}, 'docs: ["a"] is not an object of names of its tools and texts'),
        ({"command": "x", "docs": {"a": 1}}, "docs.a: 1 is neither a text nor an object of long and examples"),
        ({"command": "x", "docs": {"a": {"text": ""}}}, 'docs.a: {"text": ""} is neither a text nor an object'),
        ({"command": "x", "docs": {"a": {"long": 1}}}, "docs.a: long is a text, examples are a list of"),
        ({"command": "x", "docs": {"a": {"examples": [{"input": 1}]}}}, 'docs.a: {"input": 1} is no example; write {d'),
        ({"url": "example.org"}, 'url: "example.org" is not an http or https address'),
        ({"url": "http://[bad"}, 'url: "http://[bad" is not an http or https address'),
        ({"url": "http://h:99999/mcp?k=s3cr3t"}, "url: its port is no number from 1 to 65535; write e.g. https://host"),
        ({"url": "http://h:0/mcp"}, "url: its port is no number from 1 to 65535"),
        ({"url": "http://h", "headers": {"A": "Bearer s3cr3t-é"}}, "headers.A: holds a character that no header can"),
        ({"url": "http://h", "headers": {"A": "s3cr3t\x01"}}, "headers.A: holds a character that no header can carry"),
        ({"url": "http://h", "headers": {"Ä b": "s3cr3t"}}, 'headers: "\\u00c4 b" is no name'),
        ({"url": "http://u:p@h/mcp"}, "url: holds a user name or password; put them into headers"),
        ({"url": "http://h", "headers": {"A": "b\nc"}}, "headers.A: holds a line end or NUL"),
        ({"url": "http://h", "type": "sse"}, "type: sse is the retired HTTP+SSE transport"),
        ({"url": "http://h", "type": "pigeon"}, 'type: "pigeon" is no transport'),
        ({"command": "x", "env": {"T": "${env:NOT_THERE}"}}, "the environment variable 'NOT_THERE' is not set"),
        (
            {"command": "x", "env": {"T": "${keyrng:goat/tok}"}},
            "${keyrng:...}: there are no references of this kind, only env, secret, keyring, file; write ${keyring:",
        ),
        ({"command": "x", "env": {"T": "a ${what:ever}"}}, "${what:...}: there are no references of this kind"),
        ({"command": "x", "env": {"T": "${File:~/k}"}}, "write ${file:...}"),
        ({"url": "http://h", "headers": {"A": "Bearer ${Env:T}"}}, "write ${env:...}"),
        ({"command": "x", "env": {"T": "${env:OPEN"}}, "${env:...: a reference that does not end; close it with }"),
        ({"command": "x", "env": {"T": "${env:XX:-${env:YY}}"}}, "${XX:-...}: a default holds no other reference"),
        ({"command": "x", "env": {"T": "${XX:-${YY}}"}}, "${XX:-...}: a default holds no other reference"),
        ({"command": "x", "env": {"T": "${keyring:a}"}}, "${keyring:a}: write ${keyring:SERVICE/USER}"),
        ({"command": "x", "env": {"T": "${file:a}"}}, "${file:a}: the path is not absolute; write it from / or ~"),
        ({"command": "x", "env": {"T": "${file:/no/where}"}}, "${file:/no/where}: there is no such file"),
        ({"command": "x", "env": {"T": "${file:/no/where:-x}"}}, "a secret has no default"),
        (
            {"command": "x", "args": ["-t", "${file:/k}"]},
            "args: ${file:/k} is a secret and would be seen there; put it",
        ),
        ({"command": "x", "args": ["--token=${env:MY_TOKEN}"]}, "args: ${env:MY_TOKEN} is a secret"),
        ({"command": "${keyring:a/b}"}, "command: ${keyring:a/b} is a secret and would be seen there; put it into env"),
        (
            {"url": "http://h/mcp?key=${API_KEY}"},
            "url: ${API_KEY} is a secret and would be seen there; put it into head",
        ),
    ],
)
def test_a_broken_entry_fails_alone_and_names_key_value_and_remedy(tmp_path: Path, entry: Any, told: str) -> None:
    files = load(tmp_path, {"bad": entry, "good": {"command": "x"}})

    assert [config.name for config in files.configs] == ["good"]
    (problem,) = files.problems
    assert (problem.name, problem.reason_code) == ("bad", "config_error")
    assert told in problem.message
    assert "s3cr3t" not in problem.message


# NAM-1
def test_two_names_that_are_alike_in_tool_names_are_an_error_of_the_second(tmp_path: Path) -> None:
    files = load(tmp_path, {"git.hub": {"command": "a"}, "git_hub": {"command": "b"}, "é": {"command": "c"}})

    assert [config.name for config in files.configs] == ["git.hub"]
    assert [problem.name for problem in files.problems] == ["git_hub", "é"]
    assert "'git_hub' has the same name as 'git.hub' in tool names ('git_hub'); rename one" in files.problems[0].message


def test_a_name_written_twice_is_an_error_of_the_second(tmp_path: Path) -> None:
    file = tmp_path / "u.json"
    file.write_text('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')

    files = load_upstream_files([file])

    assert [config.target for config in files.configs] == [StdioLaunch("x")]
    assert [problem.reason_code for problem in files.problems] == ["config_error"]


def test_a_disabled_entry_is_left_out_and_reported(tmp_path: Path) -> None:
    found = one(tmp_path, {"command": "x", "disabled": True})

    assert isinstance(found, UpstreamProblem)
    assert (found.reason_code, found.is_fatal) == ("disabled", True)


# CFG-3
def test_variables_are_replaced_and_defaults_stand_in(tmp_path: Path) -> None:
    entry = {"command": "sh", "args": ["-c", "echo ${x}", "${HOME}"], "env": {"A": "${env:A}-${B:-b}"}}

    config = one(tmp_path, entry, HOME="/h", A="a")

    assert isinstance(config, UpstreamConfig)
    assert config.target == StdioLaunch("sh", ("-c", "echo ${x}", "/h"), {"A": "a-b"})


# CFG-3
@pytest.mark.parametrize(
    "text", ["${x}", "${x:-y}", "${x:0:3}", "${x:=y}", "${x:?no}", "${x%%:*}", "${#x}", "${unclosed"]
)
def test_what_a_shell_reads_is_left_to_it(tmp_path: Path, text: str) -> None:
    config = one(tmp_path, {"command": "sh", "args": ["-c", f"echo {text}"]})

    assert isinstance(config, UpstreamConfig)
    assert config.target == StdioLaunch("sh", ("-c", f"echo {text}"))


# CFG-3
def test_secret_values_are_not_part_of_the_fingerprint_and_launches_are(tmp_path: Path) -> None:
    def fingerprint(entry: dict[str, Any]) -> str:
        config = one(tmp_path, entry)
        assert isinstance(config, UpstreamConfig)
        return config.fingerprint

    base = fingerprint({"command": "x", "env": {"T": "1"}})

    assert fingerprint({"command": "x", "env": {"T": "2"}, "naming": "flat"}) == base
    assert fingerprint({"command": "x", "env": {"U": "1"}}) != base
    assert fingerprint({"command": "x", "args": ["y"], "env": {"T": "1"}}) != base


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "line 1, column 2: Expecting property name"),
        ('{"mcpServers":\n {"a": }}', "line 2, column 8: Expecting value"),
        ("[]", "has no mcpServers object"),
        ("{}", "has no mcpServers object"),
        ('{"mcpServers": []}', "mcpServers is not an object"),
    ],
)
def test_a_broken_file_is_an_error_that_says_where(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "u.json"
    file.write_text(content)

    with pytest.raises(ToolError) as caught:
        load_upstream_files([file])

    assert caught.value.code is ErrorCode.CONFIG
    assert caught.value.message.startswith(f"upstreams file {file}: {told}")
    assert "mcpServers" in caught.value.suggestion


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"nowhere\.json: No such file"):
        load_upstream_files([tmp_path / "nowhere.json"])


SELF = "{file}"


@pytest.mark.parametrize(
    ("entry", "skipped"),
    [
        ({"command": "goat-mcp", "args": ["serve", "--upstreams", SELF]}, True),
        ({"command": "/opt/venv/bin/goat-mcp", "args": [f"--upstreams={SELF}"]}, True),
        ({"command": "python", "args": ["-m", "goat_mcp", "serve", "--upstreams", SELF]}, True),
        ({"command": "uvx", "args": ["goat-mcp@latest", "serve", "--upstreams", SELF]}, True),
        (
            {"command": "uv", "args": ["run", "goat-mcp", "serve", "--upstreams", "upstreams.json"], "cwd": "{folder}"},
            True,
        ),
        ({"command": "goat-mcp", "args": [], "env": {"GOAT_MCP_UPSTREAMS": SELF}}, True),
        ({"command": "goat-mcp", "args": ["serve", "--upstreams", "/elsewhere.json"]}, False),
        ({"command": "goat-mcp", "args": ["serve"]}, False),
        ({"command": "other", "args": ["--upstreams", SELF]}, False),
    ],
)
def test_an_entry_that_would_start_us_again_is_skipped(tmp_path: Path, entry: dict[str, Any], skipped: bool) -> None:
    file = tmp_path / "upstreams.json"
    text = json.dumps(entry).replace("{file}", str(file)).replace("{folder}", str(tmp_path))

    found = one(tmp_path, json.loads(text))

    assert isinstance(found, UpstreamProblem) is skipped
    if isinstance(found, UpstreamProblem):
        assert found.reason_code == "self_launch"


def test_an_entry_that_would_start_us_with_the_users_own_file_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "goat-mcp").mkdir()

    found = one(tmp_path / "goat-mcp", {"command": "goat-mcp", "args": ["serve"]})
    other = one(tmp_path / "goat-mcp", {"command": "goat-mcp", "args": ["serve", "--config", "other.yaml"]})

    assert isinstance(found, UpstreamProblem) and found.reason_code == "self_launch"
    assert isinstance(other, UpstreamConfig)
