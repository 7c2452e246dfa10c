"""Who may send a request from one replica to another, and how often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goat_mcp.web.hops.signature import VALID_S, Hop, HopChecks, HopKeys, HopRefused, sha256

OLD, NEW = b"old-key-of-the-tests-0123456789-0123", b"new-key-of-the-tests-0123456789-0123"
NOW_S = 1_000_000.0
HOP = Hop("POST", "/mcp", {"accept": "x"}, sha256(b"{}"), {"subject": "ada"}, "a", "b", 7, at_s=NOW_S)


def checks(now_s: float = NOW_S, name: str = "b", fence: int = 7) -> HopChecks:
    return HopChecks(lambda: (name, fence), clock=lambda: now_s)


def test_a_hop_comes_through_as_it_was_signed() -> None:
    opened = HopKeys(OLD).open(HopKeys(OLD).seal(HOP))

    checks().check(opened, "POST", "/mcp")

    assert opened == HOP


def test_while_a_key_is_replaced_both_are_accepted_and_the_first_one_signs() -> None:
    assert HopKeys(NEW, OLD).open(HopKeys(OLD).seal(HOP)) == HOP
    assert HopKeys(OLD, NEW).open(HopKeys(NEW, OLD).seal(HOP)) == HOP
    with pytest.raises(HopRefused, match="not signed"):
        HopKeys(OLD).open(HopKeys(NEW, OLD).seal(HOP))


@pytest.mark.parametrize("part", ["text", "signature", "nothing", "garbage"])
def test_whatever_is_changed_on_the_way_is_noticed(part: str) -> None:
    text, _, signature = HopKeys(OLD).seal(HOP).partition(".")
    others, _, _ = HopKeys(NEW).seal(replace(HOP, principal={"subject": "eve"})).partition(".")
    changed = {
        "text": f"{others}.{signature}",
        "signature": f"{text}.{'0' * 64}",
        "nothing": "",
        "garbage": "\u00e4.\u00e4",
    }[part]

    with pytest.raises(HopRefused):
        HopKeys(OLD).open(changed)


def test_a_hop_is_accepted_once() -> None:
    gate = checks()
    gate.check(HOP, "POST", "/mcp")

    with pytest.raises(HopRefused, match="seen before"):
        gate.check(HOP, "POST", "/mcp")
    gate.check(replace(HOP, nonce="another"), "POST", "/mcp")


def test_what_was_seen_is_remembered_for_as_long_as_it_would_be_accepted() -> None:
    now_s = NOW_S - VALID_S
    gate = HopChecks(lambda: ("b", 7), clock=lambda: now_s)
    gate.check(HOP, "POST", "/mcp")  # from a clock that is ahead

    now_s = NOW_S + VALID_S
    with pytest.raises(HopRefused, match="seen before"):
        gate.check(HOP, "POST", "/mcp")


@pytest.mark.parametrize("off_s", [VALID_S + 1, -VALID_S - 1, float("nan")])
def test_a_hop_of_another_time_is_refused(off_s: float) -> None:
    with pytest.raises(HopRefused, match="s old"):
        checks(NOW_S + off_s).check(HOP, "POST", "/mcp")


@pytest.mark.parametrize(("name", "fence"), [("c", 7), ("b", 8), ("b", 0)])
def test_a_hop_for_another_process_is_refused_also_if_it_has_the_same_name(name: str, fence: int) -> None:
    with pytest.raises(HopRefused, match="meant for b"):
        checks(name=name, fence=fence).check(HOP, "POST", "/mcp")


@pytest.mark.parametrize(("method", "path"), [("GET", "/mcp"), ("POST", "/mcp/narrow")])
def test_a_hop_for_another_path_is_refused(method: str, path: str) -> None:
    with pytest.raises(HopRefused, match="another path"):
        checks().check(HOP, method, path)
