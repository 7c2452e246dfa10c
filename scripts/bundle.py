"""Make the MCPB, which a desktop host installs with a click: `python scripts/bundle.py [FOLDER]`, by default `dist`.

It holds what the package is built from, and its manifest; the host fetches the dependencies (`server.type` uv). The
same source makes the same bytes.
"""

from __future__ import annotations

import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from scripts.packaging_files import BUNDLE_FILE, ROOT, project

MANIFEST = "manifest.json"
NOT_OURS = ("__pycache__", ".")
"""What names of files and folders begin with that only a checkout that was worked in has."""
EARLIEST = (1980, 1, 1, 0, 0, 0)


def bundled() -> Iterator[Path]:
    """What the wheel is built from, and the files that pyproject.toml names."""
    about = project()
    yield from (ROOT / name for name in ("pyproject.toml", about["readme"], *about["license-files"]))
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source in sorted({*wheel["packages"], *wheel["force-include"]}):
        yield from _files_of(ROOT / source)


def make(folder: Path) -> Path:
    """Write the bundle into `folder`, which is made where it is not there."""
    about = project()
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / f"{about['name']}-{about['version']}.mcpb"
    with zipfile.ZipFile(bundle, "w") as archive:
        _add(archive, MANIFEST, BUNDLE_FILE)
        for path in bundled():
            _add(archive, path.relative_to(ROOT).as_posix(), path)
    return bundle


def _files_of(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for path in sorted(source.iterdir()):
        if not path.name.startswith(NOT_OURS):
            yield from _files_of(path)


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    entry = zipfile.ZipInfo(name, EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (path.stat().st_mode & 0o111 | 0o644) << 16
    archive.writestr(entry, path.read_bytes())


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / 'dist')}\n")
