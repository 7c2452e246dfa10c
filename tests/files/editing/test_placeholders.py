from __future__ import annotations

import pytest

from goat_mcp.files.editing.omission_markers import added_placeholders, placeholder_lines


@pytest.mark.parametrize(
    "line",
    [
        "# ... rest of code ...",
        "    // ... existing code ...",
        "// rest of the methods ...",
        "/* ... remaining functions unchanged ... */",
        "<!-- ... rest of the page ... -->",
        "{/* ... other props ... */}",
        "... rest of file ...",
        "(rest of methods ...)",
        "[... unchanged ...]",
        "-- \u2026 same as before \u2026",
        "# ... (code omitted for brevity)",
        "; ... previous implementation ...",
    ],
)
def test_lines_that_stand_for_left_out_text(line: str) -> None:
    assert placeholder_lines(f"a\n{line}\nb\n") == [line.strip()]


@pytest.mark.parametrize(
    "line",
    [
        "    ...",
        "def f(*args: int) -> None: ...",
        "print('... rest of code ...')",
        "function f(...rest) {",
        "const {a, ...other} = props;",
        "# waits for the rest of the code",
        "# and so on...",
        "// Loading...",
        "x = foo(...)  # type: ignore",
        "The rest of this chapter explains why the code is as it is, and what else was tried ...",
        "# see above ... for the existing code we keep a copy",
    ],
)
def test_lines_that_say_something_of_their_own(line: str) -> None:
    assert placeholder_lines(line) == []


def test_only_lines_the_file_did_not_have_count() -> None:
    assert added_placeholders("# ... rest of code ...\n", b"  # ... rest of code ...\r\n") == []
    assert added_placeholders("# ... rest of code ...\n", b"# ... other code ...\n") == ["# ... rest of code ..."]
