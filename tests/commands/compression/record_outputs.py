"""Records what real programs print, for the tests beside: `python -m tests.commands.compression.record_outputs`.

A program that is not installed keeps its old recording, and the script says so. The folder's name and the time a
command took are the only things that are changed afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.commands.compression.recordings import RECORDED, RECORDINGS, Recording
from tests.commands.compression.sample_projects import make_go, make_jest, make_python, make_rust
from tests.commands.compression.savings import table_row

_SHOWN_FOLDER = "/home/ada/shop"
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "CARGO_TERM_COLOR": "never",
}
_MAKERS = {"python": make_python, "go": make_go, "rust": make_rust, "jest": make_jest}


def main() -> None:
    RECORDED.mkdir(exist_ok=True)
    environment = {**os.environ, **_ENVIRONMENT}
    with tempfile.TemporaryDirectory() as folder:
        projects: dict[str, Path] = {}
        for recording in RECORDINGS:
            if shutil.which(recording.program, path=environment["PATH"]) is None:
                print(f"{recording.name}: no {recording.program} here, the old recording stays", file=sys.stderr)
                continue
            if recording.project not in projects:
                projects[recording.project] = project = Path(folder, recording.project)
                project.mkdir()
                _MAKERS[recording.project](project, environment)
            _record(recording, projects[recording.project], environment)
    print("For the table of docs/compression.md:", *map(table_row, RECORDINGS), sep="\n")


def _record(recording: Recording, project: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", recording.command],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != recording.exit_code:
        raise SystemExit(f"{recording.name}: exit code {done.returncode}\n{done.stdout.decode()}")
    text = done.stdout.decode().replace(str(project), _SHOWN_FOLDER)
    text = re.sub(r"/\S+?/\.venv/", "/home/ada/.venv/", text)
    recording.file.write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
