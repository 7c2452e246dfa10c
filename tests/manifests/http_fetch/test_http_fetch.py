"""http-fetch: what comes back of a request, and what is never asked. Contract: tools.md, section 3; R-NET-1 to 8."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.shipped_tools import ShippedTools
from tests.tools.test_web_fetch import CANARY, REFUSED_URLS
from tests.web.http.local_server import LocalServer, page, redirect, serving

pytestmark = pytest.mark.anyio

EXPORTS = ("http-fetch__get", "http-fetch__post")


def body_of(server: LocalServer) -> bytes:
    """What the last request brought."""
    return server.requests[-1].partition(b"\r\n\r\n")[2]


def headers_of(server: LocalServer) -> dict[str, str]:
    lines = server.requests[-1].partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


# --- what comes back


async def test_an_answer_is_its_status_headers_body_and_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving({"/a": page('{"goats": 3}', content_type="application/json")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        result = await tools.call("http-fetch__get", url=server.url("/a?x=1"))

    expected = {
        "status": 200,
        "headers": {"content-type": "application/json", "content-length": "12"},
        "body": '{"goats": 3}',
        "truncated": False,
        "url": server.url("/a?x=1"),
    }
    assert result.structured == expected
    assert json.loads(result.text) == expected


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "304 Not Modified", "201 Created", "429 Slow"])
async def test_any_status_is_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    body = b"" if status.startswith("304") else b"why"
    async with serving({"/": page(body, status=status)}) as server:
        value = await ShippedTools(tmp_path, monkeypatch, (server,)).value("http-fetch__get", url=server.url())

    assert (value["status"], value["body"]) == (int(status[:3]), body.decode())


async def test_text_is_decoded_by_its_charset_and_bytes_are_base64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))
    answers = {
        "/latin": page("Ziege: Möh".encode("latin-1"), content_type="text/plain; charset=iso-8859-1"),
        "/png": page(picture, content_type="image/png"),
    }
    async with serving(answers) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        text = await tools.value("http-fetch__get", url=server.url("/latin"))
        binary = await tools.value("http-fetch__get", url=server.url("/png"))

    assert (text["body"], "encoding" in text) == ("Ziege: Möh", False)
    assert (base64.b64decode(binary["body"]), binary["encoding"]) == (picture, "base64")


async def test_a_long_body_is_cut_at_max_bytes_and_never_in_a_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving({"/": page("aé" * 10, content_type="text/plain")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        cut = await tools.value("http-fetch__get", url=server.url(), maxBytes=5)
        whole = await tools.value("http-fetch__get", url=server.url(), maxBytes=30)

    assert (cut["body"], cut["truncated"]) == ("aéa", True)
    assert (whole["body"], whole["truncated"]) == ("aé" * 10, False)


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        ("a=1&b=ä", "a=1&b=ä".encode(), "text/plain; charset=utf-8"),
        ({"name": "Heidi ä", "n": 2}, '{"name": "Heidi ä", "n": 2}'.encode(), "application/json"),
        ('{"n": 2}', b'{"n": 2}', "text/plain; charset=utf-8"),
        ("42", b"42", "text/plain; charset=utf-8"),
        ("null", b"null", "text/plain; charset=utf-8"),
        ("", b"", ""),
    ],
    ids=["text", "object", "text that is JSON", "a number as text", "null as text", "empty"],
)
async def test_a_body_is_sent_as_it_is_and_an_object_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: Any, sent: bytes, kind: str
) -> None:
    async with serving({"/": page("ok")}) as server:
        await ShippedTools(tmp_path, monkeypatch, (server,)).value("http-fetch__post", url=server.url(), body=body)

    assert server.requests[-1].startswith(b"POST / HTTP/1.1\r\n")
    assert body_of(server) == sent
    assert headers_of(server).get("content-type", "") == kind
    assert headers_of(server)["content-length"] == str(len(sent))


async def test_headers_are_sent_and_the_callers_content_type_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Goat": "1"}
    async with serving({"/": page("ok")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        await tools.value("http-fetch__post", url=server.url(), body="a=1", headers=headers)

    assert headers_of(server)["content-type"] == "application/x-www-form-urlencoded"
    assert headers_of(server)["x-goat"] == "1"


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    "name", ["Host", "cookie", "Cookie2", "CONNECTION", "Transfer-Encoding", "Proxy-Authorization", "Content-Length"]
)
async def test_headers_of_the_connection_and_cookies_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, name: str
) -> None:
    async with serving({"/": page("ok")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        result = await tools.call(export, url=server.url(), headers={name: "secret-value"})

    assert (result.error_code, server.connections) == ("E_INPUT", 0)
    assert name in result.text
    assert "secret-value" not in result.text


# --- redirects (R-NET-5)


async def test_redirects_on_one_host_are_followed_and_the_last_url_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {**{f"/{n}": redirect(f"/{n + 1}") for n in range(5)}, "/5": page("there")}
    async with serving(answers) as server:
        value = await ShippedTools(tmp_path, monkeypatch, (server,)).value("http-fetch__get", url=server.url("/0"))

    assert (value["status"], value["body"], value["url"]) == (200, "there", server.url("/5"))


async def test_wf_33_a_redirect_loop_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving({"/loop": redirect("/loop")}) as server:
        result = await ShippedTools(tmp_path, monkeypatch, (server,)).call("http-fetch__get", url=server.url("/loop"))

    assert result.error_code == "E_NETWORK"
    assert "redirects more than 5 times" in result.text
    assert server.paths == ["/loop"] * 6


@pytest.mark.parametrize("export", EXPORTS)
async def test_wf_45_another_host_is_told_and_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str
) -> None:
    async with serving({"/": page(CANARY)}) as other, serving() as server:
        server.answers["/go"] = redirect(other.url("/?x=1", "other.test"), "307 Temporary Redirect")
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        tools.names.known["other.test"] = ["127.0.0.1"]
        value = await tools.value(export, url=server.url("/go"), headers={"Authorization": "Bearer of-the-first"})

    assert (value["status"], value["redirect"]) == (307, other.url("/?x=1", "other.test", "https"))
    assert (other.connections, tools.names.lookups) == (0, [])


@pytest.mark.parametrize(("status", "method", "body"), [(302, "GET", b""), (303, "GET", b""), (308, "POST", b"x=1")])
async def test_a_post_that_is_redirected_keeps_its_body_only_where_the_status_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, method: str, body: bytes
) -> None:
    async with serving({"/a": redirect("/b", f"{status} Moved"), "/b": page("done")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        value = await tools.value("http-fetch__post", url=server.url("/a"), body="x=1")

    assert (value["body"], server.requests[-1].split(b" ")[0].decode(), body_of(server)) == ("done", method, body)
    assert ("content-type" in headers_of(server)) == (method == "POST")


# --- what is refused


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("case", REFUSED_URLS)
async def test_what_is_not_public_is_refused_and_never_dialled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, case: str
) -> None:
    async with serving({"/": page(CANARY)}) as canary, serving() as public:
        public.answers |= {
            "/to-private": redirect(f"http://127.0.0.1:{canary.port}/"),
            "/to-other-port": redirect(canary.url(host="pub.test")),
            "/redir-file": redirect("file:///etc/passwd"),
            "/redir-user": redirect(f"http://a:b@127.0.0.1:{canary.port}/"),
        }
        tools = ShippedTools(tmp_path, monkeypatch, (public,))
        tools.names.known |= {
            "inner.test": ["127.0.0.1"],
            "mixed.test": ["93.184.216.34", "127.0.0.1"],
            "localhost": ["127.0.0.1"],
        }
        result = await tools.call(export, url=REFUSED_URLS[case].format(canary=canary.port, public=public.port))

    if case == "web-002-same-name-other-port":
        assert result.structured is not None  # another origin is told, for a new call to decide on
        assert result.structured["redirect"] == f"https://pub.test:{canary.port}/"
    else:
        assert result.error_code == "E_ADDRESS"
    assert CANARY not in result.text
    assert canary.connections == 0


async def test_wf_37_a_compression_bomb_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b"bomb " * 40_000_000)
    async with serving({"/bomb": page(packed, headers={"Content-Encoding": "gzip"})}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        value = await tools.value("http-fetch__get", url=server.url("/bomb"), maxBytes=1000)

    assert (len(value["body"]), value["truncated"]) == (1000, True)


async def test_wf_39_a_body_without_an_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10000000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with serving({"/inf": endless}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        result = await tools.call("http-fetch__get", url=server.url("/inf"))

    assert not result.is_error
    assert '"truncated": true' in result.text


async def test_wf_38_an_encoding_that_was_not_asked_for_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving({"/enc": page(b"x", headers={"Content-Encoding": "gzip, gzip, br"})}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        result = await tools.call("http-fetch__get", url=server.url("/enc"))

    assert result.error_code == "E_NETWORK"


async def test_wf_36_proxies_and_passwords_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with serving({"/": page(CANARY)}) as canary, serving({"/": page("direct")}) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, canary.url())
        value = await ShippedTools(tmp_path, monkeypatch, (server,)).value("http-fetch__get", url=server.url())

    assert (value["body"], canary.connections, "authorization" in headers_of(server)) == ("direct", 0, False)


async def test_a_server_that_does_not_answer_is_left_after_timeout_ms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with serving({"/": silent}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,))
        result = await tools.call("http-fetch__get", url=server.url(), timeoutMs=200)

    assert result.error_code == "E_NETWORK"
    assert "did not answer in full within 0.2 s" in result.text


# --- rules


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    "rule", ["WebFetch(domain:pub.test)", "WebFetch", "http-fetch__get(domain:pub.test)", "Web*", "*"]
)
@pytest.mark.parametrize("host", ["pub.test", "PUB.TEST."])
async def test_a_rule_that_denies_fetching_denies_it_by_this_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, rule: str, host: str
) -> None:
    rule = rule.replace("http-fetch__get", export)
    async with serving({"/": page(CANARY)}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,), permissions={"deny": [rule]})
        denied = await tools.call(export, url=server.url(host=host))

    assert denied.error_code == "E_PERMISSION"
    assert rule in denied.text
    assert server.connections == 0


@pytest.mark.parametrize("export", EXPORTS)
async def test_a_rule_that_asks_about_a_domain_asks_for_this_tool_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str
) -> None:
    async with serving({"/": page("ok")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,), permissions={"ask": ["WebFetch(domain:pub.test)"]})
        asked = await tools.call(export, url=server.url(host="pub.test"))
        other = await tools.call(export, url=server.url())

    assert asked.error_code == "E_APPROVAL_PENDING"
    assert "rule WebFetch(domain:pub.test)" in asked.text
    assert not other.is_error


async def test_allowing_web_fetch_allows_no_requests_with_bodies_and_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow = ["WebFetch", "WebFetch(domain:pub.test)", "http-fetch__get(domain:pub.test)"]
    async with serving({"/": page("ok")}) as server:
        tools = ShippedTools(tmp_path, monkeypatch, (server,), mode="dontAsk", permissions={"allow": allow})
        get = await tools.call("http-fetch__get", url=server.url(host="pub.test"))
        post = await tools.call("http-fetch__post", url=server.url(host="pub.test"))
        wf_44 = await tools.call("http-fetch__get", url=server.url(host="notpub.test"))

    assert (get.is_error, post.error_code, wf_44.error_code) == (False, "E_PERMISSION", "E_PERMISSION")
    assert "http-fetch__post(domain:pub.test)" in post.text
