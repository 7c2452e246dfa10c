"""Modes of sessions over a restart. R-PERM-6."""

from __future__ import annotations

import pytest

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.calls.permissions.session_modes import SessionModes


def test_a_mode_that_was_chosen_is_not_called_that_of_a_plan() -> None:
    modes = SessionModes(Mode.PLAN)
    modes.leave_plan("one")
    by_plan = modes.is_by_plan("one")
    modes.grant("one", [])

    assert (by_plan, modes.is_by_plan("one"), modes.is_by_plan("another")) == (True, True, False)
    modes.choose("one", Mode.ACCEPT_EDITS)
    assert not modes.is_by_plan("one")


@pytest.mark.parametrize(
    ("chosen", "settings", "after"),
    [
        (Mode.PLAN, Mode.DEFAULT, Mode.PLAN),
        (Mode.DEFAULT, Mode.BYPASS, Mode.DEFAULT),
        (Mode.DONT_ASK, Mode.ACCEPT_EDITS, Mode.DONT_ASK),
        (Mode.ACCEPT_EDITS, Mode.DEFAULT, Mode.DEFAULT),
        (Mode.DEFAULT, Mode.PLAN, Mode.PLAN),
        (Mode.ACCEPT_EDITS, Mode.ACCEPT_EDITS, Mode.ACCEPT_EDITS),
    ],
)
def test_r_perm_6_a_restart_keeps_a_narrower_mode_and_gives_nobody_a_wider_one(
    chosen: Mode, settings: Mode, after: Mode
) -> None:
    before = SessionModes()
    before.choose("one", chosen)
    resumed = SessionModes(settings)

    resumed.resume(before.decided())

    assert resumed.of("one") is after
    assert resumed.of("another") is settings


def test_a_mode_that_the_settings_change_holds_for_all_but_a_session_with_a_narrower_one() -> None:
    modes = SessionModes(Mode.ACCEPT_EDITS)
    modes.choose("wide", Mode.ACCEPT_EDITS)
    modes.choose("narrow", Mode.DONT_ASK)
    modes.grant("granted", [])
    sessions = ("wide", "narrow", "granted", "new")

    modes.use(Mode.DEFAULT)
    narrowed = [modes.of(one) for one in sessions]
    modes.use(Mode.ACCEPT_EDITS)
    widened = [modes.of(one) for one in sessions]

    assert narrowed == [Mode.DEFAULT, Mode.DONT_ASK, Mode.DEFAULT, Mode.DEFAULT]
    assert widened == [Mode.ACCEPT_EDITS, Mode.DONT_ASK, Mode.ACCEPT_EDITS, Mode.ACCEPT_EDITS]


def test_an_approved_plan_does_not_outlast_settings_that_want_plans_again() -> None:
    modes = SessionModes(Mode.DEFAULT)
    modes.leave_plan("one")

    modes.use(Mode.PLAN)

    assert (modes.of("one"), modes.is_by_plan("one")) == (Mode.PLAN, False)
