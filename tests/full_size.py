"""How large a test is: what fits into every run, or what its contract asks for.

`GOAT_TESTS_FULL=1 pytest ...` runs the full sizes: 100 kills, 30,000 reads in a race, a minute of load.
"""

from __future__ import annotations

import os

IS_FULL = os.environ.get("GOAT_TESTS_FULL") == "1"


def size(everyday: int, full: int) -> int:
    return full if IS_FULL else everyday
