"""The line of limits, by what a bash that ran it says of itself."""

from __future__ import annotations

import subprocess

from goat_mcp.processes.bash_options import BashOptions, limit_line


def limits_after(first: str, options: BashOptions, letters: str) -> list[str]:
    shown = "; ".join(f"ulimit -S{letter}; ulimit -H{letter}" for letter in letters)
    script = first + limit_line(options, counts_processes=False) + shown
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_limits_go_down_and_cores_are_off() -> None:
    # R-PROC-8
    options = BashOptions(max_file_bytes=4096, max_open_files=50, max_memory_bytes=10 * 1024**3, max_cpu_s=7)

    assert limits_after("", options, "cfnvt") == ["0", "0", "4", "4", "50", "50", "10485760", "10485760", "7", "7"]


def test_what_is_in_force_is_never_raised() -> None:
    assert limits_after("ulimit -Sn 30; ", BashOptions(max_open_files=50), "n")[0] == "30"


def test_0_sets_no_limit_and_processes_are_only_counted_where_that_makes_sense() -> None:
    options = BashOptions(max_file_bytes=0, max_open_files=0)

    assert limit_line(options, counts_processes=False) == "{ ulimit -Hc 0 || ulimit -c 0; } 2>/dev/null; "
    assert "ulimit -u 4096;" in limit_line(options, counts_processes=True)
