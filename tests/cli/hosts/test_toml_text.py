"""Editing TOML: some tables go, one comes, every other line stays. CFG-2."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.cli.hosts.toml_text import NotToml, edited_toml

CONFIG = '''\
model = "o"  # mine

# files
[mcp_servers.files]
command = "npx"
args = ["-y",
  "x"]

[mcp_servers.files.env]
NOTE = """
[mcp_servers.fake]
"""

[mcp_servers."a b"]  # odd
url = "https://h/mcp"

# how to show things
[tui]
theme = "dark"
'''
GOAT = {"command": "/bin/goat-mcp", "args": ["serve"], "env": {"A": 'q"\\'}}


def edited(text: str, *remove: str, **add: Any) -> str:
    return edited_toml(text, "mcp_servers", remove=remove, add=add)


def test_tables_go_with_what_is_below_them_and_the_rest_stays() -> None:
    assert edited(CONFIG, "files", "a b", goat={"command": "g", "args": ["serve"]}) == (
        'model = "o"  # mine\n\n[mcp_servers.goat]\ncommand = "g"\nargs = ["serve"]\n\n'
        '# how to show things\n[tui]\ntheme = "dark"\n'
    )


def test_a_table_is_added_at_the_end() -> None:
    assert edited(CONFIG, goat=GOAT) == (
        f'{CONFIG}\n[mcp_servers.goat]\ncommand = "/bin/goat-mcp"\nargs = ["serve"]\n\n'
        '[mcp_servers.goat.env]\nA = "q\\"\\\\"\n'
    )
    assert edited("", goat={"command": "g"}) == '[mcp_servers.goat]\ncommand = "g"\n'
    assert edited("a = 1", goat={"command": "g"}) == 'a = 1\n\n[mcp_servers.goat]\ncommand = "g"\n'


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { files = { command = "x" } }',
        '[mcp_servers]\nfiles = { command = "x" }',
        'mcp_servers.files.command = "x"',
    ],
    ids=["inline", "inline below", "dotted"],
)
def test_entries_written_in_another_way_are_refused_and_nothing_is_guessed(text: str) -> None:
    with pytest.raises(NotToml, match="cannot be edited without changing"):
        edited(text, "files", goat=GOAT)


def test_what_is_no_toml_is_refused_with_its_place() -> None:
    with pytest.raises(NotToml, match="line 2"):
        edited("a = 1\nb = c\n", goat=GOAT)


_NAMES = st.text('ab-_. é"', min_size=1, max_size=4)
_TEXTS = st.text("x[]#=\"'\\\n\t\x7fé", max_size=8)


@settings(deadline=None)
@given(
    st.dictionaries(_NAMES, st.fixed_dictionaries({"command": _TEXTS, "args": st.lists(_TEXTS, max_size=3)})), st.data()
)
def test_what_was_added_can_be_taken_out_again_byte_for_byte(servers: dict[str, Any], data: st.DataObject) -> None:
    names = {name: entry for name, entry in servers.items() if name not in ("files", "a b")}

    added = edited_toml(CONFIG, "mcp_servers", remove=(), add=names)
    back = edited_toml(added, "mcp_servers", remove=[*names], add={})

    assert tomllib.loads(added)["mcp_servers"] == {**tomllib.loads(CONFIG)["mcp_servers"], **names}
    assert back.rstrip("\n") == CONFIG.rstrip("\n")


def test_comments_that_are_not_the_tables_own_stay() -> None:
    text = """\
# a is old
[mcp_servers.a]
command = "a"
# end of a

# the good ones

# b is good
[mcp_servers.b]
command = "b"  # behind b
"""

    edited = edited_toml(text, "mcp_servers", remove=["a"], add={"goat": {"command": "g"}})

    assert [line for line in edited.splitlines() if line] == [
        *("[mcp_servers.goat]", 'command = "g"', "# the good ones", "# b is good"),
        *("[mcp_servers.b]", 'command = "b"  # behind b'),
    ]
