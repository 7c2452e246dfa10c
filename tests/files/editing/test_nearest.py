from __future__ import annotations

from goat_mcp.files.editing.nearest import nearest_region

CODE = """import os

class Box:
\tdef size(self, unit):
\t\twidth = self.width(unit)
\t\treturn width * self.height(unit)

\tdef empty(self):
\t\treturn not self.items
"""


def test_the_region_with_the_most_words_in_common_is_shown() -> None:
    region = nearest_region(CODE.encode(), "    def size(self):\n        width = self.width()").region

    assert region is not None
    assert (region.first_line, region.last_line) == (4, 5)
    assert region.diff() == (
        "  - \u00b7\u00b7\u00b7\u00b7def\u00b7size(self):\n"
        "  - \u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\u00b7\u00b7width\u00b7=\u00b7self.width()\n"
        "4 + \u2192def\u00b7size(self,\u00b7unit):\n"
        "5 + \u2192\u2192width\u00b7=\u00b7self.width(unit)"
    )


def test_a_misspelt_word_is_found_by_its_letters() -> None:
    region = nearest_region(b"alpha\nfunction\nomega\n", "functoin").region

    assert region is not None and region.first_line == 2


def test_unrelated_text_has_no_nearest_region() -> None:
    assert nearest_region(CODE.encode(), "SELECT name FROM users WHERE id = 7").region is None
    assert nearest_region(b"", "anything").region is None


def test_the_cause_is_named_where_it_is_only_blanks_or_quotes() -> None:
    wanted = {
        "    def empty(self):\n        return not self.items": "the file has tabs where old_string has spaces",
        "\tdef empty(self):\n\treturn not self.items": "only the blanks at the beginning or end of lines differ",
        "\tdef empty(self):\n\t\treturn self.items": "",
    }

    causes = {text: region.cause() for text in wanted if (region := nearest_region(CODE.encode(), text).region)}

    assert causes == wanted
    quotes = nearest_region("say “hello there”\n".encode(), 'say "hello there"').region
    assert quotes is not None and quotes.cause() == "the quotes, dashes or no-break spaces differ"


def test_a_large_file_is_looked_through_for_a_limited_time_and_says_how_far() -> None:
    content = b"some words of every line that look alike\n" * 1_500_000

    nearest = nearest_region(content, "words that look like nothing\n" * 30, limit_s=0.3)

    assert nearest.lines_searched is not None and 0 < nearest.lines_searched < 1_500_000


def test_of_lines_with_the_same_words_the_most_similar_is_shown() -> None:
    content = b"identifier(some, other, things)\nidentifier(w)\nidentifier(and, so, on)\n"

    region = nearest_region(content, "identifier(q)").region

    assert region is not None and region.first_line == 2
