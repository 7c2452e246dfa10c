"""Print what the changelog says about a release: `python -m scripts.release_notes TAG`.

It refuses a tag that is not the version of the package, and a version without a date: a release begins with this check.
"""

from __future__ import annotations

import re
import sys

from goat_mcp.core.version import __version__
from scripts.packaging_files import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"
_HEADING = re.compile(r"^## (?P<version>\S+) \((?P<date>.+)\)$", re.MULTILINE)


def release_notes(tag: str, version: str, changelog: str) -> str:
    """The newest section of `changelog`, without its heading. Exits with a message if it is not about `tag`."""
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, but goat_mcp/core/version.py says {version}: expected v{version}")
    newest, *older = _HEADING.finditer(changelog)
    if newest["version"] != version:
        raise SystemExit(f"the newest heading of CHANGELOG.md is {newest['version']}, not {version}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", newest["date"]):
        raise SystemExit(f'CHANGELOG.md says "{newest["date"]}" for {version}: write the date of the release')
    end = older[0].start() if older else len(changelog)
    return changelog[newest.end() : end].strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m scripts.release_notes TAG")
    sys.stdout.write(release_notes(sys.argv[1], __version__, CHANGELOG.read_text()) + "\n")
