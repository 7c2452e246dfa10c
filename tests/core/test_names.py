"""Names of upstream tools: what every host accepts, and what never depends on who else is connected."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from goat_mcp.core.names import NAME_CAP, InvalidName, UpstreamName, clean_server_name, exposed_name, split_name

SERVERS = st.from_regex(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", fullmatch=True)
TOOLS = st.text(min_size=1)
ACCEPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


# NAM-1, CHN-1
@given(SERVERS, TOOLS)
@example("inner", "mcp__gh__x")
@example("a", "_b__")
@example("a", "__")
def test_a_name_that_was_put_together_comes_apart_the_same(server: str, tool: str) -> None:
    assert split_name(str(UpstreamName(server, tool))) == UpstreamName(server, tool)


# NAM-1
@given(st.text())
@example("a__b")
@example("_x_")
@example("git.hub/é")
def test_a_cleaned_server_name_parses_back_out_of_a_tool_name(key: str) -> None:
    try:
        server = clean_server_name(key)
    except InvalidName:
        assert not re.search(r"[A-Za-z0-9-]", key)
        return

    assert "__" not in server and not server.startswith("_") and not server.endswith("_")
    assert clean_server_name(server) == server
    assert split_name(f"mcp__{server}___tool__") == UpstreamName(server, "_tool__")


# NAM-4
@given(SERVERS.map(lambda server: server[:20].strip("_") or "s"), st.text())
@example("s", "")
@example("s", "x" * 200)
@example("s", "a.b")
@example("s", "7up")
@example("s", "r\u0435ad")  # a Cyrillic letter among Latin ones
def test_every_exposed_name_is_one_that_hosts_accept(server: str, native: str) -> None:
    for prefix in (f"mcp__{server}__", "", "gh__"):
        name = exposed_name(prefix, native, server=server)

        assert ACCEPTED.match(name) and len(name) <= NAME_CAP
        digest = hashlib.sha256(f"{server}\0{native}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        assert name == prefix + native or name.endswith("_" + digest)


# NAM-4
def test_a_name_that_had_to_be_cleaned_never_meets_one_that_is_clean() -> None:
    assert exposed_name("", "a_b", server="s") == "a_b"
    assert exposed_name("", "a.b", server="s") == "a_b_" + hashlib.sha256(b"s\0a.b").hexdigest()[:8]
    assert exposed_name("", "a.b", server="t") != exposed_name("", "a.b", server="s")


@pytest.mark.parametrize("name", ["mcp__a", "mcp__a__", "mcp____b", "xmcp__a__b", "a__b__c", "mcp", ""])
def test_what_is_no_upstream_name_is_refused_with_the_name_in_the_message(name: str) -> None:
    with pytest.raises(InvalidName, match=re.escape(repr(name))):
        split_name(name)
