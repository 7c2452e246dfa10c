"""Texts for properties of edits: lines of all endings, made of what tends to go wrong."""

from __future__ import annotations

from hypothesis import strategies as st

ALPHABET = "ab{(\t \u00a0\"'\u201c\u201d\u2019-\u2014\u00e9\u4e16\U0001f600"
LATIN_1_ALPHABET = "ab{(\t \"'-\u00e9\u00fc"
LINE_ENDS = ("\n", "\r\n", "\r")


@st.composite
def texts(draw: st.DrawFn, alphabet: str = ALPHABET, line_ends: tuple[str, ...] = LINE_ENDS) -> str:
    """Up to eight lines whose endings are mixed; the last one may have none."""
    lines = draw(st.lists(st.tuples(st.text(alphabet, max_size=6), st.sampled_from(line_ends)), max_size=8))
    return "".join(text + end for text, end in lines) + draw(st.text(alphabet, max_size=6))


@st.composite
def texts_with_a_part(
    draw: st.DrawFn, alphabet: str = ALPHABET, line_ends: tuple[str, ...] = LINE_ENDS
) -> tuple[str, str]:
    """A text, and some of it as a model would copy it: every line end a line feed."""
    text = draw(texts(alphabet, line_ends).filter(lambda text: normalised(text) != ""))
    plain = normalised(text)
    start = draw(st.integers(0, len(plain) - 1))
    end = draw(st.integers(start + 1, len(plain)))
    return text, plain[start:end]


def normalised(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
