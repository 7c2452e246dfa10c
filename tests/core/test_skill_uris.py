"""URIs of skills: qualified and back, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.skill_uris import is_skill_name, name_of, native, qualified, root_of, why_unusable

_SEGMENT = st.from_regex(r"[A-Za-z0-9._~-]{1,8}", fullmatch=True).filter(lambda one: one not in (".", ".."))


def _uri(scheme: str, segments: list[str]) -> str:
    return f"{scheme}://{'/'.join(segments)}"


_URIS = st.builds(
    _uri,
    st.sampled_from(["skill", "repo", "https", "git+ssh"]),
    st.lists(_SEGMENT, min_size=1, max_size=5),
)
_PREFIXES = st.sampled_from(["mcp__shop", "mcp__a-b", "till", ""])


# NAM-5
@given(_PREFIXES, _URIS)
def test_a_qualified_uri_leads_back_to_the_native_one(prefix: str, uri: str) -> None:
    assert why_unusable(uri) == ""
    assert native(prefix, qualified(prefix, uri)) == uri


@given(st.sampled_from(["mcp__shop", "mcp__bank"]), _URIS, st.sampled_from(["mcp__shop", "mcp__bank"]), _URIS)
def test_no_two_uris_have_one_qualified_uri(one: str, first: str, other: str, second: str) -> None:
    assert (qualified(one, first) == qualified(other, second)) == ((one, first) == (other, second))


def test_the_name_is_the_folders() -> None:
    assert root_of("skill://acme/billing/refunds/SKILL.md") == "skill://acme/billing/refunds"
    assert name_of("skill://acme/billing/refunds") == "refunds"
    assert [
        root_of(uri) for uri in ("skill://a/README.md", "SKILL.md", "skill:///SKILL.md", "skill://a//SKILL.md")
    ] == [None] * 4


@pytest.mark.parametrize(
    "uri",
    [
        *("", "a", "skill:a", "skill://", "skill://a//b", "skill://a/", "skill://a/../b", "skill://a/./b"),
        *(
            "skill://a/%2e%2e/b",
            "skill://a/%2E./b",
            "skill://a/b%2fc",
            "skill://a/b%5cc",
            "skill://a\\b",
            "skill://a?b",
        ),
        *(
            "skill://a#b",
            "skill://a b",
            "skill://a\n",
            "skill://a\u202eb",
            "skill://x:/a",
            "goat://todos",
            "ui://goat/a",
        ),
        *(f"skill://{'a' * 2_000}", "SKILL://a"),
    ],
)
def test_a_uri_that_could_lead_elsewhere_is_unusable(uri: str) -> None:
    assert why_unusable(uri)


def test_names_are_those_of_the_agent_skills_specification() -> None:
    assert all(map(is_skill_name, ("a", "a-b", "a1-2b", "x" * 64)))
    assert not any(map(is_skill_name, ("", "A", "a_b", "-a", "a-", "a--b", "x" * 65, "a\n", "ä", None, 1)))
