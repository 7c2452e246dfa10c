"""The kernel's limits for a command's processes, as a line that bash runs on itself first (R-PROC-8).

Not set by code between fork and exec: threads of ours may hold any lock at that moment.
"""

from __future__ import annotations

from goat_mcp.processes.options import BashOptions

_KIB = 1024


def limit_line(options: BashOptions, *, counts_processes: bool) -> str:
    """The line, with its `;`. No core files, ever.

    The hard limit goes down; the one in force only where it is above that, so that nothing is ever given more.
    """
    wanted = {
        "c": 0,
        "f": -(-options.max_file_bytes // _KIB) or None,
        "n": options.max_open_files or None,
        "v": -(-options.max_memory_bytes // _KIB) or None,
        "t": options.max_cpu_s or None,
        "u": (options.max_processes or None) if counts_processes else None,
    }
    set_all = " ".join(
        f"ulimit -H{letter} {value} || ulimit -{letter} {value};"
        for letter, value in wanted.items()
        if value is not None
    )
    return f"{{ {set_all} }} 2>/dev/null; "
