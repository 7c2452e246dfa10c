"""`cargo test`: what failed and each summary, whole. Tests that passed are in the summaries' counts.

Of stack traces your own places stay, those in Rust's library go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.shell.names import Words

_PASSED = re.compile(r"test .+ \.\.\. ok(?: <[\d.]+s>)?")
_NOISE = re.compile(
    r" *(?:Compiling|Downloaded|Downloading|Updating|Locking|Adding|Blocking|Finished|Fresh|Checking) .+|"
    r"running \d+ tests?|failures:|    stack backtrace:|"
    r"note: Some details are omitted, run with `RUST_BACKTRACE=.+|note: run with `RUST_BACKTRACE=.+"
)
_RUNNING = re.compile(r" +(?P<what>Running (?:unittests )?\S+|Doc-tests \S+)(?: \(.+\))?")
_SUMMARY = re.compile(r"test result: (?:ok|FAILED)\. .+")
_FRAME = re.compile(r" +\d+: .+")
_IN_RUST_ITSELF = re.compile(r" +at /rustc/[0-9a-f]{40}/.+")
_NOTHING_RAN = re.compile(r"test result: ok\. 0 passed; 0 failed; 0 ignored; .+")


def press_cargo_test(words: Words, lines: Sequence[str]) -> Compressed | None:
    verb = next((word for word in words[1:] if not word.startswith(("-", "+"))), "")
    if verb not in ("test", "t") or not any(_SUMMARY.fullmatch(line) for line in lines):
        return None
    kept: list[str] = []
    for line in lines:
        if _IN_RUST_ITSELF.fullmatch(line):
            if kept and _FRAME.fullmatch(kept[-1]):
                del kept[-1]
        elif running := _RUNNING.fullmatch(line):
            kept.append(running["what"])
        elif not (_PASSED.fullmatch(line) or _NOISE.fullmatch(line) or line == "" or _NOTHING_RAN.fullmatch(line)):
            kept.append(line)
    return Compressed(tuple(kept), len(lines))
