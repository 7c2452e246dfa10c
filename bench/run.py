"""`python -m bench.run [--quick] [NAME...]`: measure, print a table, write bench/results/latest.json.

A missed bar is shown and is no failure: what a shared machine measures must not decide a build. Status 1 means that a
subject could not be measured at all.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from bench.peers import missing_peers
from bench.report import Outcome, Row, print_table, write_json
from bench.workbench import BENCH, Workbench

SUBJECTS: Mapping[str, str] = {
    "startup": "process start to tools/list, and memory, against a bare SDK server and others",
    "ten_windows": "memory of a second window, and ten windows with the same ten upstreams",
    "definitions": "tokens of the built-in definitions",
    "code_mode": "10 calls with nearly 50 KB answers in one script, against calls one by one",
    "read": "Read of 2,000 lines against an SDK echo tool",
    "grep": "Grep over 52,000 files against rg",
    "glob": "Glob over 52,000 files against rg --files",
    "edit": "Edit of one needle in 100 MB against plain Python",
    "bash": "Bash true against bash -c true",
    "sandbox": "Bash true in its sandbox against bash -c true",
    "permissions": "a decision among 500 rules, and what the permission stage adds to a Read",
    "page": "the views of the web page over 10,000 recorded calls against a bare Starlette answer",
    "web_fetch": "WebFetch of a 1 MB page against httpx and html2text by hand",
    "manifest_call": "a call of a declared Python handler against a built-in that does the same",
    "manifest_load": "500 manifests read, and what none adds to a start",
    "upstream_stdio": "an upstream call through us, stdio, against the direct call",
    "upstream_http": "an upstream call through us, HTTP, against the direct call",
    "chaos": "a healthy upstream's calls beside bad ones, against quiet ones",
    "upstream_bridged": "an upstream call that changes between stdio and HTTP, beside others' gateways",
    "throughput": "64 upstream calls at a time, against FastMCP's proxy",
    "cold_start": "upstreams that were never seen: process start to the full list, beside mcp-hub",
    "many_upstreams": "50 upstreams of 20 tools: the first list, and a call among them",
    "growth_upstreams": "start, first list and one call with 1, 10 and 50 upstreams",
    "growth_clients": "one call with 1, 50 and 200 clients over HTTP",
    "replicas": "calls with 1, 2 and 3 replicas behind a balancer: rate, p95, CPU time and Redis commands of a call",
    "sessions": "memory of an idle session and of an open stream, CPU time to notify one",
    "large_upstream": "the list of one upstream with 1,000 and 5,000 tools, against the direct list and mcp-hub",
}
LOAD_PER_CORE = 1.5
"""Our own work makes about one; above this the machine had other things to do."""
LATEST = BENCH / "results" / "latest.json"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # what was started is ended first
    if missing := missing_peers():
        print(f"not measured: {', '.join(missing)}; `make bench-peers` installs them", file=sys.stderr)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="goat-mcp-bench-") as root:
        bench = Workbench(Path(root), quick=options.quick, kept_corpus=options.corpus)
        for subject in options.subjects or SUBJECTS:
            print(f"{subject}: {SUBJECTS[subject]}", file=sys.stderr, flush=True)
            outcomes.append(_measured(subject, bench))
    print_table(outcomes)
    if (busy := os.getloadavg()[0]) > LOAD_PER_CORE * (os.cpu_count() or 1):
        print(f"load average {busy:.1f} on {os.cpu_count()} cores: others were at work, so even ratios mislead")
    write_json(outcomes, options.json, quick=options.quick)
    print(f"as JSON: {options.json}", file=sys.stderr)
    return 1 if any(outcome.failure for outcome in outcomes) else 0


def _measured(subject: str, bench: Workbench) -> Outcome:
    measure: Callable[[Workbench], list[Row]] = import_module(f"bench.subjects.{subject}").measure
    try:
        return Outcome(subject, tuple(measure(bench)))
    except Exception as problem:  # one subject that cannot be measured must not hide the others
        print(f"{subject}: {problem}", file=sys.stderr)
        first_line = next(iter(str(problem).splitlines()), "")
        return Outcome(subject, (), f"{type(problem).__name__}: {first_line[:100]}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    listing = "\n".join(f"  {name:16} {what}" for name, what in SUBJECTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench.run",
        description="Measure goat-mcp side by side with what it is compared with.",
        epilog=f"subjects:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subjects", nargs="*", metavar="NAME", help="what to measure; everything if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a first look, not a verdict")
    parser.add_argument("--corpus", type=Path, help="keep the tree to search here, and use it again next time")
    parser.add_argument("--json", type=Path, default=LATEST, help="where the figures go (default: %(default)s)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.subjects if name not in SUBJECTS]:
        parser.error(f"no such subject: {', '.join(unknown)}; there are {', '.join(SUBJECTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
