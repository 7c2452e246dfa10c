"""Search providers on this machine, each speaking the wire format its documentation gives, required parts checked.

They know the same pages; what a provider says of a page beside title, URL and text is filled in as the real one does.
"""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

KEY = "sekrit-key-4711"


@dataclass(frozen=True)
class Page:
    title: str
    url: str
    text: str


PAGES = (
    Page("Tom & Jerry's <guide>", "https://docs.example.com/guide", 'How to "begin" & go on'),
    Page("Second", "https://example.org/second?page=2&x=1", "The second text"),
    Page("Third", "https://blog.example.com/third", "The third text"),
)


@dataclass(frozen=True)
class Request:
    """What arrived: header names in lower case, the query string and a form body as their last values."""

    method: str
    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


class FakeProvider:
    """`before` is served first, a reply for each request; then come the provider's own answers."""

    name = ""
    wants_key = True

    def __init__(self) -> None:
        self.pages: tuple[Page, ...] = PAGES
        self.before: list[Reply] = []
        self.requests: list[Request] = []
        self.url = ""

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.before.pop(0) if self.before else self.answer(request)

    def answer(self, request: Request) -> Reply:
        raise NotImplementedError

    def wrong_key(self) -> Reply:
        """What the provider answers to a key it does not know."""
        raise NotImplementedError

    def key_of(self, request: Request) -> str:
        raise NotImplementedError

    @contextmanager
    def running(self) -> Generator[None]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                target = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                is_form = self.headers.get("content-type") == "application/x-www-form-urlencoded"
                given = parse_qs(body.decode() if is_form else target.query, keep_blank_values=True)
                headers = {name.lower(): value for name, value in self.headers.items()}
                parameters = {name: values[-1] for name, values in given.items()}
                reply = provider.reply(Request(self.command, target.path, parameters, headers, body))
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = _serve

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class FakeSearxng(FakeProvider):
    name = "searxng"
    wants_key = False

    def answer(self, request: Request) -> Reply:
        if (request.method, request.path) != ("GET", "/search") or not request.parameters.get("q"):
            return Reply(404)
        if request.parameters.get("format") != "json":
            return Reply(200, b"<!DOCTYPE html><html></html>", {"Content-Type": "text/html"})
        results = [
            {
                "url": page.url,
                "title": page.title,
                "content": page.text,
                "engine": "duckduckgo",
                "template": "default.html",
                "parsed_url": page.url.split("/"),
                "engines": ["duckduckgo", "brave"],
                "positions": [number, 3],
                "publishedDate": None,
                "score": 4.0 / number,
                "category": "general",
            }
            for number, page in enumerate(self.pages, 1)
        ]
        return json_reply(
            {
                "query": request.parameters["q"],
                "number_of_results": 0,
                "results": results,
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": ["tom and jerry"],
                "unresponsive_engines": [],
            }
        )


