"""Record again what docs/safety.md shows: run its client, and put what it prints into the page.

`python scripts/recorded_run.py`; read the diff as a user would. It wants bubblewrap, for the page shows a sandbox.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "safety.md"
CLIENT = ROOT / "examples" / "safety" / "client.py"
_RECORDED = re.compile(r"^```text\n.*?^```\n", re.MULTILINE | re.DOTALL)


def main() -> int:
    done = subprocess.run([sys.executable, str(CLIENT)], stdout=subprocess.PIPE, text=True, check=True)
    if "[sandbox: bubblewrap]" not in done.stdout:
        sys.stderr.write("There is no bubblewrap here; nothing was recorded.\n")
        return 1
    steps = [step.split("\n\n", 1)[1] for step in re.split(r"\n\n(?=\d+\. )", done.stdout.rstrip())]
    put_into(PAGE, steps)
    return 0


def put_into(page: Path, steps: Sequence[str]) -> None:
    """Replace the blocks of recorded text in a page. Exits with a message if the page has more or fewer of them."""
    between = _RECORDED.split(page.read_text())
    if len(between) != len(steps) + 1:
        raise SystemExit(f"The run has {len(steps)} steps and {page.name} has room for {len(between) - 1}.")
    fenced = [f"```text\n{step}\n```\n" for step in steps]
    page.write_text("".join(part for pair in zip(between, [*fenced, ""], strict=True) for part in pair))


if __name__ == "__main__":
    sys.exit(main())
