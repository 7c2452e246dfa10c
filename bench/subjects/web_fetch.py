"""WebFetch of a 1 MB page on loopback against httpx and html2text by hand, both in this process and warm."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable

import anyio
import html2text
import httpx

from bench.report import Bar, Row
from bench.timing import interleaved_bursts_ms, medians
from bench.workbench import Workbench, free_port
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

RATIO_BAR = 1.5
PAGE_CHARS = 1_000_000
_TEXT = "goats climb the steep rocks while servers return long pages that people read slowly on small screens"


def measure(bench: Workbench) -> list[Row]:
    folder, port = bench.folder("pages"), free_port()
    (folder / "page.html").write_text(page(PAGE_CHARS), encoding="utf-8")
    serve = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    with bench.http_server(serve, port):
        return anyio.run(_measure, bench, f"http://127.0.0.1:{port}/page.html", f"127.0.0.1:{port}")


async def _measure(bench: Workbench, url: str, host: str) -> list[Row]:
    web = {"allow_hosts": [host], "cache_s": 0, "requests_per_minute": 0}
    settings = Settings.model_validate({"workspace": [bench.folder("workspace")], "web": web})
    gateway = Gateway(settings, approval=Approval.HOST, state=StateDirectory(bench.folder("state")))
    rounds = bench.rounds(40, 10)
    async with gateway.running(), httpx.AsyncClient() as client:

        async def ours() -> None:
            result = await gateway.call("WebFetch", {"url": url}, ToolContext(call_id="bench"))
            if result.is_error or "next offset=" not in result.text:
                raise LookupError(f"WebFetch did not show the page: {result.text[:300]}")

        def by_hand(bodywidth: int | None = None) -> Callable[[], Awaitable[object]]:
            async def run() -> object:
                answer = await client.get(url)
                return html2text.html2text(answer.text, bodywidth=bodywidth)

            return run

        took = medians(
            await interleaved_bursts_ms(
                {"ours": ours, "by hand": by_hand(), "unwrapped": by_hand(bodywidth=0)},
                bursts=rounds,
                size=1,
                on_burst=lambda n: bench.say(f"web_fetch: round {n + 1} of {rounds}"),
            )
        )
    what = f"WebFetch of {PAGE_CHARS:,} characters of HTML, p50"
    return [
        Row(
            what,
            took["ours"],
            "ms",
            f"httpx, html2text {kind}",
            took[name],
            Bar(took["ours"] / took[name], RATIO_BAR, "x"),
        )
        for name, kind in (("by hand", "as it comes"), ("unwrapped", "without wrapping lines"))
    ]


def page(chars: int) -> str:
    """A page like many: sections with headings, paragraphs, links, lists, tables and code. The same each time."""
    chance, vocabulary = random.Random(7), _TEXT.split()
    parts = ["<!doctype html><html><head><title>Goats</title><style>p{margin:0}</style></head><body><main>"]
    length, number = len(parts[0]), 0

    def words(count: int) -> str:
        return " ".join(chance.choices(vocabulary, k=count))

    while length < chars:
        number += 1
        section = [
            f'<section id="s{number}"><h2>{words(4)}</h2>\n<p class="lead">{words(60)} ',
            f'<a href="/page/{number}?a=1&amp;b=2">{words(3)}</a> {words(30)} <b>{words(2)}</b>, ',
            f"<code>{words(1)}</code> &mdash; {words(20)}.</p>\n",
            f"<div><span>{words(10)}</span> <em>{words(4)}</em></div>",
            "<ul>" + "".join(f"<li>{words(8)}</li>" for _ in range(4)) + "</ul>",
        ]
        if number % 5 == 0:
            row = "<tr>" + "".join(f"<td>{words(2)}</td>" for _ in range(4)) + "</tr>"
            section.append(f"<table>{row * 4}</table>")
        if number % 7 == 0:
            section.append("<pre><code>" + "\n".join(words(8) for _ in range(6)) + "</code></pre>")
        section.append("</section>\n")
        parts.append("".join(section))
        length += len(parts[-1])
    return "".join(parts) + "</main></body></html>"
