"""Read, replace, write, fsync, and nothing else: what an edit costs at least. Prints the seconds it took.

Arguments: `bytes` or `text`, the file, the old string, the new one. `text` decodes and encodes, as an editor must.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main(how: str, path: Path, old: str, new: str) -> float:
    started = time.perf_counter()
    if how == "bytes":
        data = path.read_bytes().replace(old.encode(), new.encode())
    else:
        with path.open(encoding="utf-8", newline="") as file:
            data = file.read().replace(old, new).encode()
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - started


if __name__ == "__main__":
    print(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
