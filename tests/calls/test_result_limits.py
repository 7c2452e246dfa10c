"""What becomes of a result that is too long: nothing is lost, and nobody else gets it (SPL-1, SPL-2)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.result_limits import ResultLimits
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from tests.contract.test_every_tool import gateway_in
from tests.tool_doubles import FakeTool, spec

IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "x://y", "name": "y"}


def bounds(folder: Path, max_chars: int = 100, **members: Any) -> ResultLimits:
    of = spec("mcp__s__t", canonical_name="mcp__s__t", toolset="upstream")
    return ResultLimits(replace(of, **members), max_chars, SpillFiles(StateDirectory(folder)))


def kept_in(folder: Path) -> Path:
    (path,) = (path for path in folder.rglob("spill/**/*") if path.is_file())
    return path


def test_SPL_1_head_tail_size_and_path_are_told_and_all_else_stays(tmp_path: Path) -> None:
    texts = ["a" * 90, "b" * 90]
    long = ToolResult((text_block(texts[0]), IMAGE, text_block(texts[1]), LINK), is_error=True, meta={"k": 1})

    result = bounds(tmp_path).of(long)

    path = kept_in(tmp_path)
    shown, image, link, whole = result.content
    said = f"[... 81 of 181 characters cut; the whole is in {path}, which Read and Grep can open ...]"
    assert shown["text"] == f"{'a' * 40}\n{said}\n{'b' * 60}"
    assert (image, link, result.is_error, result.meta) == (IMAGE, LINK, True, {"k": 1})
    assert (whole["type"], whole["uri"]) == ("resource_link", f"goat://output/{path.name}")
    assert path.read_text() == "\n".join(texts)
    assert path.stat().st_mode & 0o777 == 0o600


def test_SPL_1_an_embedded_resource_of_too_much_text_is_kept_too(tmp_path: Path) -> None:
    embedded = {"type": "resource", "resource": {"uri": "x://z", "text": "z" * 500}}

    result = bounds(tmp_path).of(ToolResult((embedded,)))

    assert [block["type"] for block in result.content] == ["text", "resource_link"]
    assert kept_in(tmp_path).read_text() == "z" * 500


def test_SPL_1_a_result_at_the_bound_is_left_alone(tmp_path: Path) -> None:
    at = ToolResult((text_block("x" * 100),), structured={"x": 1})

    assert not bounds(tmp_path).exceeded_by(at) and bounds(tmp_path).of(at) == at
    assert bounds(tmp_path).exceeded_by(ToolResult((text_block("x" * 101),)))


def test_SPL_2_promised_structured_content_is_whole_or_an_error(tmp_path: Path) -> None:
    rows = {"rows": ["x" * 100] * 20}
    whole = ToolResult((text_block("y" * 300),), structured=rows)
    wide, narrow = (bounds(tmp_path, size, output_schema={"type": "object"}) for size in (250, 100))

    kept, failed = wide.of(whole), narrow.of(whole)

    assert kept.structured == rows and not kept.is_error
    assert failed.is_error and failed.error_code == "E_TOO_LARGE" and failed.structured is None
    facts = failed.wire()["structuredContent"]
    assert facts["characters"] == len(json.dumps(rows))
    assert json.loads(Path(facts["path"]).read_text()) == rows


def test_SPL_2_unpromised_structured_content_that_is_too_large_is_left_out_and_told(tmp_path: Path) -> None:
    result = bounds(tmp_path, 1000).of(ToolResult((text_block("short"),), structured={"rows": ["x" * 100] * 200}))

    assert (result.structured, result.is_error, result.content[0]["text"]) == (None, False, "short")
    assert "too many to send" in result.content[1]["text"] and str(kept_in(tmp_path)) in result.content[1]["text"]


def declared(folder: Path, size: int, **members: Any) -> ResultLimits:
    return bounds(folder, size, toolset="manifests", **members)


def test_SPL_1_the_object_that_a_declared_tools_text_says_is_bounded_with_the_text(tmp_path: Path) -> None:
    rows = {"rows": ["x" * 100] * 5}
    long = ToolResult((text_block(json.dumps(rows)),), structured=rows)

    result = declared(tmp_path, 200).of(long)

    path = kept_in(tmp_path)
    assert json.loads(path.read_text()) == rows
    assert result.wire()["structuredContent"] == {
        "truncated": True,
        "characters": len(json.dumps(rows)),
        "path": str(path),
    }
    assert f"the whole is in {path}" in result.text
    assert declared(tmp_path, 1000).of(long) is long


def test_SPL_2_an_object_that_a_declared_tool_promised_is_whole_or_an_error(tmp_path: Path) -> None:
    rows = {"rows": ["x" * 100] * 5}
    long = ToolResult((text_block(json.dumps(rows)),), structured=rows)

    result = declared(tmp_path, 300, output_schema={"type": "object"}).of(long)

    assert (result.error_code, result.wire()["structuredContent"]["path"]) == ("E_TOO_LARGE", str(kept_in(tmp_path)))
    assert json.loads(kept_in(tmp_path).read_text()) == rows


def test_SPL_1_a_tools_name_never_leads_out_of_the_folder(tmp_path: Path) -> None:
    """A native name may hold anything; the file it is kept in lies where it should all the same."""
    (tmp_path / "spill" / "local" / "mcp__s__").mkdir(parents=True)
    (tmp_path / "outside").mkdir()

    bounds(tmp_path, canonical_name="mcp__s__/../../../../outside/evil").of(ToolResult((text_block("x" * 500),)))

    assert list((tmp_path / "outside").iterdir()) == []
    assert "/" not in kept_in(tmp_path).name


def test_SPL_1_a_full_disk_takes_the_result_from_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpillFiles, "write", full)
    result = bounds(tmp_path).of(ToolResult((text_block("x" * 500),)))

    assert "400 of 500 characters cut; the whole could not be kept: No space left on device" in result.text


@pytest.mark.anyio
async def test_SPL_1_a_long_result_is_read_by_its_caller_and_is_not_there_for_another(tmp_path: Path) -> None:
    # R-HTTP-3: by no tool, in no way, also where the state directory lies in the workspace.
    served = gateway_in(tmp_path, workspace=[str(tmp_path)])
    served.registry.register(FakeTool(spec("mcp__s__t"), ToolResult((text_block("needle-" + "x" * 40_000),))))
    mine, other = (ToolContext(call_id=name, principal=name, session_key=name) for name in ("a", "b"))
    answer = await served.call("mcp__s__t", {}, mine)
    path = kept_in(tmp_path)

    async def tries(ctx: ToolContext) -> list[str]:
        calls = [
            ("Read", {"file_path": str(path)}),
            ("Grep", {"pattern": "needle", "path": str(path)}),
            ("Grep", {"pattern": "needle", "path": str(path.parent)}),
            ("Grep", {"pattern": "needle", "path": str(path.parent.parent)}),
            ("Grep", {"pattern": "needle", "path": str(tmp_path), "include_ignored": True}),
            ("Glob", {"pattern": "**/*.txt", "path": str(path.parent.parent)}),
            ("Glob", {"pattern": str(path)}),
        ]
        return [(await served.call(name, arguments, ctx)).text for name, arguments in calls]

    own, foreign = await tries(mine), await tries(other)

    assert str(path) in answer.text
    assert "needle" in own[0] and str(path) in own[1] and str(path) in own[2]
    assert not [text for text in foreign if "needle-" in text or path.name in text.replace(str(path), "", 1)]
    assert all("[E_PATH_OUTSIDE]" in text or "No " in text for text in foreign), foreign
    (readable,) = [one for one in served.resources.providers if type(one).__name__ == "SpillResource"]
    uri = f"goat://output/{path.name}"
    assert (await readable.read(uri, other)) is None
    read = await readable.read(uri, mine)
    assert read is not None and read.text == path.read_text()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["..%2Fx.txt", "../x.txt", ".x.txt", "x", "x.txt\n", "a/b.txt"])
async def test_SPL_1_a_link_names_a_file_of_the_folder_and_nothing_else(tmp_path: Path, name: str) -> None:
    served = gateway_in(tmp_path)
    (readable,) = [one for one in served.resources.providers if type(one).__name__ == "SpillResource"]
    for place in (served.services.spill.folder, served.services.spill.root):
        (place / "x.txt").write_text("secret")
        (place / ".x.txt").write_text("secret")

    assert await readable.read(f"goat://output/{name}", ToolContext(call_id="c")) is None
