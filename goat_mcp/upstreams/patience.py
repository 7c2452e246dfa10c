"""How long a person waits for upstreams that start side by side. Clients wait less: see `Upstreams.first_list`."""

from __future__ import annotations

import math
from typing import NamedTuple


class Patience(NamedTuple):
    """How long somebody waits for upstreams that start side by side: `at_least_s`, and as long as answers come in, each
    within `between_s` of the one before, but not over `at_most_s`."""

    at_least_s: float
    between_s: float = 0.0
    at_most_s: float = math.inf


OF_A_PERSON = Patience(4.5, between_s=2.5, at_most_s=15.0)
"""One that hangs is named within some seconds; many that start slowly on a slow machine are all waited for."""
TO_THE_END = Patience(math.inf)
"""As long as each may take to start and to list."""
