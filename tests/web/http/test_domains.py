"""Whether a host lies in a domain (R-NET-8)."""

from __future__ import annotations

import pytest

from goat_mcp.web.http.domains import NotAHost, ascii_host, host_is_in_domain


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("docs.example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("EXAMPLE.com.", "example.COM"),
        ("example.com", "example.com."),
        ("bücher.example", "xn--bcher-kva.example"),
        ("www.xn--bcher-kva.example", "BÜCHER.example"),
        ("example。com", "example.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
    ],
)
def test_a_domain_holds_itself_and_what_is_below(host: str, domain: str) -> None:
    assert host_is_in_domain(host, domain)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("notexample.com", "example.com"),
        ("example.com.evil.test", "example.com"),
        ("example.com-evil.test", "example.com"),
        ("examplecom", "example.com"),
        ("example.co", "example.com"),
        ("example.com", "docs.example.com"),
        ("com", "example.com"),
        ("exаmple.com", "example.com"),  # noqa: RUF001  # the Cyrillic letter is the point
        ("1.127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "0.0.1"),
        ("127.0.0.1", "1"),
        ("example.com", ""),
        ("", ""),
        ("", "example.com"),
        ("example.com", "*"),
        ("example.com", ".com"),
        ("example.com/x", "example.com"),
        ("user@example.com", "example.com"),
        ("example.com:80", "example.com"),
        ("evil.test\\.example.com", "example.com"),
        ("evil.test%00.example.com", "example.com"),
    ],
)
def test_a_lookalike_is_not_in_it(host: str, domain: str) -> None:
    assert not host_is_in_domain(host, domain)


def test_every_spelling_of_a_host_comes_out_alike() -> None:
    assert {ascii_host(text) for text in ("Bücher.Example", "bücher.example.", "xn--BCHER-kva.example")} == {
        "xn--bcher-kva.example"
    }


@pytest.mark.parametrize("text", ["", ".", "a..b", "a b", "a/b", "[::1]", "a%b", "-a", "a-", "ü" * 64])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(NotAHost):
        ascii_host(text)
