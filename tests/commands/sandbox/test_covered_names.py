"""Why a name that must not be made is covered by a directory that can be seen: what the kernel does otherwise.

design/0025 names these tests. If one of them fails on a newer kernel, there may be a better way now.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode != 0,
        reason="no user namespaces here",
    ),
]
INSIDE = ("unshare", "-Urm", "sh", "-c")
COVER = "mount -t tmpfs -o ro none"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run_inside(script: str, folder: Path, meanwhile: Callable[[], object]) -> str:
    """What the script prints in a mount namespace of its own. `read` in it waits until `meanwhile` has run outside."""
    with subprocess.Popen(
        [*INSIDE, script],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        if first != "ready\n":
            pytest.skip(f"mounts do not work here: {first}")
        meanwhile()
        return process.communicate("go on\n", timeout=60)[0]


def test_a_name_can_only_be_covered_if_it_is_there(tmp_path: Path) -> None:
    done = subprocess.run([*INSIDE, f"{COVER} .mcp.json"], cwd=tmp_path, capture_output=True, check=False, timeout=60)

    assert done.returncode != 0
    assert names(tmp_path) == []


@pytest.mark.parametrize("way", ["removed", "moved"])
def test_a_name_is_free_as_soon_as_its_directory_is_gone_outside(tmp_path: Path, way: str) -> None:
    covered = tmp_path / "work" / ".mcp.json"
    covered.mkdir(parents=True)
    script = f"cd work && {COVER} .mcp.json && ! mkdir .mcp.json/x 2>/dev/null && echo ready; read _; echo > .mcp.json"

    run_inside(script, tmp_path, covered.rmdir if way == "removed" else lambda: covered.rename(tmp_path / "elsewhere"))

    assert covered.is_file()


def test_an_overlay_does_not_see_what_is_made_outside(tmp_path: Path) -> None:
    for name in ("work", "lower/.mcp.json", "scratch", "mounted"):
        (tmp_path / name).mkdir(parents=True)
    seen_outside: list[str] = []
    script = (
        "mount -t overlay none -o lowerdir=lower,upperdir=work,workdir=scratch,userxattr mounted || exit; "
        f"{COVER} mounted/.mcp.json; cat mounted/new 2>/dev/null; echo ready; read _; ls -A mounted; cat mounted/new"
    )

    def write_outside() -> None:
        seen_outside.extend(names(tmp_path / "work"))
        (tmp_path / "work" / "new").write_text("from outside\n")

    output = run_inside(script, tmp_path, write_outside)

    assert seen_outside == []
    assert ".mcp.json" in output.splitlines()  # the command sees the name here too
    assert "No such file" in output and "from outside" not in output
