"""Hosts whose files are YAML: what cannot be edited is refused with its position, and no diff shows a secret. CFG-2."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host_file import HostFile, read_host_file
from goat_mcp.cli.hosts.sources import source_from
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.state.file_edit import Change

LAUNCH = {"command": "goat-mcp", "args": ["serve"]}
SECRETS = """\
mcpServers:
  - name: search
    command: npx
    args:
      - --api-key
      - abcdEFGH1234xyz
    env:
      MODE: fast and furious
      # why
      SEARCH_KEY: "quoted 'thing'"  # theirs
      FROM: ${{ secrets.FROM }}
    cwd: /srv
  - name: remote
    requestOptions:
      headers: {X-Key: yyy-zzz}
"""


def file(host: str, text: str) -> HostFile:
    return HostFile(HOSTS[host], Path("/home/me/config.yaml"), text.encode(), HOSTS[host].root)


@pytest.mark.parametrize(
    ("host", "text", "said"),
    [
        ("goose", "extensions: [", "line 1, column 14: it is not valid YAML"),
        ("goose", "extensions:\n  a: {}\n  a: {}\n", "line 3, column 3: it is not valid YAML: the key 'a' stands here"),
        ("goose", "extensions: [a]\n", "extensions is not an object of servers"),
        ("goose", "x: &x {}\nextensions: *x\n", "line 2, column 13: an anchor, an alias or a tag"),
        ("goose", "- a\n", "it is not a mapping"),
        ("continue", "mcpServers: {a: {}}\n", "mcpServers is not a list of servers"),
        ("continue", "mcpServers:\n  - name: a\n  - name: a\n", "mcpServers holds two servers that are named 'a'"),
    ],
)
def test_what_cannot_be_read_or_edited_is_refused_with_its_position(host: str, text: str, said: str) -> None:
    with pytest.raises(ToolError) as raised:
        found = file(host, text)
        found.changed(remove=list(found.entries), add={"goat": LAUNCH})

    assert raised.value.code is ErrorCode.CONFIG
    assert said in raised.value.message and "/home/me/config.yaml" in raised.value.message
    assert raised.value.suggestion == "Nothing was changed. Fix the file and try again."


def test_an_entry_of_the_same_name_is_replaced_where_it_stands() -> None:
    text = "extensions:\n  goat: {cmd: old}  # ours\n  other:\n    cmd: x\n"

    changed = file("goose", text).changed(remove=["goat"], add={"goat": {"cmd": "new"}}).decode()

    assert changed == ("extensions:\n  goat:  # ours\n    name: goat\n    cmd: new\n  other:\n    cmd: x\n")


def test_an_item_without_a_name_stays_where_it_is() -> None:
    text = "mcpServers:\n  - uses: somebody/memory\n  - name: a\n    command: x\n"

    found = file("continue", text)

    assert list(found.entries) == ["a"]
    assert found.changed(remove=["a"], add={}) == b"mcpServers:\n  - uses: somebody/memory\n"


def test_a_name_that_yaml_takes_for_a_number_or_a_truth_value_is_a_name() -> None:
    text = "extensions:\n  1: {cmd: a}\n  on: {cmd: b}\n"

    found = file("goose", text)

    assert list(found.entries) == ["1", "on"]
    assert found.changed(remove=["1", "on"], add={}) == b"extensions: {}\n"


@pytest.mark.parametrize("host", ["goose", "continue", "codex", "cursor"])
@pytest.mark.parametrize("data", [None, b"", b"\xef\xbb\xbf \n"])
def test_a_blank_file_holds_no_servers_and_takes_one(host: str, data: bytes | None) -> None:
    found = HostFile(HOSTS[host], Path("/home/me/config"), data, HOSTS[host].root)

    changed = HostFile(HOSTS[host], found.path, found.changed(remove=(), add={"goat": LAUNCH}), found.root)

    assert (found.entries, list(changed.entries)) == ({}, ["goat"])


def test_no_diff_of_a_yaml_file_shows_a_secret() -> None:
    shown = redacted_diff(Change(Path("config.yaml"), SECRETS.encode(), b""))

    assert [word for word in ("abcdEFGH", "furious", "thing", "yyy-zzz") if word in shown] == []
    assert "${{ secrets.FROM }}" in shown and "cwd: /srv" in shown and "# why" in shown


def test_a_file_that_is_named_is_read_in_the_notation_of_its_keys(tmp_path: Path) -> None:
    goose, others = tmp_path / "a.yaml", tmp_path / "b.yaml"
    goose.write_text("extensions: {a: {cmd: x}}\n")
    others.write_text("mcpServers: [{name: a, command: x}]\n")

    assert [source_from(path, None, None).host.name for path in (goose, others)] == ["goose", "continue"]


def test_a_new_file_says_what_its_host_wants_besides_servers(tmp_path: Path) -> None:
    found = read_host_file(HOSTS["continue"], tmp_path / "config.yaml")

    assert found.changed(remove=(), add={"goat": LAUNCH}).decode() == (
        'name: Local config\nversion: "1.0.0"\nschema: v1\nmcpServers:\n'
        "  - name: goat\n    command: goat-mcp\n    args:\n      - serve\n"
    )


@pytest.mark.parametrize(
    "value", ["abcdEFGH1234xyz", "'abcdEFGH1234xyz'", '"hunter2 and more"', "\n    'on its own line'"]
)
def test_no_diff_shows_a_secret_that_is_the_first_of_its_level(value: str) -> None:
    shown = redacted_diff(Change(Path("goat-mcp.yaml"), f"agent:\n  key: {value}\n".encode(), b"mode: plan\n"))

    assert "-  key: " in shown
    assert value.strip().strip("'\"") not in shown
