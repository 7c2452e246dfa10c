"""Glob over ripgrep. Ids in test names are those of the shared cases."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from tests.files.search.search_tools import Folder, folder

pytestmark = pytest.mark.anyio


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return folder(tmp_path)


class TestPatterns:
    async def test_paths_are_absolute_and_newest_first(self, files: Folder) -> None:
        for name in ("b.py", "sub/a.py", "c.py", "d.txt"):
            files.write(name)

        result = await files.glob("**/*.py")

        assert result.text.split("\n") == files.paths("c.py", "sub/a.py", "b.py")
        assert result.facts == {"total": 3, "count_is_complete": True, "timed_out": False, "truncated": False}

    async def test_files_of_the_same_age_come_in_order_of_their_paths(self, files: Folder) -> None:
        for name in ("b", "c", "a"):
            os.utime(files.write(name), (5, 5))

        assert await files.names("*") == ["a", "b", "c"]
        assert (await files.names("*", limit=2))[:2] == ["a", "b"]

    async def test_glob_004_braces_work_and_two_stars_match_no_directory_too(self, files: Folder) -> None:
        for name in ("top.json", "deep/er/low.yaml", "deep/mid.json", "no.txt"):
            files.write(name)

        assert await files.names("**/*.{json,yaml}") == ["deep/mid.json", "deep/er/low.yaml", "top.json"]

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("*.py", ["a.py"]),
            ("./*.py", ["a.py"]),
            ("a.py", ["a.py"]),
            ("src/*.py", ["src/b.py"]),
            ("src/**/*.py", ["src/x/y/c.py", "src/b.py"]),
            ("src/**", ["src/x/y/c.py", "src/b.py"]),
            ("**", ["src/x/y/c.py", "[q].md", ".hidden/h.py", "src/b.py", "a.py"]),
            ("**/*", ["src/x/y/c.py", "[q].md", ".hidden/h.py", "src/b.py", "a.py"]),
            ("**/y/**", ["src/x/y/c.py"]),
            ("**/x/**/c.py", ["src/x/y/c.py"]),
            ("{src,.hidden}/*.py", [".hidden/h.py", "src/b.py"]),
            ("{a,src/b}.py", ["src/b.py", "a.py"]),
            ("?.py", ["a.py"]),
            ("[a-c].py", ["a.py"]),
            ("[!b-z].py", ["a.py"]),
            ("src/[[:alpha:]].py", ["src/b.py"]),
            ("s*/x/?/[^d].p*", ["src/x/y/c.py"]),
            (r"\[q\].md", ["[q].md"]),
            ("src/../a.py", ["a.py"]),
            ("$ROOT/src/**/*.py", ["src/x/y/c.py", "src/b.py"]),
            ("$ROOT/a.py", ["a.py"]),
            ("@/src/*.py", ["src/b.py"]),
        ],
    )
    async def test_patterns_match_what_they_say(self, files: Folder, pattern: str, expected: list[str]) -> None:
        for name in ("a.py", "src/b.py", ".hidden/h.py", "[q].md", "src/x/y/c.py"):
            files.write(name)

        assert await files.names(pattern.replace("$ROOT", str(files.root))) == expected

    async def test_a_file_whose_name_is_the_pattern_is_found(self, files: Folder) -> None:
        for name in ("data[2].csv", "odd{.txt", "data2.csv"):
            files.write(name)

        assert sorted(await files.names("data[2].csv")) == ["data2.csv", "data[2].csv"]
        assert await files.names("odd{.txt") == ["odd{.txt"]

    @pytest.mark.parametrize("pattern", ["a{b", "a[b", "[[:nope:]]", "", "/", "*/../x"])
    async def test_a_broken_pattern_is_an_error(self, files: Folder, pattern: str) -> None:
        with pytest.raises(ToolError) as refused:
            await files.glob(pattern)

        assert refused.value.code in (ErrorCode.PATTERN, ErrorCode.PATH_OUTSIDE)

    async def test_glob_006_no_match_is_an_answer(self, files: Folder) -> None:
        files.write("a.txt")

        result = await files.glob("*.zzz")

        assert (result.text, result.is_error) == ("No files found", False)

    async def test_glob_007_nul_is_refused(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.glob("a\0b")

        assert refused.value.code is ErrorCode.PATTERN

    async def test_a_bare_name_that_lies_deeper_is_pointed_at(self, files: Folder) -> None:
        files.write("src/a.ts")
        files.write("src/b.ts")

        assert await files.names("*.ts") == [
            "No files found",
            "[2 files match in subdirectories; put **/ before the pattern]",
        ]

    async def test_a_pattern_that_could_run_away_answers_at_once(self, files: Folder) -> None:
        files.write("a" * 200 + "c")

        assert await files.names("*a" * 30 + "b") == ["No files found"]
        assert await files.names("**/*a/" * 20 + "b") == ["No files found"]

    async def test_more_alternatives_than_anyone_needs_are_refused(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.glob("{a,b}" * 12)

        assert refused.value.code is ErrorCode.PATTERN


class TestWhere:
    async def test_path_is_where_the_search_starts(self, files: Folder) -> None:
        files.write("a.py")
        files.write("src/b.py")

        assert await files.names("*.py", path=f"{files.root}/src") == ["src/b.py"]
        assert await files.names("*.py", directory="@src") == ["src/b.py"]

    async def test_glob_008_a_missing_root_or_a_file_is_an_error_that_names_it(self, files: Folder) -> None:
        files.write("a.py")

        for name, code in (("nope", ErrorCode.NOT_FOUND), ("a.py", ErrorCode.NOT_A_DIRECTORY)):
            with pytest.raises(ToolError) as refused:
                await files.glob("*", path=f"{files.root}/{name}")
            assert (refused.value.code, f"{files.root}/{name}" in refused.value.message) == (code, True)

    @pytest.mark.parametrize("pattern", ["../**/*", "../../*", "src/../../*", "/etc/*", "/**/passwd", "/*"])
    async def test_fs_28_nothing_outside_the_root_is_listed(self, files: Folder, pattern: str) -> None:
        with pytest.raises(ToolError) as refused:
            await files.glob(pattern)

        assert refused.value.code is ErrorCode.PATH_OUTSIDE

    async def test_links_are_not_followed(self, files: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
        outside = tmp_path_factory.mktemp("outside")
        (outside / "canary.txt").write_text("x")
        (files.root / "d").symlink_to(outside)
        (files.root / "f.txt").symlink_to(outside / "canary.txt")
        (files.root / "loop").symlink_to(files.root)
        files.write("own.txt")

        assert await files.names("**/*", include_ignored=True) == ["own.txt"]
        with pytest.raises(ToolError):
            await files.glob("*", path=f"{files.root}/d")

    async def test_hidden_files_are_listed_and_version_control_is_not(self, files: Folder) -> None:
        for name in (".env", ".git/config", ".hg/store", ".svn/x", ".jj/x", ".sl/x", "sub/.git/x"):
            files.write(name)

        assert await files.names("**/*") == [".env"]
        assert await files.names("**/.git/*", include_ignored=True) == ["No files found"]


class TestIgnored:
    async def test_ignored_files_are_left_out_without_a_repository_too(self, files: Folder) -> None:
        files.write(".gitignore", "build/\n")
        files.write("build/x.py")
        files.write("a.py")

        assert await files.names("**/*.py") == ["a.py"]
        assert await files.names("**/*.py", include_ignored=True) == ["a.py", "build/x.py"]
        assert await files.names("**/*.py", no_ignore="true") == ["a.py", "build/x.py"]

    async def test_where_only_ignored_files_match_they_are_listed(self, files: Folder) -> None:
        files.write(".gitignore", "build/\n")
        files.write("build/x.py")

        assert await files.names("**/*.py") == ["build/x.py", "[only ignored files matched]"]
        assert await files.names("build/*.py") == ["build/x.py", "[only ignored files matched]"]

    async def test_ignore_files_of_other_tools_count(self, files: Folder) -> None:
        files.write(".ignore", "*.log\n")
        files.write("a.log")
        files.write("a.txt")

        assert await files.names("a.*") == ["a.txt"]


class TestMany:
    async def test_the_newest_are_shown_with_the_whole_count(self, files: Folder) -> None:
        for number in range(130):
            files.write(f"{number % 7}/f{number}.txt")

        result = await files.glob("**/*.txt")
        lines = result.text.split("\n")

        assert lines[:2] == files.paths("3/f129.txt", "2/f128.txt")
        assert lines[100:] == ["[100 of 130 shown, newest first]"]
        assert result.facts == {"total": 130, "count_is_complete": True, "timed_out": False, "truncated": True}

    async def test_the_limit_has_a_bound(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.glob("*", limit=1001)

        assert refused.value.code is ErrorCode.INPUT

    async def test_names_with_odd_characters_stay_one_line_each(self, files: Folder) -> None:
        files.write(os.fsdecode(b"bad\xff.txt"))
        files.write("two\nlines.txt")
        files.write("bidi\u202e.txt")

        assert await files.names("*") == ["bidi\\u202e.txt", "two\\nlines.txt", "bad\\xff.txt"]
