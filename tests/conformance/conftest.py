"""The suite for the tests that run it: installed once, or skipped with the reason."""

from __future__ import annotations

import pytest

from tests.conformance.suite import NoSuite, Suite, find_suite


@pytest.fixture(scope="session")
def suite() -> Suite:
    try:
        return find_suite()
    except NoSuite as why:
        pytest.skip(str(why))
