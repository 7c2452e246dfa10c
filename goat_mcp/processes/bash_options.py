"""Settings of commands: `bash.*`, and the kernel limits that follow from them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from goat_mcp.core.settings_part import Names, SettingsPart


class BashOptions(SettingsPart):
    """`auto_background_after_s` 0 means: never, and 120 s end a command.

    The `max_*` hold for each process of a command, and 0 means no limit of ours. `max_processes` holds for all of a
    sandbox together, and only in one with users of its own: elsewhere the system would count everything that the same
    user runs. It does nothing if the gateway runs as root. Memory and processor time are not limited from the
    start: runtimes reserve far more memory than they use, and time is what `timeout` is for.

    `blocked` are commands that never run, e.g. `rm` or `git push`; where `allowed` names any, no other runs. Neither
    lets anything pass unasked. Source: goa, `BlockedCommands`, `AllowedCommands`.

    `git_bash` is for Windows, where commands run in Git's bash: its bash.exe, if Git is not on PATH and not where its
    installers put it. A memory limit holds there for all processes of a command together.

    `compress_output`: whether a model reads the output of known programs in fewer words; unset, only a model on this
    machine does. `compress_output_of_model` says it by name, e.g. `qwen*`, and the first pattern that fits decides.
    """

    blocked: Names = ()
    allowed: Names = ()
    git_bash: str = ""
    compress_output: bool | None = None
    compress_output_of_model: Mapping[str, bool] = {}
    auto_background_after_s: float = Field(default=45.0, ge=0, le=3600)
    max_file_bytes: int = Field(default=10 * 1000**3, ge=0)
    max_open_files: int = Field(default=65_536, ge=0)
    max_processes: int = Field(default=4_096, ge=0)
    max_memory_bytes: int = Field(default=0, ge=0)
    max_cpu_s: int = Field(default=0, ge=0)


_KIB = 1024


def limit_line(options: BashOptions, *, counts_processes: bool) -> str:
    """The line, with its `;`. No core files, ever.

    The hard limit goes down; the one in force only if it is above that, so that nothing is ever given more.
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
