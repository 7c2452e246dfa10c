"""Ten answers of nearly 50 KB, of which one number is wanted: one script against ten calls. Tokens: characters / 4."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median

from bench.report import Bar, Row
from bench.wire import WireClient
from bench.workbench import CannotMeasure, Workbench

CALLS = 10
ANSWER_BYTES = 46_000
"""About the most that one Read shows: nearly the 50 KB that are meant."""
LINE_NUMBER_CHARS = 8
TOKENS_BAR = 0.10
ADDED_BAR_MS = 30.0
CHARS_PER_TOKEN = 4


def measure(bench: Workbench) -> list[Row]:
    folder = bench.folder("workspace")
    line = "an order of the shop, its number, and what was paid for it. " * 10 + "12.50\n"
    lines = ANSWER_BYTES // (len(line) + LINE_NUMBER_CHARS)
    paths = [str(folder / f"orders{number}.txt") for number in range(CALLS)]
    for path in paths:
        Path(path).write_text(line * lines, encoding="utf-8")
    script = (
        f"found = 0\nfor path in {paths!r}:\n"
        "    text = await Read(file_path=path)\n    found += text.count('12.50')\nfound"
    )
    flags = ("--toolset", "code", "--set", "output.max_chars=200000")
    with WireClient(bench.goat(*flags), bench.env, stderr=bench.root / "code_mode.log") as client:
        client.open()
        answers = [client.call("Read", {"file_path": path}) for path in paths]
        answer = client.call("run_script", {"script": script})
        if answer != str(CALLS * lines):
            raise CannotMeasure(f"the script answered {answer[:200]}")
        direct_ms: list[float] = []
        script_ms: list[float] = []
        for _ in range(bench.rounds(40, 10)):
            started = time.perf_counter()
            for path in paths:
                client.call("Read", {"file_path": path})
            between = time.perf_counter()
            client.call("run_script", {"script": script})
            direct_ms.append((between - started) * 1000)
            script_ms.append((time.perf_counter() - between) * 1000)
    direct = sum(map(len, [*answers, *(json.dumps({"file_path": path}) for path in paths)])) / CHARS_PER_TOKEN
    by_script = (len(answer) + len(json.dumps({"script": script}))) / CHARS_PER_TOKEN
    added_ms = median(by - of for by, of in zip(script_ms, direct_ms, strict=True))
    what = f"{CALLS} calls with {len(answers[0]) // 1000} KB answers"
    bar = Bar(by_script / direct, TOKENS_BAR, "x")
    return [
        Row(f"tokens of {what}, one script", by_script, "tokens", "calls one by one", direct, bar),
        Row(
            f"time of {what}, one script",
            median(script_ms),
            "ms",
            "calls one by one",
            median(direct_ms),
            Bar(added_ms, ADDED_BAR_MS, "ms more"),
        ),
    ]
