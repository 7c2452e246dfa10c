from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.tool import Access
from goat_mcp.files.settings import FileOptions
from goat_mcp.tools.write import Write
from tests.tools.changing import Desk, state_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_new_file_comes_with_its_folders(desk: Desk) -> None:
    path = desk.folder / "a/b/f.txt"

    result = await desk.write(path, "one\ntwo")

    assert result.text == f"Created {path} (2 lines)."
    assert result.facts == {
        "type": "create",
        "lines": 2,
        "additions": 2,
        "deletions": 0,
        "eol": "lf",
        "encoding": "utf-8",
        "staged": False,
    }
    assert path.read_bytes() == b"one\ntwo"


async def test_empty_content_is_fine(desk: Desk) -> None:
    path = desk.folder / "f.txt"

    result = await desk.write(path, "")

    assert result.text == f"Created {path} (0 lines)."
    assert path.read_bytes() == b""


async def test_an_update_says_what_changed(desk: Desk) -> None:
    path = desk.file("f.txt", "a\nb\nc\n")

    result = await desk.write(path, "a\nB\nc\nd\n")

    assert result.text == f"Updated {path} (4 lines, +2 -1, LF kept)."
    assert result.facts is not None
    assert (result.facts["type"], result.facts["additions"], result.facts["deletions"]) == ("update", 2, 1)


async def test_the_same_content_leaves_the_file_alone(desk: Desk) -> None:
    path = desk.file("f.txt", "a\r\n")
    os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    before = state_of(desk.folder)

    result = await desk.write(path, "a\n")

    assert result.text == f"{path} is unchanged: it has this content already (1 line)."
    assert result.facts is not None and result.facts["type"] == "unchanged"
    assert state_of(desk.folder) == before


async def test_write_003_a_crlf_file_stays_one(desk: Desk) -> None:
    path = desk.file("f.txt", "x\r\ny\r\n")

    result = await desk.write(path, "a\nb\n")

    assert path.read_bytes() == b"a\r\nb\r\n"
    assert result.text == f"Updated {path} (2 lines, +2 -2, CRLF kept)."


@pytest.mark.parametrize(
    ("before", "content", "write_eol", "after", "words"),
    [
        ("x\r\n", "a\r\nb\n", "keep", b"a\r\nb\n", "mixed, before CRLF"),
        ("x\r\n", "a\nb\n", "exact", b"a\nb\n", "LF, before CRLF"),
        ("x\n", "a\r\n", "keep", b"a\r\n", "CRLF, before LF"),
        ("x\r\ny\n", "a\n", "keep", b"a\n", "LF, before mixed"),
        ("x", "a\n", "keep", b"a\n", "LF"),
        ("x\n", "a", "keep", b"a", ""),
    ],
)
async def test_write_003_line_ends_that_were_sent_are_never_converted(
    desk: Desk, before: str, content: str, write_eol: str, after: bytes, words: str
) -> None:
    desk.options = FileOptions(read_before_write="off", write_eol="exact" if write_eol == "exact" else "keep")
    path = desk.file("f.txt", before)

    result = await desk.write(path, content)

    assert path.read_bytes() == after
    assert result.text.endswith(f", {words})." if words else "1).")


async def test_write_004_a_file_must_have_been_read(desk: Desk) -> None:
    path = desk.file("f.txt", "a")
    for mode in ("strict", "relaxed"):
        desk.options = FileOptions(read_before_write=mode)

        refusal = await desk.refused_write(path, "x")

        assert refusal.code is ErrorCode.NOT_READ and "Read it first" in refusal.suggestion
        assert path.read_text() == "a"


async def test_an_empty_file_needs_no_read(desk: Desk) -> None:
    desk.options = FileOptions()
    path = desk.file("f.txt", "")

    await desk.write(path, "x\n")
    await desk.write(path, "y\n")

    assert path.read_text() == "y\n"


async def test_write_005_a_relative_path_is_refused(desk: Desk) -> None:
    refusal = await desk.refused_write("rel.txt", "x")

    assert refusal.code is ErrorCode.PATH_RELATIVE
    assert f"{desk.folder}/rel.txt" in refusal.suggestion
    assert state_of(desk.folder) == {}


async def test_write_007_a_byte_order_mark_is_kept_and_not_doubled(desk: Desk) -> None:
    path = desk.file("b.cs", codecs.BOM_UTF8 + b"class B {}\n")

    await desk.write(path, "class A {}\n")
    assert path.read_bytes() == codecs.BOM_UTF8 + b"class A {}\n"
    await desk.write(path, "\ufeffclass C {}\n")
    assert path.read_bytes() == codecs.BOM_UTF8 + b"class C {}\n"


async def test_the_codec_is_kept(desk: Desk) -> None:
    path = desk.file("f.txt", codecs.BOM_UTF16_LE + "old\r\n".encode("utf-16-le"))

    result = await desk.write(path, "n\u00e9w\n")

    assert path.read_bytes() == codecs.BOM_UTF16_LE + "n\u00e9w\r\n".encode("utf-16-le")
    assert result.facts is not None and result.facts["encoding"] == "utf-16-le"


