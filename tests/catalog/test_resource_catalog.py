"""Who owns a URI: config order decides, never the order in which upstreams were read, started or listed (NAM-6)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.catalog.offerings import OfferedPrompt, Offering, Offerings
from goat_mcp.catalog.registry import Collision
from goat_mcp.catalog.resource_catalog import ResourceCatalog, UriOwnership
from goat_mcp.core.uri_template import is_catch_all, matches

SOURCES = ("a", "b", "c", "d")
URIS = ("b://own", "b://page/1", "shared://everyone", "x:1", "file:///etc/motd", "c://item")
TEMPLATES = (
    *("{+any}", "{any}", "{scheme}://{+rest}", "h{+rest}", "{+a}{+b}"),
    *("b://{+path}", "b://page/{number}", "c://{item}", "file:///{+path}", "shared://{who}", "x:{n}"),
)
Lists = Mapping[str, tuple[Sequence[str], Sequence[str]]]


def offer(listed: Sequence[str], templates: Sequence[str]) -> Offering:
    return Offering(
        tuple({"uri": uri, "name": uri} for uri in listed),
        tuple({"uriTemplate": one, "name": one} for one in templates),
    )


def catalog(lists: Lists, order: Sequence[str]) -> ResourceCatalog:
    """A catalog whose sources have listed in this order."""
    offers = Offerings()
    offers.declare(*SOURCES)
    for source in order:
        offers.replace(source, offer(*lists[source]))
    return ResourceCatalog(offers, lambda spec: "", lambda source: source)


def expected(lists: Lists, uri: str, given: frozenset[str], by_reads: frozenset[str]) -> str | None:
    """NAM-6, word by word."""
    listing = [source for source in SOURCES if uri in lists[source][0]]
    givers = [source for source in SOURCES if source in given]
    fitting = [(source, one) for source in SOURCES for one in lists[source][1] if matches(one, uri)]
    narrow = [source for source, one in fitting if not is_catch_all(one)]
    wide = [source for source, one in fitting if is_catch_all(one)]
    readers = [source for source in SOURCES if source in by_reads]
    return next(iter((*listing, *givers, *narrow, *wide, *readers)), None)


some_sources = st.frozensets(st.sampled_from(SOURCES), max_size=2)
some_lists = st.fixed_dictionaries(
    {
        source: st.tuples(
            st.lists(st.sampled_from(URIS), max_size=3, unique=True),
            st.lists(st.sampled_from(TEMPLATES), max_size=3, unique=True),
        )
        for source in SOURCES
    }
)


@given(some_lists, st.permutations(SOURCES), st.sampled_from(URIS), some_sources, some_sources)
def test_f13_11_order_whoever_listed_first_the_owner_is_the_first_in_config_order(
    lists: Lists, order: list[str], uri: str, given: frozenset[str], by_reads: frozenset[str]
) -> None:
    assert catalog(lists, order).owner_of(uri, given, by_reads) == expected(lists, uri, given, by_reads)


@pytest.mark.parametrize("order", list(itertools.permutations(SOURCES)))
def test_f13_11_order_a_later_upstream_takes_over_nothing(order: Sequence[str]) -> None:
    lists: Lists = {
        "a": (["a://1", "shared://x"], ["a://page/{n}"]),
        "b": (["b://1", "shared://x"], ["b://page/{n}"]),
        "c": (["a://1", "b://1", "shared://x"], ["{+any}", "a://page/{n}", "b://{+all}"]),
        "d": ([], ["{+any}"]),
    }

    items = catalog(lists, order)

    owners = {uri: items.owner_of(uri) for uri in ("a://1", "b://1", "shared://x", "a://page/1", "b://page/1", "z:9")}
    assert owners == {
        "a://1": "a",
        "b://1": "b",
        "shared://x": "a",
        "a://page/1": "a",
        "b://page/1": "b",
        "z:9": "c",
    }
    assert [items.owner_of_ref(ref) for ref in ("a://page/{n}", "b://page/{n}", "{+any}")] == ["a", "b", "c"]


def test_f13_11_order_a_list_that_comes_late_takes_what_its_place_in_the_order_gives_it() -> None:
    offers = Offerings()
    offers.declare("a", "b")
    items = ResourceCatalog(offers, lambda spec: "", lambda source: source)

    offers.replace("b", offer(["shared://x"], []))
    alone = items.owner_of("shared://x")
    offers.replace("a", offer(["shared://x"], []))
    both = items.owner_of("shared://x")
    shadowed = [str(one) for one in offers.snapshot.collisions]

    assert (alone, both) == ("b", "a")
    assert shadowed == ["shared://x is kept by a; ReadMcpResource with the server named reads that of b"]


# R-HTTP-3b: what was given to one session is given to no other.
def test_uris_are_given_to_one_session_and_several_givers_are_remembered() -> None:
    known = UriOwnership()
    link = {"type": "resource_link", "uri": "x://1", "name": "x"}

    known.note("ada", "b", [link])
    known.note("ada", "a", [link])

    assert (known.of("ada", "x://1"), known.of("bob", "x://1")) == ({"a", "b"}, frozenset())
    known.forget("a")
    assert known.of("ada", "x://1") == {"b"}
    known.forget("b")
    assert known.of("ada", "x://1") == frozenset()


@pytest.mark.parametrize(
    ("template", "catches_all"),
    [
        *(
            (one, True)
            for one in (
                *("{+any}", "{any}", "{#any}", "{/any*}", "{+a}{+b}", "{+a},{+b}", "{?q}", "{+any*}", "{;a}", "{.a}"),
                *(
                    "{scheme}://{+rest}",
                    "{scheme}:{+rest}",
                    "{+scheme}://x",
                    "h{+rest}",
                    "http{+rest}",
                    "ht{s}ps://{+r}",
                ),
                *("{a}://{b}/{c}", "{a}{b}{c}", "f{+x}:{+y}", "{+any}.md"),
            )
        ),
        *(
            (one, False)
            for one in (
                *("b://{+path}", "b:{+path}", "file:///{+path}", "https://example.org/{id}", "x:{n}", "urn:isbn:{n}"),
                *("data:{+all}", "b://page/{number}", "a+b://{x}", "mailto:{who}", "b://fixed"),
            )
        ),
    ],
)
def test_f13_11_catch_all_templates_are_those_that_leave_the_scheme_open(template: str, catches_all: bool) -> None:
    assert is_catch_all(template) is catches_all


def test_prompts_of_two_sources_whose_names_differ_in_case_only_are_one_name() -> None:
    # R-UP-5
    offers = Offerings()
    for source, name in (("a", "Plan"), ("b", "plan"), ("c", "Plan")):
        offers.replace(source, Offering(prompts=(OfferedPrompt(name, name, name, {"name": name}),)))

    assert [(source, prompt.name) for source, prompt in offers.snapshot.prompts.values()] == [("a", "Plan")]
    assert offers.snapshot.collisions == (Collision("plan", "b", "a", "Plan"), Collision("Plan", "c", "a"))
