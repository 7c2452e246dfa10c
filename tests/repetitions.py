"""How much one run of the tests does: the quick run of `make test`, or all of it, `make test-all`.

`GOAT_TESTS_FULL=1` asks for all: every case of a test that is marked `matrix`, the tests that are marked `full`, and as
many repetitions as the contract says: 1,000 killed clients, 100 writers killed in 50 MB, 30,000 reads in a race.
"""

from __future__ import annotations

import os

FULL_VARIABLE = "GOAT_TESTS_FULL"


def is_full() -> bool:
    return os.environ.get(FULL_VARIABLE, "") not in ("", "0")


def times(in_quick_run: int, *, in_full_run: int) -> int:
    """How many times to try."""
    return in_full_run if is_full() else in_quick_run


def examples(in_full_run: int) -> int:
    """How many random examples a property is tried on: in the quick run a fifth of them."""
    return times(max(in_full_run // 5, 10), in_full_run=in_full_run)