async def test_where_nobody_knows_the_codec_only_known_lines_and_ascii_are_written(desk: Desk) -> None:
    path = desk.file("f.txt", b"caf\xe9\nold\n")

    await desk.write(path, "new\ncaf\u00e9\n")
    refusal = await desk.refused_write(path, "th\u00e9\n")

    assert path.read_bytes() == b"new\ncaf\xe9\n"
    assert refusal.code is ErrorCode.ENCODING and "files.legacy_encoding" in refusal.suggestion


async def test_half_a_surrogate_is_refused(desk: Desk) -> None:
    refusal = await desk.refused_write(desk.folder / "f.txt", "a\ud800")

    assert (refusal.code, refusal.message) == (
        ErrorCode.INPUT,
        "content: holds half a surrogate pair, which is no text",
    )
    assert state_of(desk.folder) == {}


async def test_binary_content_is_replaced_by_text_as_it_came(desk: Desk) -> None:
    path = desk.file("f.bin", b"\0\x01\xff\r\n")

    await desk.write(path, "\u00e9\n")

    assert path.read_bytes() == "\u00e9\n".encode()


async def test_placeholders_the_file_did_not_have_are_noticed(desk: Desk) -> None:
    path = desk.file("f.py", "a = 1\n# ... rest of code ...\n")

    known = await desk.write(path, "a = 2\n# ... rest of code ...\n")
    added = await desk.write(path, "a = 2\n# ... existing code ...\n")
    desk.options = FileOptions(read_before_write="off", placeholder_check="refuse")
    refusal = await desk.refused_write(path, "# ... other functions ...\n")

    assert "[" not in known.text
    assert '["# ... existing code ..." stands for text that was left out' in added.text
    assert refusal.code is ErrorCode.PLACEHOLDER
    assert path.read_text() == "a = 2\n# ... existing code ...\n"


async def test_folders_are_not_created_where_the_caller_says_so(desk: Desk) -> None:
    refusal = await desk.refused_write(desk.folder / "a/f.txt", "x", create_dirs="false")
    await desk.write(desk.folder / "f.txt", "x", createDirs=False)

    assert refusal.code is ErrorCode.NOT_FOUND
    assert list(state_of(desk.folder)) == ["f.txt"]


async def test_fs_05_and_06_links_that_lead_out_create_nothing_there(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (desk.folder / "dangling").symlink_to(outside / "new.txt")
    (desk.folder / "d").symlink_to(outside)

    codes = [(await desk.refused_write(desk.folder / name, "x")).code for name in ("dangling", "d/sub/new.txt")]

    assert codes == [ErrorCode.PATH_OUTSIDE, ErrorCode.PATH_OUTSIDE]
    assert list(outside.iterdir()) == []


async def test_fs_24_a_hard_linked_file_is_refused(desk: Desk) -> None:
    path = desk.file("a", "old")
    os.link(path, desk.folder / "b")

    assert (await desk.refused_write(path, "new")).code is ErrorCode.HARD_LINKED
    assert (desk.folder / "b").read_text() == "old"


async def test_fs_41_modes_are_kept_and_new_files_follow_the_umask(desk: Desk) -> None:
    path = desk.file("run.sh", "old")
    path.chmod(0o755)
    umask = os.umask(0o027)
    try:
        await desk.write(path, "new")
        await desk.write(desk.folder / "fresh", "x")
    finally:
        os.umask(umask)

    assert path.stat().st_mode & 0o777 == 0o755
    assert (desk.folder / "fresh").stat().st_mode & 0o777 == 0o640


async def test_fs_47_a_name_that_is_too_long_is_named(desk: Desk) -> None:
    refusal = await desk.refused_write(desk.folder / ("x" * 5000), "x")

    assert refusal.code is ErrorCode.INPUT and "too long" in refusal.message


async def test_a_directory_is_refused(desk: Desk) -> None:
    (desk.folder / "d").mkdir()

    assert (await desk.refused_write(desk.folder / "d", "x")).code is ErrorCode.DIRECTORY


def test_content_is_never_converted(tmp_path: Path) -> None:
    tool = Write(Desk(tmp_path).workspace, Desk(tmp_path).sessions)

    contents = [tool.validate({"path": "/f", "content": content}).content for content in ("", "null", "[1]", " 5 ")]

    assert contents == ["", "null", "[1]", " 5 "]


def test_the_definition_hides_what_no_model_needs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    tool = Write(desk.workspace, desk.sessions)

    assert set(tool.spec.input_schema["properties"]) == {"file_path", "content"}
    assert tool.spec.input_schema["required"] == ["file_path", "content"]
    assert list(tool.spec.hints.wire().values()) == [False, True, True, False]
    assert tool.access(tool.validate({"path": "@f.txt", "content": ""})) == Access(
        asked=(f"{desk.folder}/f.txt",), writes=(f"{desk.folder}/f.txt",)
    )
