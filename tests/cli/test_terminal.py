"""Tables on terminals of any width: nothing in them is cut."""

from __future__ import annotations

import sys
from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.console import Console

from goat_mcp.cli.main import write_utf8
from goat_mcp.cli.terminal import wrapped_table


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_beside_a_long_name_the_other_columns_are_still_there(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = StringIO()
    name = "weather-forecast-for-the-whole-of-europe"

    Console(file=out, width=columns).print(wrapped_table(["server", "state", "tools"], [[name, "ready", "3"]]))

    lines = out.getvalue().splitlines()
    assert "ready" in lines[1] and "3" in lines[1] and max(map(len, lines)) <= columns
    assert "".join(line.split("  ")[0].strip() for line in lines[1:]).startswith(name)


def test_a_pipe_on_windows_gets_utf8_and_plain_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="cp1252", newline="\r\n"))
    monkeypatch.setattr(sys, "stderr", None)  # as in a program without a console

    write_utf8()
    print("\ufeff日本", flush=True)

    assert written.getvalue() == "\ufeff日本\n".encode()