class FakeBrave(FakeProvider):
    name = "brave"

    def key_of(self, request: Request) -> str:
        return request.headers.get("x-subscription-token", "")

    def wrong_key(self) -> Reply:
        return self._error(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")

    def too_fast(self, **headers: str) -> Reply:
        return self._error(429, "RATE_LIMITED", "Request rate limit exceeded for plan.", **headers)

    def _error(self, status: int, code: str, detail: str, **headers: str) -> Reply:
        error = {
            "id": "5d832250-9396-4f6e-b84a-2a1fe524cd7d",
            "status": status,
            "code": code,
            "detail": detail,
            "meta": {"component": "authentication"},
        }
        return json_reply({"type": "ErrorResponse", "error": error, "time": 1663072993}, status, **headers)

    def answer(self, request: Request) -> Reply:
        if (request.method, request.path) != ("GET", "/res/v1/web/search"):
            return Reply(404)
        if self.key_of(request) != KEY:
            return self.wrong_key()
        text, count = request.parameters.get("q", ""), int(request.parameters.get("count", "20"))
        if not 0 < len(text) <= 400 or len(text.split()) > 50 or not 1 <= count <= 20:
            return self._error(422, "VALIDATION", "Unable to validate request parameter(s)")
        results = [
            {
                "title": html.escape(page.title),
                "url": page.url,
                "is_source_local": False,
                "is_source_both": False,
                "description": f"<strong>{html.escape(page.text)}</strong>",
                "page_age": "2025-03-11T09:21:44",
                "profile": {"name": "Example", "url": page.url, "long_name": urlsplit(page.url).hostname, "img": ""},
                "language": "en",
                "family_friendly": True,
                "type": "search_result",
                "subtype": "generic",
                "is_live": False,
                "meta_url": {"scheme": "https", "netloc": urlsplit(page.url).netloc, "favicon": "", "path": ""},
                "age": "March 11, 2025",
            }
            for page in self.pages[:count]
        ]
        found: dict[str, Any] = {
            "type": "search",
            "query": {"original": text, "more_results_available": True},
            "mixed": {"type": "mixed", "main": [], "top": [], "side": []},
        }
        if results:
            found["web"] = {"type": "search", "results": results, "family_friendly": True}
        return json_reply(found)


class FakeTavily(FakeProvider):
    name = "tavily"

    def key_of(self, request: Request) -> str:
        return request.headers.get("authorization", "").removeprefix("Bearer ")

    def wrong_key(self) -> Reply:
        return json_reply({"detail": {"error": "Unauthorized: missing or invalid API key."}}, 401)

    def answer(self, request: Request) -> Reply:
        if (request.method, request.path) != ("POST", "/search"):
            return Reply(404)
        if self.key_of(request) != KEY:
            return self.wrong_key()
        asked = request.json
        if not 0 < len(asked["query"]) <= 400 or not 0 <= asked.get("max_results", 5) <= 20:
            return json_reply({"detail": {"error": "Query is too long. Max query length is 400 characters."}}, 400)
        results = [
            {"url": page.url, "title": page.title, "content": page.text, "score": 0.9, "raw_content": None}
            for page in self.pages[: asked.get("max_results", 5)]
        ]
        return json_reply(
            {
                "query": asked["query"],
                "follow_up_questions": None,
                "answer": None,
                "images": [],
                "results": results,
                "response_time": 1.67,
                "request_id": "123e4567-e89b-12d3-a456-426614174111",
            }
        )


class FakeExa(FakeProvider):
    name = "exa"

    def key_of(self, request: Request) -> str:
        return request.headers.get("x-api-key", "")

    def wrong_key(self) -> Reply:
        wrong = {"requestId": "2e2745fb5066969f5ed51841d014efbd", "error": "Invalid API key", "tag": "INVALID_API_KEY"}
        return json_reply(wrong, 401)

    def answer(self, request: Request) -> Reply:
        if (request.method, request.path) != ("POST", "/search"):
            return Reply(404)
        if self.key_of(request) != KEY:
            return self.wrong_key()
        asked = request.json
        results = [
            {
                "id": page.url,
                "title": page.title,
                "url": page.url,
                "publishedDate": "2023-11-16T01:36:32.547Z",
                "author": None,
                "highlights": [page.text],
                "highlightScores": [0.46],
            }
            for page in self.pages[: asked.get("numResults", 10)]
        ]
        return json_reply(
            {
                "requestId": "b5947044c4b78efa9552a7c89b306d95",
                "resolvedSearchType": "neural",
                "results": results if "highlights" in asked["contents"] else [],
                "searchType": "auto",
                "costDollars": {"total": 0.005},
            }
        )


AD = """
<div class="result results_links results_links_deep result--ad ">
  <h2 class="result__title"><a rel="nofollow" class="result__a"
    href="https://duckduckgo.com/y.js?ad_domain=shop.example&amp;ad_provider=bingv7aa">Buy it now</a></h2>
  <a class="result__snippet" href="https://duckduckgo.com/y.js?ad_domain=shop.example">Cheap!</a>
</div>"""
CHALLENGE = b"""<!DOCTYPE html><html><body><center id="lite_wrapper">
<form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html&cc=botnet" method="POST">
<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></center></body></html>"""


class FakeDuckDuckGo(FakeProvider):
    name = "duckduckgo"
    wants_key = False

    def answer(self, request: Request) -> Reply:
        if (request.method, request.path) != ("POST", "/html/") or not request.parameters.get("q"):
            return Reply(404)
        shown = AD + "".join(map(self._result, self.pages)) if self.pages else self._nothing()
        page = (
            '<!DOCTYPE html><html><head><style>.result__a { color: blue }</style><script>if (1 < 2) "</a>"</script>'
            '</head><body class="body--html"><!-- a <a class="result__a" href="/x">comment</a> -->'
            f'<div id="links" class="results">{shown}<div class="nav-link"><form action="/html/" method="post">'
            '<input type="submit" class="btn" value="Next"></form></div></div></body></html>'
        )
        return Reply(200, page.encode(), {"Content-Type": "text/html; charset=UTF-8"})

    def _result(self, page: Page) -> str:
        link = f"//duckduckgo.com/l/?uddg={quote(page.url, safe='')}&amp;rut=6a4f1f0c"
        title, text = html.escape(page.title), html.escape(page.text)
        return f"""
<div class="result results_links results_links_deep web-result ">
  <div class="links_main links_deep result__body">
    <h2 class="result__title"><a rel="nofollow" class="result__a" href="{link}">{title}</a></h2>
    <div class="result__extras"><a class="result__url" href="{link}">{urlsplit(page.url).hostname}</a></div>
    <a class="result__snippet" href="{link}"><b>{text[:4]}</b>{text[4:]}</a>
    <div class="clear"></div>
  </div>
</div>"""

    def _nothing(self) -> str:
        return (
            '<div class="result results_links results_links_deep result--no-result">'
            '<div class="links_main links_deep result__body"><div class="no-results">No results.</div></div></div>'
        )


FAKES: dict[str, type[FakeProvider]] = {
    fake.name: fake for fake in (FakeSearxng, FakeBrave, FakeTavily, FakeExa, FakeDuckDuckGo)
}
