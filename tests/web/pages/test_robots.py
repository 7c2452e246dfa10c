"""What a robots.txt allows (RFC 9309)."""

from __future__ import annotations

import tracemalloc

import pytest

from goat_mcp.web.pages.robots import Robots


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("", "/x", True),
        ("User-agent: *\nDisallow:", "/x", True),
        ("User-agent: *\nDisallow: /", "/x", False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow: /a", "/b", True),
        ("User-agent: *\nDisallow: /a", "/ab", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", True),
        ("User-agent: *\nDisallow: /a*b*c", "/a1b2c3", False),
        ("User-agent: *\nDisallow: /a*b*c", "/a1c2b3", True),
        ("User-agent: *\nDisallow: /a$", "/a", False),
        ("User-agent: *\nDisallow: /a$", "/ab", True),
        ("User-agent: *\nDisallow: /*a*a$", "/a", True),
        ("User-agent: *\nDisallow: /x?y=", "/x?y=1", False),
        ("User-agent: *\nDisallow: /ü", "/%C3%BCber", False),
        ("User-agent: other\nDisallow: /", "/x", True),
        ("User-agent: other\nUser-agent: GOAT-MCP\nDisallow: /", "/x", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: goat-mcp\nAllow: /", "/x", True),
        ("User-agent: goat-mcp\nDisallow: /a\nUser-agent: goat-mcp\nDisallow: /b", "/a", False),
        ("User-agent: goat-mcp\nDisallow: /a\nUser-agent: goat-mcp\nDisallow: /b", "/b", False),
        ("\ufeffuser-AGENT : * # all\r\n disallow : /a # there\r\n", "/a", False),
        ("Disallow: /", "/x", True),
        ("User-agent: *\nSitemap: https://x/\nDisallow: /a", "/a", False),
        ("<html><body>Disallow: /</body></html>", "/x", True),
        ("User-agent: goat-mcp/1.0\nDisallow: /", "/x", False),
        ("User-agent: goat-mcp2\nDisallow: /", "/x", True),
        ("User-agent: * all of them\nDisallow: /", "/x", False),
        ("User-agent: *\nDisallow: /private", "/%70rivate/x", False),
        ("User-agent: *\nDisallow: /%70rivate", "/private/x", False),
        ("User-agent: *\nDisallow: /~joe/", "/%7ejoe/x", False),
        ("User-agent: *\nDisallow: /a%3cd", "/a%3Cd", False),
        ("User-agent: *\nDisallow: /a|b", "/a|b", False),
        ("User-agent: *\nDisallow: /a%2Fb", "/a/b", True),
        ("User-agent: other\n" + "Disallow: /x\n" * 6_000 + "User-agent: *\nDisallow: /a", "/a", False),
    ],
)
def test_the_longest_matching_rule_for_us_counts(rules: str, path: str, allowed: bool) -> None:
    assert Robots(rules).allows(path) is allowed


def test_a_pattern_of_many_stars_is_matched_without_backtracking() -> None:
    assert Robots("User-agent: *\nDisallow: /" + "*a" * 5_000 + "b$").allows("/" + "a" * 7_000)


def test_rules_for_very_many_agents_take_little_memory() -> None:
    text = "User-agent: goat-mcp\nUser-agent: other\n" * 500 + "Allow: /a\n" * 4_999 + "Disallow: /b\n"

    tracemalloc.start()
    try:
        robots = Robots(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert not robots.allows("/b")
    assert peak < 20_000_000
