"""What real programs printed, compressed: at least half of the tokens go, and every name, failure and number stays.

Regenerate the recordings with `python -m tests.commands.compression.record_outputs`.
"""

from __future__ import annotations

import re

import pytest

from tests.commands.compression.kept_facts import (
    changes_of_compressed,
    changes_of_diff,
    failing_lines,
    file_names,
    matches_of_compressed,
    matches_of_grep,
    places,
    subjects_of_log,
)
from tests.commands.compression.recordings import BY_NAME, RECORDED, RECORDINGS, Recording
from tests.commands.compression.savings import compressed, tokens

LEAST_SAVED = {"git-log-stat": 0.4}
"""Of the others at least half. What is left here are names of files, and those stay."""


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_at_least_half_of_the_tokens_are_saved(recording: Recording) -> None:
    before, after = tokens(recording.text), tokens(compressed(recording))

    assert 1 - after / before >= LEAST_SAVED.get(recording.name, 0.5)


def test_the_table_of_what_is_saved(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(recording, tokens(recording.text), tokens(compressed(recording))) for recording in RECORDINGS]

    with capsys.disabled():
        print(f"\n{'output':<18}{'tokens':>8}{'after':>8}{'saved':>8}")
        for recording, before, after in rows:
            print(f"{recording.name:<18}{before:>8}{after:>8}{1 - after / before:>8.0%}")

    assert {recording.file for recording, *_ in rows} == set(RECORDED.iterdir())


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_every_file_name_stays(recording: Recording) -> None:
    named = file_names(recording.text)

    assert {name for name in named if name not in compressed(recording)} == set()


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_every_place_that_is_named_stays(recording: Recording) -> None:
    if recording.name in ("grep", "rg", "grep-context"):
        assert matches_of_compressed(compressed(recording)) == matches_of_grep(recording.text)
    else:
        assert places(recording.text) - places(compressed(recording)) == set()


@pytest.mark.parametrize(
    "recording", [recording for recording in RECORDINGS if recording.exit_code], ids=lambda recording: recording.name
)
def test_every_line_that_names_a_failure_stays(recording: Recording) -> None:
    text = compressed(recording)

    assert [line for line in failing_lines(recording.text) if line not in text] == []


@pytest.mark.parametrize("name", ["git-diff", "git-show"])
def test_a_diff_keeps_each_changed_line_with_its_number(name: str) -> None:
    recording = BY_NAME[name]
    deleted = set(re.findall(r"^=== (\S+) \(deleted", compressed(recording), re.MULTILINE))

    changes = changes_of_diff(recording.text)

    assert changes
    assert changes_of_compressed(compressed(recording)) == {change for change in changes if change[0] not in deleted}


def test_a_deleted_file_is_named_with_its_length() -> None:
    lines = [change for change in changes_of_diff(BY_NAME["git-diff"].text) if "medlars" in change[0]]

    assert f"=== src/shop/invoicing/medlars_invoicing.py (deleted, {len(lines)} lines)" in compressed(
        BY_NAME["git-diff"]
    ).split("\n")


def test_a_log_keeps_each_commit_with_its_subject_in_order() -> None:
    subjects = subjects_of_log(BY_NAME["git-log"].text)

    shown = re.findall(r"^([0-9a-f]{8}) (.*?)(?: \(\+\d+ lines\))?$", compressed(BY_NAME["git-log"]), re.MULTILINE)

    assert len(subjects) == 13
    assert shown == subjects


def test_a_status_says_what_the_short_status_says() -> None:
    assert compressed(BY_NAME["git-status"]).split("\n") == [
        "## main",
        "A  src/shop/delivery/routes.py",
        "D  src/shop/invoicing/medlars_invoicing.py",
        "R  src/shop/invoicing/plums_invoicing.py -> src/shop/invoicing/plum_bills.py",
        "MM src/shop/warehouse/quinces_warehouse.py",
        " M src/shop/delivery/apples_delivery.py",
        " M src/shop/delivery/cherries_delivery.py",
        " M src/shop/delivery/currants_delivery.py",
        "?? notes/",
        "?? service.log",
        "?? src/shop/delivery/drivers.py",
    ]


def test_a_listing_is_the_names_in_their_order() -> None:
    names = [line.split(maxsplit=8)[8] for line in BY_NAME["ls-la"].text.split("\n")[3:]]

    assert compressed(BY_NAME["ls-la"]).split("\n") == names


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("go-test", "47 tests, 1 skipped: 44 passed, 2 failed"),
        ("go-test-packages", 'lines not shown: 5 "ok"'),
    ],
)
def test_go_test_ends_with_what_is_certain_of_those_that_passed(name: str, last: str) -> None:
    assert compressed(BY_NAME[name]).split("\n")[-1] == last


@pytest.mark.parametrize("name", ["pytest", "pytest-v"])
def test_pytest_ends_with_its_own_summary_and_names_every_file_with_its_tests(name: str) -> None:
    lines = compressed(BY_NAME[name]).split("\n")

    assert re.fullmatch(r"2 failed, 88 passed in [\d.]+s", lines[-1])
    assert re.findall(r"test_prices\.py \((\d+)\)", lines[0]) == ["24"]
