"""Build the wheel and the source distribution: `python -m scripts.distributions [FOLDER]`, by default `dist`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from scripts.packaging_files import ROOT

CONSTRAINTS = ROOT / "constraints.txt"


@dataclass(frozen=True)
class Distributions:
    wheel: Path
    source: Path


def build(folder: Path, source: Path = ROOT) -> Distributions:
    """Build both from the folder `source`. The wheel is built from the source distribution, as an index would do it."""
    # uv trusts the certificates of this machine, also if a company has added its own.
    environment = {"UV_SYSTEM_CERTS": "1", **os.environ}
    command = [find_uv_bin(), "build", "--quiet", "--no-create-gitignore", "--build-constraints", str(CONSTRAINTS)]
    done = subprocess.run(
        [*command, "--out-dir", str(folder), str(source)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"uv build failed:\n{done.stdout}{done.stderr}")
    return Distributions(_newest(folder, "*.whl"), _newest(folder, "*.tar.gz"))


def _newest(folder: Path, pattern: str) -> Path:
    """The folder may have those of an older version."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


if __name__ == "__main__":
    built = build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
    sys.stdout.write(f"{built.wheel}\n{built.source}\n")
