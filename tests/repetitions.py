"""How often the tests that look for rare moments try: a little in every run, as often as the contract says at night.

`GOAT_TESTS_FULL=1` asks for the whole: 1,000 killed clients, 100 writers killed in 50 MB, 30,000 reads in a race.
"""

from __future__ import annotations

import os

FULL_VARIABLE = "GOAT_TESTS_FULL"


def times(in_every_run: int, *, at_night: int) -> int:
    """How many times to try."""
    return at_night if os.environ.get(FULL_VARIABLE, "") not in ("", "0") else in_every_run
