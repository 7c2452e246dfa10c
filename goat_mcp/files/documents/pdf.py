"""The text of a PDF, page by page."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.excerpt import Parts, parts_that_fit
from goat_mcp.files.documents.visible_text import make_visible

if TYPE_CHECKING:
    from pypdf import PdfReader  # takes 60 ms to import; most sessions never read a PDF

MAX_PAGES_UNASKED = 10
MAX_PAGES = 20
_PAGES = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")


@dataclass(frozen=True)
class PageRange:
    """Pages from 1, last included."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class PdfText:
    """Pages that were asked for and fit, and how many the document has. `asked` is clipped to those there are."""

    parts: Parts
    asked: PageRange
    total_pages: int

    @property
    def last_shown(self) -> int:
        return self.asked.first + len(self.parts.texts) - 1


@dataclass(frozen=True)
class Deadline:
    """Until when pages are read: a time of `time.monotonic`, or until `stop` is set."""

    deadline_s: float = math.inf
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def is_over(self) -> bool:
        return self.stop.is_set() or time.monotonic() >= self.deadline_s


def parse_pages(pages: str) -> PageRange:
    """`"3"` or `"1-5"`. Raises `ValueError` with the problem in words."""
    match = _PAGES.fullmatch(pages.strip())
    if match is None:
        raise ValueError(f'wants one page ("3") or a range ("1-5"); got {pages[:60]!r}')
    first = int(match[1])
    last = int(match[2] or first)
    if first < 1 or last < first:
        raise ValueError(f"wants pages from 1 on, the first before the last; got {pages[:60]!r}")
    if last - first >= MAX_PAGES:
        raise ValueError(f"at most {MAX_PAGES} pages in one call; {pages[:60]!r} are {last - first + 1}")
    return PageRange(first, last)


def read_pdf(file: BinaryIO, pages: PageRange | None, max_chars: int, patience: Deadline) -> PdfText:
    """The text of the pages asked for, of all if there are few; of fewer, but at least one, if the deadline passes.

    Raises `ToolError`: INPUT without `pages` for a long document or past its end, BINARY if it is damaged or locked.
    """
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    # pypdf reports everything it repairs on stderr; nobody here can use that.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(file)
        total = len(reader.pages)
    except FileNotDecryptedError:
        # Files locked with an empty password, as many are, open by themselves.
        raise _locked() from None
    except _pypdf_errors() as problem:
        raise _damaged(_in_words(problem)) from None
    asked = _clipped(pages, total)
    reading = _Reading(reader, asked, total, patience)
    parts = parts_that_fit(reading.texts(), max_chars)
    if not reading.has_read_any:
        raise _damaged(reading.last_problem)
    return PdfText(parts, asked, total)


@dataclass
class _Reading:
    """Pages on their way to text."""

    reader: PdfReader
    asked: PageRange
    total: int
    patience: Deadline
    has_read_any: bool = False
    last_problem: str = ""

    def texts(self) -> Iterator[str]:
        for number in range(self.asked.first, self.asked.last + 1):
            if number > self.asked.first and self.patience.is_over:
                return
            yield f"--- page {number} of {self.total} ---\n{self._text(number)}"

    def _text(self, number: int) -> str:
        try:
            text = self.reader.pages[number - 1].extract_text()
        except _pypdf_errors() as problem:
            self.last_problem = _in_words(problem)
            return f"(this page cannot be read: {self.last_problem})"
        self.has_read_any = True
        shown = make_visible(text.replace("\r\n", "\n")).strip("\n")
        return shown or "(no text on this page; it may be a scan or a drawing)"


def _pypdf_errors() -> tuple[type[Exception], ...]:
    """What pypdf lets out on files that are damaged, or packed or locked in ways it does not know."""
    from pypdf.errors import PyPdfError

    return (
        *(PyPdfError, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
        *(AssertionError, NotImplementedError, RecursionError),
    )


def _in_words(problem: Exception) -> str:
    from pypdf.errors import DependencyError, LimitReachedError

    said = make_visible(" ".join(str(problem).split())) or type(problem).__name__
    if isinstance(problem, DependencyError):
        return f"it is encrypted in a way this server cannot decrypt ({said})"
    if isinstance(problem, LimitReachedError):
        return f"it unpacks to more than is safe ({said})"
    if isinstance(problem, RecursionError):
        return "its objects are nested too deeply"
    return said


def _clipped(pages: PageRange | None, total: int) -> PageRange:
    if total == 0:
        raise _damaged("it has no pages")
    if pages is None:
        if total > MAX_PAGES_UNASKED:
            raise ToolError(
                ErrorCode.INPUT,
                f"the PDF has {total} pages; more than {MAX_PAGES_UNASKED} are read only by range",
                f'Call again with pages="1-{min(total, MAX_PAGES)}", or the pages you need; at most {MAX_PAGES}.',
                facts={"total_pages": total},
            )
        return PageRange(1, total)
    if pages.first > total:
        raise ToolError(
            ErrorCode.INPUT,
            f"pages: {str(pages)!r} is past the end; the PDF has {total} pages",
            f"Ask for pages from 1 to {total}.",
            facts={"total_pages": total},
        )
    return PageRange(pages.first, min(pages.last, total))


def _locked() -> ToolError:
    return ToolError(
        ErrorCode.BINARY,
        "the PDF is encrypted and opens only with a password",
        "Ask the user for an unlocked copy.",
    )


def _damaged(why: str) -> ToolError:
    return ToolError(
        ErrorCode.BINARY,
        f"the PDF cannot be read: {why}",
        "Check whether the file is complete; another program may still open it.",
    )
