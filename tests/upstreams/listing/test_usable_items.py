"""Which of the resources, templates and prompts an upstream lists are passed on."""

from __future__ import annotations

from goat_mcp.upstreams.listing.usable_items import usable_items
from goat_mcp.upstreams.listing.withheld import Withheld
from goat_mcp.upstreams.reason_code import ReasonCode


# COL-1, OBS-1
def test_a_broken_entry_is_withheld_alone_and_named() -> None:
    listed = [
        "no object",
        {"title": "nameless"},
        {"name": "half \ud800"},
        {"name": "good", "vendor": 1},
        {"name": "broken", "arguments": "none"},
        {"name": "good", "title": "again"},
        {"name": "hidden\u200b"},
    ]

    usable = usable_items("prompts", listed)

    assert usable.entries == ({"name": "good", "vendor": 1}, {"name": "hidden\u200b"})
    nameless = Withheld("", "it is not an object with a name", kind="prompt")
    assert usable.withheld == (
        nameless,
        nameless,
        nameless,
        Withheld("broken", "it is not valid: arguments: Input should be a valid list", kind="prompt"),
        Withheld("good", "it is listed twice; the first one is used", ReasonCode.LISTED_TWICE, kind="prompt"),
    )


# COL-1
def test_our_own_uris_are_ours() -> None:
    usable = usable_items("templates", [{"uriTemplate": "goat://x/{y}", "name": "x"}])

    assert usable.entries == ()
    reason = "goat:// is goat-mcp's own; an upstream's is not read by it"
    assert usable.withheld == (Withheld("goat://x/{y}", reason, ReasonCode.NAME_COLLISION, kind="template"),)
