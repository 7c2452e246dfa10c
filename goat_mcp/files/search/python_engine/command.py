"""How to start the engine's process. It imports nothing of the engine itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from goat_mcp.files.search.query import DATA_MARK, Command, Query, Report, Target

_PACKAGE_PARENT = str(Path(__file__).resolve().parents[4])
# -I keeps PYTHON* variables and the searched directory away from it
_START = (
    "import sys; sys.path.append(sys.argv[1]); from goat_mcp.files.search.python_engine.process import main; main()"
)


@dataclass(frozen=True)
class PythonEngine:
    """Searches with `re` in a process of its own, which walks with descriptors and follows no link."""

    name: str = "python"

    STUCK: ClassVar[int] = -14
    """Exit code where the pattern got stuck: ended by SIGALRM."""

    def command(self, query: Query, report: Report, target: Target, paths: Sequence[str] = ()) -> Command:
        """Search the target, or only `paths` below it (relative, in this order)."""
        request = {
            "query": asdict(query),
            "report": report,
            "is_directory": target.is_directory,
            "real_path": target.real_path,
            "paths": list(paths),
        }
        arguments = ("-I", "-S", "-c", _START, _PACKAGE_PARENT, DATA_MARK)
        return Command(sys.executable, arguments, json.dumps(request).encode("ascii"))
