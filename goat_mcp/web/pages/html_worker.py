"""What a person would see of an HTML page, as Markdown: the process that converts one page.

html2text writes the Markdown; this module decides what it gets. Scripts, styles, comments and hidden elements are left
out (R-NET-9); a stylesheet may still hide what is shown here, so the text stays untrusted. The process limits itself,
so that it ends even if nobody kills it.

In: a line of JSON (`content_type`, `url`), then the body. Out: a line of JSON (`cut`, `is_too_deep`), then the text."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from types import FrameType
from urllib.parse import urljoin

from html2text import HTML2Text

from goat_mcp.core import platform, posix
from goat_mcp.files.documents.visible_text import drop_hidden
from goat_mcp.processes.computing.worker_main import limit_resources
from goat_mcp.web.pages.charset import decode_page
from goat_mcp.web.pages.html_tokens import tokens

MAX_DEPTH = 512
"""Elements inside each other, as in browsers; what is deeper is left out."""
MAX_TEXT_CHARS = 6_000_000
_MAX_LISTS = 24
"""Lists or quotes inside each other: each one indents, so depth would multiply the text."""
_MAX_LINK_CHARS = 2_000


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_UNSEEN = _names("script style template title iframe object svg canvas audio video noembed noframes datalist")
_INLINE = _names(
    "a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd label mark nobr q s samp small span strike strong"
    " sub sup time tt u var"
)
_BLOCKS = _names(
    "address article aside center details dialog dir fieldset figcaption figure footer form header hgroup legend main"
    " menu nav search section summary"
)
_WRITTEN_INLINE = _names("a abbr b code del em i kbd q s strike strong tt u")
"""Those that html2text writes anything for: the others need not be told."""
_TOLD_ATTRIBUTES = ("start", "title")
_ENDED_BY_THE_NEXT = {
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "tr": frozenset({"tr"}),
    "td": frozenset({"td", "th", "tr"}),
    "th": frozenset({"td", "th", "tr"}),
    "option": frozenset({"option", "optgroup"}),
    "p": _names("p div ul ol dl table pre blockquote h1 h2 h3 h4 h5 h6 hr") | _BLOCKS,
}
"""Elements that end where one of these begins, though nobody says so."""
_HIDING_STYLE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|(?:font-size|opacity):0(?:\.0+)?(?:[a-z%]*)(?:;|!|$)"
    r"|(?:text-indent|left|top):-[0-9]{3,}",
)
_STYLE_NOISE = re.compile(r"/\*.*?\*/|\s+", re.DOTALL)
_BLANKS = re.compile(r"\s+")
_MARKS_A_LINE = re.compile(r"\s*[0-9+-]")
_SHORT_CHARS = 100


class OutOfRoom(Exception):
    """The text is longer than anybody will read."""


class VisibleMarkdown(HTML2Text):
    """Feed it one page with `read`; `so_far` is what has been written, whatever interrupted it."""

    def __init__(self, base_url: str) -> None:
        super().__init__(bodywidth=0)
        self.unicode_snob = True
        self.backquote_code_style = True
        self.is_too_deep = False
        self._base_url = base_url
        self._stack: list[str] = []
        self._hidden_from: int | None = None
        self._beyond: dict[str, int] = {}
        self._indenting = 0
        self._is_in_link = False
        self._room_chars: float = MAX_TEXT_CHARS

    def read(self, html: str) -> None:
        """Raises `OutOfRoom`."""
        for kind, value, attributes, closes_itself in tokens(html):
            if kind == "text":
                if self._hidden_from is None:
                    self._show(value)
            elif kind == "end":
                self._end(value)
            else:
                self._start(value, attributes, closes_itself)
        self._pop_to(0)

    def so_far(self) -> str:
        """The text, without blanks at line ends and with one empty line in a row at most."""
        lines: list[str] = []
        for line in drop_hidden(self.finish()).split("\n"):
            line = line.rstrip()
            if line or (lines and lines[-1]):
                lines.append(line)
        return "\n".join(lines).strip("\n")

    def outtextf(self, s: str) -> None:
        self._room_chars -= len(s)
        if self._room_chars < 0:
            self._room_chars = math.inf  # for what ends the text
            raise OutOfRoom
        super().outtextf(s)

    def _show(self, text: str) -> None:
        if self.pre:
            self.handle_data(text)
            return
        if len(text) > _SHORT_CHARS:
            # html2text's patterns take quadratic time for long runs of blanks at a line's start.
            text = _BLANKS.sub(" ", text)
        # Only if there is something to escape is it let escape it: that takes a third of its time.
        self.handle_data(text, "\\" not in text and _MARKS_A_LINE.match(text) is None)

    def _start(self, tag: str, attributes: dict[str, str], closes_itself: bool) -> None:
        if self._hidden_from is None and tag in _VOID:
            self._void(tag, attributes)
        if tag in _VOID or tag in ("html", "head", "body"):
            return
        stack = self._stack
        while stack and tag in _ENDED_BY_THE_NEXT.get(stack[-1], ()):
            self._pop_to(len(stack) - 1)
        is_unseen = tag in _UNSEEN
        if is_unseen and closes_itself:
            return
        if len(stack) >= MAX_DEPTH:
            self._beyond[tag] = self._beyond.get(tag, 0) + 1
            self._hide()
            return
        if self._hidden_from is None:
            if is_unseen or _is_hidden(tag, attributes):
                self._hide()
            elif tag in _INLINE:
                if tag in _WRITTEN_INLINE:
                    self._tell(tag, attributes, start=True)
                return
            else:
                self._tell(tag, attributes, start=True)
        stack.append(tag)

    def _end(self, tag: str) -> None:
        if self._beyond:
            left = self._beyond.get(tag, 0) - 1
            if left > 0:
                self._beyond[tag] = left
            elif left == 0:
                del self._beyond[tag]
                if not self._beyond and self._hidden_from == MAX_DEPTH:
                    self._hidden_from = None
            if left >= 0:
                return
        stack = self._stack
        if tag in stack:
            self._pop_to(len(stack) - 1 - stack[::-1].index(tag))
        elif self._hidden_from is None and tag in _WRITTEN_INLINE:
            self._tell(tag, {}, start=False)
        elif self._hidden_from is None and tag == "p":
            self.p()

    def _hide(self) -> None:
        if len(self._stack) >= MAX_DEPTH:
            self.is_too_deep = True
        if self._hidden_from is None:
            self._hidden_from = len(self._stack)

    def _pop_to(self, length: int) -> None:
        stack = self._stack
        while len(stack) > length:
            tag = stack.pop()
            self._beyond.clear()
            if self._hidden_from == len(stack):
                self._hidden_from = None
            elif self._hidden_from is None or len(stack) < self._hidden_from:
                self._hidden_from = None
                self._tell(tag, {}, start=False)

    def _tell(self, tag: str, attributes: dict[str, str], *, start: bool) -> None:
        if tag in _BLOCKS:
            tag = "div"
        if tag in ("ul", "ol", "blockquote"):
            self._indenting += 1 if start else -1
            if self._indenting > _MAX_LISTS or (not start and self._indenting == _MAX_LISTS):
                return
        if tag == "a":
            self._link(attributes, start=start)
            return
        if tag == "option" and start:
            self.pbr()
        self.handle_tag(tag, {name: attributes[name] for name in _TOLD_ATTRIBUTES if name in attributes}, start)

    def _void(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "img":
            source = self._absolute(attributes.get("src", ""))
            alt = _BLANKS.sub(" ", attributes.get("alt", ""))
            if source is not None:
                self.handle_tag("img", {"src": source, "alt": alt}, True)
            elif alt:
                self.handle_data(alt)
        elif tag in ("br", "hr"):
            self._tell(tag, {}, start=True)
        elif tag == "base" and "href" in attributes:
            self._base_url = self._absolute(attributes["href"]) or self._base_url

    def _link(self, attributes: dict[str, str], *, start: bool) -> None:
        """A link ends at its end or where the next one begins; an anchor without an address is none."""
        if self._is_in_link:
            self._is_in_link = False
            self.handle_tag("a", {}, False)
        url = self._absolute(attributes.get("href", "")) if start else None
        if url is not None:
            self._is_in_link = True
            title = _BLANKS.sub(" ", attributes.get("title", ""))
            self.handle_tag("a", {"href": url, "title": title}, True)

    def _absolute(self, link: str) -> str | None:
        """The whole address a link leads to; None for one that leads nowhere a reader could go."""
        link = link.strip()
        if not link or len(link) > _MAX_LINK_CHARS or link.startswith("#"):
            return None
        try:
            url = urljoin(self._base_url, link)
        except ValueError:
            return None
        return None if url[:11].lower().startswith(("javascript:", "data:", "vbscript:")) else _BLANKS.sub("%20", url)


def _is_hidden(tag: str, attributes: dict[str, str]) -> bool:
    if not attributes:
        return tag == "dialog"
    if "hidden" in attributes or (tag == "dialog" and "open" not in attributes):
        return True
    style = attributes.get("style")
    return style is not None and _HIDING_STYLE.search(_STYLE_NOISE.sub("", style).lower()) is not None


CPU_S = 2.5
"""A page of 5 MB takes about one; a page that takes longer was made to."""
_HARD_CPU_S = 5
_MEMORY_BYTES = 512 * 1024 * 1024


class _OutOfTime(Exception):
    """Raised wherever the page has led to, also out of a pattern that got stuck."""


def main() -> None:
    """Convert the page on standard input, and exit."""
    limit_resources(cpu_s=_HARD_CPU_S, memory_bytes=_MEMORY_BYTES)
    with open(0, "rb", closefd=False) as source:
        request = json.loads(source.readline())
        body = source.read()
    page = VisibleMarkdown(request["url"])
    cut: str | None = None
    _start_timer()
    try:
        page.read(decode_page(body, request["content_type"]))
    except _OutOfTime:
        cut = f"it is too complex: only what could be converted in {CPU_S:g} s is shown"
    except OutOfRoom:
        cut = "its text is too long"
    except MemoryError:
        cut = "it takes too much memory"
    finally:
        _stop_timer()
    text = page.so_far()
    with open(1, "wb", closefd=False) as out:
        out.write(json.dumps({"cut": cut, "is_too_deep": page.is_too_deep}).encode("ascii") + b"\n")
        out.write(text.encode("utf-8", "replace"))
    os._exit(0)  # taking the interpreter down takes longer than many pages


def _start_timer() -> None:
    if platform.HAS_CPU_TIMERS:
        signal.signal(posix.SIGPROF, _expire)
        posix.set_cpu_timer(CPU_S)


def _stop_timer() -> None:
    if platform.HAS_CPU_TIMERS:
        signal.signal(posix.SIGPROF, signal.SIG_IGN)


def _expire(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime
