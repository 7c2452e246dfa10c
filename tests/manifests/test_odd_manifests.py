"""Manifests and directories of them that are odd, and what becomes of the rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from goat_mcp.manifests.folder import ManifestFolders
from tests.manifests.declared import call, eventually, gateway_over, python
from tests.manifests.documents import TOOL, put

BOUND_S = 60.0
ONLY_LINUX = pytest.mark.linux_only("other systems' names are text")
TIDE = TOOL.replace("name: weather", "name: tide")


def twice(text: str) -> str:
    """With another parameter that is a copy of the first one's schema."""
    return text.replace("{type: string}", "&city {type: string}").replace(
        "        required", "          town: *city\n        required"
    )


GOOD: dict[str, str | bytes] = {
    "anchors": twice(TOOL),
    "line ends of Windows": TOOL.replace("\n", "\r\n"),
    "line ends of old": TOOL.replace("\n", "\r"),
    "a byte order mark": f"\ufeff{TOOL}",
    "empty documents around": f"---\n---\n# nothing\n---\n{TOOL}---\n---\n",
    "an end of the document": f"{TOOL}...\n",
    "a tag that is its own kind": TOOL.replace("metadata:\n", "metadata: !!map\n"),
    "a date as description": TOOL.replace("The weather of a city, today.", "2026-11-22"),
    "a tag directive": f"%TAG ! tag:weather.example,2026:\n---\n{TOOL}",
    "a thousand brackets in a remark": f"{TOOL}# {'[' * 5_000}\n",
    "a thousand brackets in a text": TOOL.replace("The weather of", f"The weather {'(' * 90}{'[' * 900} of"),
    "blanks around the entry": TOOL.replace("./handlers.py", '"  ./handlers.py  "'),
    "a parameter with a strange name": TOOL.replace("city: {type", "'стадт a/b.c': {type").replace("[city]", "[]"),
    "the name of a built-in tool": TOOL.replace("name: weather", "name: Read"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_manifest_that_is_only_unusual_is_used(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "a", GOOD[kind])

    read = ManifestFolders([tmp_path]).read()

    assert [str(problem) for problem in read.problems if problem.is_fatal] == []
    assert [len(tool.exports) for tool in read.tools] == [1]


def leads_to_itself(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "around").symlink_to(folder)


def other_yaml(folder: Path) -> None:
    (folder / "b.yaml").write_text("- a\n- list\n")
    os.mkfifo(folder / "c.yaml")
    (folder / "d.yaml").mkdir()


def a_name_of_bytes(folder: Path) -> None:
    put(folder / os.fsdecode(b"b\xff\n"), TOOL.replace("name: weather", "name: bytes"))


def a_linked_folder(folder: Path) -> None:
    put(folder.parent / "elsewhere", TOOL.replace("name: weather", "name: linked"))
    (folder / "b").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("beside", "more"),
    [
        (leads_to_itself, []),
        (other_yaml, []),
        pytest.param(a_name_of_bytes, ["bytes"], marks=ONLY_LINUX),
        (a_linked_folder, ["linked"]),
    ],
)
def test_what_else_lies_in_a_directory_leaves_its_manifests_alone(
    tmp_path: Path, beside: Callable[[Path], None], more: list[str]
) -> None:
    folder = tmp_path / "tools"
    put(folder / "a", TOOL)
    beside(folder)
    put(folder / "z", TIDE)

    read = ManifestFolders([folder]).read()

    assert read.problems == ()
    assert [tool.name for tool in read.tools] == ["weather", *more, "tide"]


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


def a_folder(file: Path) -> None:
    file.mkdir()


def a_link_to_nothing(file: Path) -> None:
    file.symlink_to("nothing")


def a_link_to_itself(file: Path) -> None:
    file.symlink_to(file.name)


@pytest.mark.parametrize("make", [a_pipe, a_folder, a_link_to_nothing, a_link_to_itself])
def test_a_tool_yaml_that_is_no_file_is_told(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "tool.yaml"
    make(file)
    put(tmp_path / "z", TIDE)

    read = ManifestFolders([tmp_path]).read()

    assert [str(problem) for problem in read.problems] == [
        f"{file}: is no file; put the manifest there, or take it away"
    ]
    assert [tool.name for tool in read.tools] == ["tide"]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that root cannot read either is /proc/self/mem")
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "tool.yaml"
    file.symlink_to("/proc/self/mem")
    put(tmp_path / "z", TIDE)

    read = ManifestFolders([tmp_path]).read()

    assert [str(problem) for problem in read.problems] == [
        f"{file}: cannot be read: Input/output error; fix its rights"
    ]
    assert [tool.name for tool in read.tools] == ["tide"]


@pytest.mark.not_as_root("root may look into every directory")
def test_a_directory_that_may_not_be_looked_into_leaves_the_others_alone(tmp_path: Path) -> None:
    put(tmp_path / "a", TOOL)
    (tmp_path / "a").chmod(0)
    put(tmp_path / "z", TIDE)

    read = ManifestFolders([tmp_path]).read()
    (tmp_path / "a").chmod(0o700)

    assert [tool.name for tool in read.tools] == ["tide"]


@pytest.mark.anyio
@pytest.mark.parametrize("within", [".", "workspace"], ids=["watched", "sealed"])
async def test_links_that_lead_to_themselves_do_not_keep_a_gateway_from_serving(tmp_path: Path, within: str) -> None:
    folder = tmp_path / within / "tools"
    folder.mkdir(parents=True)
    leads_to_itself(folder)
    (folder / "around").unlink()  # a copy would hold all of it twice
    place = python(folder, "probe", "handlers = {'say': lambda ctx, input: 'old'}", "say")
    gateway = gateway_over(tmp_path, folder)

    with anyio.fail_after(BOUND_S):
        async with gateway.running():
            first = await call(gateway, "probe__say")
            if within == ".":
                before = gateway.registry.get("probe__say")
                (place / "tool.yaml").write_text((place / "tool.yaml").read_text().replace("For tests", "Of tests"))
                await eventually(lambda: gateway.registry.get("probe__say") is not before)
            second = await call(gateway, "probe__say")

    assert (first.text, second.text) == ("old", "old")
