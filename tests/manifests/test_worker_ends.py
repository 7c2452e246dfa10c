"""The process of handlers ends with the server's end of its pipe, whenever that comes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from goat_mcp.manifests import worker


def test_one_that_nobody_calls_any_more_ends_as_soon_as_it_is_loaded(tmp_path: Path) -> None:
    handlers = tmp_path / "handlers.py"
    handlers.write_text("handlers = {'today': print}\n")
    start = {"config": {}, "source": {"name": "weather", "file": str(handlers)}}

    # Its input has ended before it is ready, as that of `goat-mcp manifest check` has.
    done = subprocess.run(
        [sys.executable, worker.__file__], input=json.dumps(start) + "\n", capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, json.loads(done.stdout), done.stderr) == (
        0,
        {"ready": ["today"], "wrong_signatures": {}},
        "",
    )
