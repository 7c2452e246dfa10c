"""Grep over ripgrep. Ids in test names are those of the shared cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.search.engine import SearchEngine
from goat_mcp.files.workspace import Workspace
from goat_mcp.tools.grep import Grep, GrepInput
from tests.files.search.search_tools import Folder, folder

pytestmark = pytest.mark.anyio


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return folder(tmp_path)


class TestModes:
    async def test_grep_001_files_with_matches_is_the_default_and_gives_paths_newest_first(self, files: Folder) -> None:
        for name in ("b.py", "a.py", "c.md"):
            files.write(name, "a needle\n")
        files.write("d.py", "nothing\n")

        result = await files.grep("needle")

        assert result.text.split("\n") == files.paths("c.md", "a.py", "b.py")
        assert result.facts == {
            "mode": "files_with_matches",
            "num_files": 3,
            "num_lines": 0,
            "num_matches": 0,
            "truncated": False,
            "timed_out": False,
            "engine": "ripgrep",
        }

    async def test_files_of_the_same_age_come_in_order_of_their_paths(self, files: Folder) -> None:
        import os

        for name in ("b", "c", "a"):
            os.utime(files.write(name, "x\n"), (5, 5))

        assert await files.matching("x") == ["a", "b", "c"]

    async def test_content_gives_an_absolute_path_and_a_number_on_each_line(self, files: Folder) -> None:
        path = files.write("a.txt", "one\ntwo\nthree two\n")

        result = await files.grep("two", output_mode="content")

        assert result.text == f"{path}:2:two\n{path}:3:three two"

    async def test_content_of_a_single_file_carries_its_path_as_well(self, files: Folder) -> None:
        path = files.write("a.txt", "one\ntwo\n")

        result = await files.grep("two", output_mode="content", path=str(path))

        assert result.text == f"{path}:2:two"

    async def test_context_lines_have_a_dash_and_groups_are_separated(self, files: Folder) -> None:
        files.write("a.txt", "1\n2\nx\n4\n5\n6\n7\nx\n9\n")

        lines = await files.content("x", **{"-B": 1, "-A": 1})

        assert lines == ["a.txt-2-2", "a.txt:3:x", "a.txt-4-4", "--", "a.txt-7-7", "a.txt:8:x", "a.txt-9-9"]

    async def test_context_groups_of_two_files_are_separated(self, files: Folder) -> None:
        files.write("old.txt", "x\n1\n")
        files.write("new.txt", "x\n2\n")

        assert await files.content("x", context=1) == ["new.txt:1:x", "new.txt-2-2", "--", "old.txt:1:x", "old.txt-2-1"]

    async def test_minus_c_and_context_mean_the_same(self, files: Folder) -> None:
        files.write("a.txt", "1\nx\n3\n")

        assert await files.content("x", **{"-C": 1}) == await files.content("x", context_lines="1")

    async def test_without_line_numbers_there_are_none(self, files: Folder) -> None:
        files.write("a.txt", "1\nx\n")

        assert await files.content("x", **{"-n": False, "-B": 1}) == ["a.txt-1", "a.txt:x"]

    async def test_only_matching_shows_each_match_on_a_line(self, files: Folder) -> None:
        files.write("a.txt", "x1 and x22\nno\n")

        assert await files.content(r"x\d+", **{"-o": True}) == ["a.txt:1:x1", "a.txt:1:x22"]

    async def test_count_gives_matching_lines_per_file_and_the_full_total(self, files: Folder) -> None:
        files.write("a.txt", "x\nx x\n")
        files.write("b.txt", "x\n")

        result = await files.grep("x", output_mode="count", head_limit=1)

        assert result.text.split("\n") == [
            f"{files.root}/b.txt:1",
            "[3 matches in 2 files]",
            "[1 of 2; continue with offset=1]",
        ]
        assert result.facts is not None
        assert (result.facts["num_lines"], result.facts["num_matches"]) == (3, 3)

    async def test_grep_010_priority_puts_source_code_first_then_most_matches(self, files: Folder) -> None:
        files.write("a.py", "needle\n")
        files.write("b.py", "needle\n" * 3)
        files.write("c.md", "needle\n" * 9)
        files.write("d.json", "needle\n" * 2)
        files.write("e.svg", "needle\n" * 20)

        result = await files.grep("needle", output_mode="count", rank="priority")

        assert [line.rpartition("/")[2] for line in result.text.split("\n")[:-1]] == [
            "b.py:3",
            "a.py:1",
            "d.json:2",
            "c.md:9",
            "e.svg:20",
        ]
        assert (await files.content("needle", rank="priority", head_limit=4))[:4] == [
            "b.py:1:needle",
            "b.py:2:needle",
            "b.py:3:needle",
            "a.py:1:needle",
        ]


class TestPaging:
    async def test_grep_003_250_lines_are_shown_and_the_rest_can_be_asked_for(self, files: Folder) -> None:
        files.write("a.txt", "".join(f"x{number}\n" for number in range(400)))

        first = await files.content("x")
        rest = await files.content("x", offset=250)
        everything = await files.content("x", head_limit=0)
        behind = await files.grep("x", output_mode="content", offset=500)

        assert first[-2:] == ["a.txt:250:x249", "[250 of 400; continue with offset=250]"]
        assert len(first) == 251
        assert rest == [f"a.txt:{number + 1}:x{number}" for number in range(250, 400)]
        assert everything == first[:-1] + rest
        assert behind.text == "No more results\n[offset=500 is past the end: 400 lines in all]"

    async def test_pages_of_lines_over_many_files_join_without_gap_or_repetition(self, files: Folder) -> None:
        for number in range(30):
            files.write(f"f{number}.txt", "x\n" * 3)

        whole = await files.content("x", head_limit=0)
        pages = [(await files.content("x", head_limit=7, offset=offset))[:7] for offset in range(0, 84, 7)]

        assert [line for page in pages for line in page] == whole[:84]
        assert whole[0] == "f29.txt:1:x"

    async def test_a_page_of_files_says_how_many_there_are(self, files: Folder) -> None:
        for number in range(5):
            files.write(f"f{number}.txt", "x\n")

        assert await files.matching("x", head_limit=2, offset=1) == [
            "f3.txt",
            "f2.txt",
            "[2 of 5; continue with offset=3]",
        ]

    async def test_a_full_page_ends_the_reading_and_the_rest_is_a_lower_bound(self, files: Folder) -> None:
        for number in range(5):
            files.write(f"{number}.txt", "x\nx\nx\n")

        page = await files.content("x", head_limit=4)
        all_of_it = await files.content("x", head_limit=15)
        last = await files.content("x", head_limit=4, offset=12)

        assert page == [*all_of_it[:4], "[4 of 12+; continue with offset=4]"]
        assert (len(all_of_it), last) == (15, all_of_it[12:])

    async def test_no_match_in_content_tells_of_ignored_files_too(self, files: Folder) -> None:
        files.write(".gitignore", "*.log\n")
        files.write("a.log", "x\n")

        assert await files.content("x") == ["No matches found", "[1 ignored files match; set include_ignored]"]

    async def test_far_more_lines_than_the_page_are_a_lower_bound(self, files: Folder) -> None:
        files.write("a.txt", "x\n" * 50_000)

        result = await files.grep("x", output_mode="content", head_limit=10)

        last = result.text.split("\n")[-1]
        assert last.startswith("[10 of ") and last.endswith("+; continue with offset=10]")
        assert result.facts is not None and result.facts["truncated"] is True


class TestPatterns:
    async def test_grep_004_a_bad_pattern_is_an_error_with_the_engines_words(self, files: Folder) -> None:
        files.write("a.txt", "foo(\n")

        with pytest.raises(ToolError) as refused:
            await files.grep("foo(")

        assert refused.value.code is ErrorCode.PATTERN
        assert "regex parse error" in refused.value.message and "foo(" in refused.value.message

    @pytest.mark.parametrize("pattern", ["[a", "x{", "*a", r"\q", "(?<n", "a)", "[z-a]", r"\p{Nonsense}"])
    async def test_every_broken_pattern_is_an_error_and_never_no_matches(self, files: Folder, pattern: str) -> None:
        files.write("a.txt", "x\n")

        with pytest.raises(ToolError) as refused:
            await files.grep(pattern)

        assert refused.value.code is ErrorCode.PATTERN

    async def test_grep_005_multiline_matches_span_lines_and_without_it_they_do_not(self, files: Folder) -> None:
        files.write("a.rs", "struct A {\n  int field;\n}\n")
        pattern = r"struct A \{[\s\S]*?field"

        assert await files.content(pattern, multiline=True) == ["a.rs:1:struct A {", "a.rs:2:  int field;"]
        assert await files.content(pattern) == ["No matches found"]

    async def test_in_multiline_a_dot_matches_a_line_end(self, files: Folder) -> None:
        files.write("a.txt", "start\nend\n")

        assert await files.content("start.end", multiline=True) == ["a.txt:1:start", "a.txt:2:end"]

    async def test_a_line_feed_in_the_pattern_asks_for_multiline(self, files: Folder) -> None:
        files.write("a.txt", "a\nb\n")

        with pytest.raises(ToolError) as refused:
            await files.grep(r"a\nb")

        assert refused.value.suggestion == "Set multiline to true to match across lines."

    async def test_grep_013_a_pattern_that_looks_like_an_option_is_a_pattern(self, files: Folder) -> None:
        files.write("a.txt", "some -foo here\n--pre=sh\n")

        assert await files.content("-foo") == ["a.txt:1:some -foo here"]
        assert await files.content("--pre=sh") == ["a.txt:2:--pre=sh"]

    async def test_an_empty_pattern_matches_each_line(self, files: Folder) -> None:
        files.write("a.txt", "one\n\n")

        assert await files.content("") == ["a.txt:1:one", "a.txt:2:"]

    @pytest.mark.parametrize("pattern", [r"[^\n]foo", r"[^a\n]foo", r"[x\n]foo", r"[[:alpha:]\n]foo", r"[^\\n]foo"])
    async def test_a_class_may_name_a_line_feed_beside_others(self, files: Folder, pattern: str) -> None:
        files.write("a.txt", "xfoo\nfoo\n")

        assert await files.content(pattern) == ["a.txt:1:xfoo"]

    @pytest.mark.parametrize("pattern", [r"a\nb", r"[\n]", r"a\\\nb"])
    async def test_a_line_feed_by_itself_wants_multiline(self, files: Folder, pattern: str) -> None:
        files.write("a.txt", "a\nb\n")

        with pytest.raises(ToolError) as refused:
            await files.grep(pattern)

        assert refused.value.suggestion == "Set multiline to true to match across lines."

    async def test_look_around_and_backreferences_work(self, files: Folder) -> None:
        files.write("a.txt", "foobar\nfoobaz\nabab\n")

        assert await files.content("foo(?!bar)") == ["a.txt:2:foobaz"]
        assert await files.content("(?<=foo)bar") == ["a.txt:1:foobar"]
        assert await files.content(r"(ab)\1") == ["a.txt:3:abab"]

    async def test_a_pattern_that_costs_too_much_is_an_error_and_never_no_matches(self, tmp_path: Path) -> None:
        files = folder(tmp_path)
        path = files.write("big.txt", "x" * 1_200_000 + "\n")

        for where in (str(path), str(tmp_path)):
            for mode in ("files_with_matches", "content", "count"):
                with pytest.raises(ToolError) as refused:
                    await files.grep("(?=(x+)+y)", path=where, output_mode=mode)
                assert refused.value.code is ErrorCode.PATTERN
                assert "match limit exceeded" in refused.value.message

    async def test_a_pattern_that_costs_too_much_in_one_of_the_files_gives_a_part_and_says_so(
        self, tmp_path: Path
    ) -> None:
        files = folder(tmp_path)
        files.write("big.txt", "x" * 1_200_000 + "\n")
        fine = files.write("fine.txt", "xxy\n")

        result = await files.grep("(?=(x+)+y)")

        assert result.text == f"{fine}\n[some files could not be searched, results incomplete]"
        assert result.facts is not None and result.facts["truncated"] is True

    async def test_case_is_ignored_on_request(self, files: Folder) -> None:
        files.write("a.txt", "Needle\nÉCLAIR\n")

        assert await files.content("needle", **{"-i": True}) == ["a.txt:1:Needle"]
        assert await files.content("éclair", case_insensitive=True) == ["a.txt:2:ÉCLAIR"]
        assert await files.content("éclair", case_sensitive="false") == ["a.txt:2:ÉCLAIR"]
        assert await files.content("needle") == ["No matches found"]

    @pytest.mark.parametrize(
        ("pattern", "lines"),
        [
            (r"foo\z", [1]),
            (r"\Afoo$", [1]),
            (r"(?i)FOO BAR", [2]),
            (r"foo (?i)BAR", [2]),
            (r"(?i:FOO) bar", [2]),
            (r"^[[:alpha:]]+$", [1]),
            (r"[[:digit:][:punct:]]", [3, 4]),
            (r"[[:^alpha:]]", [2, 3, 4, 5, 6]),
            (r"[a-z&&[^aeiou]]{4}", [5]),
            (r"^[\w--\d]+$", [1, 6]),
            (r"\d{3,}", [3]),
            (r"\p{Lu}", [6]),
            (r"\pN", [3]),
            (r"\x{E9}", [6]),
            (r"\x66oo", [1, 2]),
            (r"(?P<a>o)(?<b>o)", [1, 2]),
            (r"\bbar\b", [2]),
            (r"(?x) f o o $", [1]),
            (r"a-b|\-x", [4]),
            (r"[]x]", [4, 5]),
            (r"\<bar\>", [2]),
            (r"(?U)fo+", [1, 2]),
            (r"a{0}f", [1, 2]),
        ],
    )
    async def test_patterns_are_in_the_syntax_of_ripgrep(self, files: Folder, pattern: str, lines: list[int]) -> None:
        files.write("a.txt", "foo\nfoo bar\n1234\na-b]\nx rhythm\nÉcolé\n")

        found = await files.content(pattern)

        assert [int(line.split(":")[1]) for line in found if line.startswith("a.txt:")] == lines, found

    async def test_a_pattern_with_nul_is_refused(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.grep("a\0b")

        assert refused.value.code is ErrorCode.PATTERN


class TestTerms:
    async def test_grep_009_terms_of_an_alternation_are_searched_when_the_whole_finds_nothing(
        self, files: Folder
    ) -> None:
        files.write("a.txt", "alpha\n")
        files.write("b.txt", "beta\n")

        assert await files.matching(r"alpha\|beta") == [
            "b.txt",
            "a.txt",
            "[nothing matches the whole pattern; searched each term by itself: alpha, beta]",
        ]

    async def test_terms_with_blanks_around_the_bar_are_found(self, files: Folder) -> None:
        files.write("a.txt", "alpha,beta\n")

        assert (await files.content("alpha | beta"))[0] == "a.txt:1:alpha,beta"

    async def test_terms_that_are_no_patterns_by_themselves_are_plain_text(self, files: Folder) -> None:
        files.write("a.txt", "call (alpha now\n")

        assert (await files.content(r"(alpha |zz) x"))[0] == "a.txt:1:call (alpha now"

    async def test_alternatives_in_a_group_are_terms_too(self, files: Folder) -> None:
        files.write("a.txt", "alpha\n")

        assert await files.matching(r"(?:alpha|beta)\d+") == [
            "a.txt",
            "[nothing matches the whole pattern; searched each term by itself: alpha, beta)\\d+]",
        ]

    async def test_a_pattern_that_matches_is_left_alone(self, files: Folder) -> None:
        files.write("a.txt", "alpha\n")

        assert await files.matching("alpha|beta") == ["a.txt"]

    async def test_no_term_found_is_no_match(self, files: Folder) -> None:
        files.write("a.txt", "x\n")

        assert await files.matching(r"alpha\|beta") == ["No matches found"]


class TestWhichFiles:
    async def test_grep_006_ignored_files_are_absent_unless_named(self, files: Folder) -> None:
        files.write(".gitignore", "build/\n")
        inside = files.write("build/x.py", "needle\n")
        files.write("a.py", "needle\n")

        assert await files.matching("needle") == ["a.py"]
        assert await files.matching("needle", path=str(inside)) == ["build/x.py"]
        assert await files.matching("needle", include_ignored=True) == ["a.py", "build/x.py"]

    async def test_no_match_tells_of_ignored_files_that_would(self, files: Folder) -> None:
        files.write(".gitignore", "build/\n*.log\n")
        files.write("build/x.py", "needle\n")
        files.write("a.log", "needle\n")

        assert await files.matching("needle") == [
            "No matches found",
            "[2 ignored files match; set include_ignored]",
        ]

    async def test_a_glob_does_not_bring_ignored_files_back(self, files: Folder) -> None:
        files.write(".gitignore", "*.min.js\n")
        files.write("a.min.js", "x\n")
        files.write("a.js", "x\n")

        assert await files.matching("x", glob="*.js") == ["a.js"]
        assert await files.matching("x", glob="*") == ["a.js"]
        assert await files.matching("x", glob="*.js", include_ignored=True) == ["a.js", "a.min.js"]

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({"glob": "*.py"}, ["build/b.py", "a.py"]),
            ({"glob": "!keep.log"}, ["build/b.py", "build/b.txt", ".env.example", "a.py"]),
            ({"exclude": "keep.log"}, ["build/b.py", "build/b.txt", ".env.example", "a.py"]),
            ({"glob": "!build"}, [".env.example", "keep.log", "a.py"]),
            ({"glob": "build/**"}, ["build/b.py", "build/b.txt"]),
            ({"glob": ".env*"}, [".env.example"]),
            ({"glob": "*.log"}, ["keep.log"]),
            ({"recursive": False, "exclude": ["*.log", ".env*"]}, ["a.py"]),
        ],
    )
    async def test_files_that_an_ignore_file_keeps_are_chosen_by_globs_as_all_others(
        self, files: Folder, arguments: dict[str, Any], expected: list[str]
    ) -> None:
        files.write(".gitignore", "*.log\n.env*\n!keep.log\n!.env.example\n!build/\n!build/b.txt\n")
        for name in ("a.py", "lost.log", "keep.log", ".env", ".env.example", "build/b.txt", "build/b.py"):
            files.write(name, "needle\n")
        count = await files.matching("needle", output_mode="count", **arguments)

        assert await files.matching("needle", **arguments) == expected
        assert await files.content("needle", **arguments) == [f"{name}:1:needle" for name in expected]
        assert count[:-1] == [f"{name}:1" for name in expected]

    async def test_a_named_file_is_searched_whatever_the_glob_says(self, files: Folder) -> None:
        path = files.write("a.log", "needle\n")

        assert await files.content("needle", path=str(path), glob="*.py") == ["a.log:1:needle"]

    @pytest.mark.parametrize(
        ("glob", "expected"),
        [
            ("*.py", ["src/b.py", "a.py"]),
            ("*.{py,ts}", ["src/deep/d.ts", "src/b.py", "a.py"]),
            ("*.py,*.md", ["c.md", "src/b.py", "a.py"]),
            ("*.py *.md", ["c.md", "src/b.py", "a.py"]),
            ("src/**", ["src/deep/d.ts", "src/b.py"]),
            ("/*.py", ["a.py"]),
            ("src/**/*.ts", ["src/deep/d.ts"]),
            ("!*.py", ["src/deep/d.ts", "c.md"]),
            ("*.{py,md} !src", ["c.md", "a.py"]),
            ("[ab].py", ["src/b.py", "a.py"]),
            ("[!a].py", ["src/b.py"]),
            ("?.md", ["c.md"]),
            ("--pre=sh", ["No matches found"]),
            ("$ROOT/src/*.py", ["src/b.py"]),
            ("./src/*.py", ["src/b.py"]),
        ],
    )
    async def test_globs_choose_files(self, files: Folder, glob: str, expected: list[str]) -> None:
        for name in ("a.py", "src/b.py", "c.md", "src/deep/d.ts"):
            files.write(name, "x\n")

        assert await files.matching("x", glob=glob.replace("$ROOT", str(files.root))) == expected

    async def test_a_broken_glob_is_an_error(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.grep("x", glob="*.{py")

        assert refused.value.code is ErrorCode.PATTERN
        assert refused.value.message == "glob: an opening { has no closing }: *.{py"

    async def test_types_choose_files(self, files: Folder) -> None:
        for name in ("a.py", "b.pyi", "c.js", "Makefile"):
            files.write(name, "x\n")

        assert await files.matching("x", type="py") == ["b.pyi", "a.py"]
        assert await files.matching("x", type="make") == ["Makefile"]

    @pytest.mark.parametrize("name", ["pyy", "--pre=sh", "-e", "../x"])
    async def test_an_unknown_type_is_named(self, files: Folder, name: str) -> None:
        files.write("a.py", "x\n")

        with pytest.raises(ToolError) as refused:
            await files.grep("x", type=name)

        assert refused.value.code is ErrorCode.INPUT
        assert refused.value.message == f"type: unknown file type {name!r}"

    async def test_hidden_files_are_searched_and_version_control_is_not(self, files: Folder) -> None:
        for name in (".env", ".git/config", ".hg/store", ".svn/x", ".jj/x", ".sl/x", "sub/.git/x"):
            files.write(name, "needle\n")

        assert await files.matching("needle") == [".env"]
        assert await files.matching("needle", include_ignored=True) == [".env"]
        assert await files.matching("needle", glob="**/*") == [".env"]

    async def test_recursive_false_stays_in_the_directory(self, files: Folder) -> None:
        files.write("a.txt", "x\n")
        files.write("sub/b.txt", "x\n")

        assert await files.matching("x", recursive=False) == ["a.txt"]
        assert await files.matching("x", recursive="true") == ["sub/b.txt", "a.txt"]

    async def test_excluded_directories_are_not_searched(self, files: Folder) -> None:
        for name in ("a.py", "vendor/b.py", "my dir/c.py", "d.py"):
            files.write(name, "x\n")

        assert await files.matching("x", exclude=["vendor", "my dir"], glob="*.py") == ["d.py", "a.py"]

    async def test_a_missing_path_is_an_error(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.grep("x", path=f"{files.root}/nope")

        assert refused.value.code is ErrorCode.NOT_FOUND
        assert f"{files.root}/nope" in refused.value.message

    async def test_fs_30_a_path_outside_is_refused(self, files: Folder) -> None:
        with pytest.raises(ToolError) as refused:
            await files.grep("root:", path="/etc/passwd")

        assert refused.value.code is ErrorCode.PATH_OUTSIDE

    async def test_fs_31_links_are_not_followed(self, files: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
        outside = tmp_path_factory.mktemp("outside")
        (outside / "canary.txt").write_text("CANARY\n")
        (files.root / "d").symlink_to(outside)
        (files.root / "f").symlink_to(outside / "canary.txt")
        (files.root / "loop").symlink_to(files.root)
        files.write("own.txt", "CANARY\n")

        assert await files.matching("CANARY", include_ignored=True) == ["own.txt"]

    async def test_rules_of_parents_count_in_a_subdirectory(self, files: Folder) -> None:
        (files.root / ".git").mkdir()
        files.write(".gitignore", "/src/gen/\n*.tmp\n")
        files.write("src/gen/a.py", "x\n")
        files.write("src/a.tmp", "x\n")
        files.write("src/b.py", "x\n")

        assert await files.matching("x", path=f"{files.root}/src") == ["src/b.py"]

    async def test_rules_of_all_kinds_count_in_their_order(self, files: Folder) -> None:
        files.write(".git/info/exclude", "excluded\n")
        files.write(
            ".gitignore", "ignored\n!kept.log\n/anchored\ndir/*\n!dir/back\n# comment\n\\#literal\ntrailing  \n"
        )
        files.write(".ignore", "*.log\n!excluded2\n")
        files.write("sub/.gitignore", "!ignored\nanchored\n")
        names = ["excluded", "ignored", "kept.log", "anchored", "dir/x", "dir/back", "#literal", "trailing"]
        names += ["sub/ignored", "sub/anchored", "sub/plain", "free"]
        for name in names:
            files.write(name, "x\n")

        assert await files.matching("^x$") == ["free", "sub/plain", "sub/ignored", "dir/back"]

    async def test_global_excludes_count(
        self, files: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        home = tmp_path_factory.mktemp("home")
        (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my-excludes\n")
        (home / "my-excludes").write_text("*.swp\n")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        files.write("a.swp", "x\n")
        files.write("a.txt", "x\n")

        assert await files.matching("x") == ["a.txt"]


class TestBytes:
    async def test_binary_files_are_passed_over(self, files: Folder) -> None:
        files.write("a.bin", b"\0\0needle\n")
        files.write("a.txt", "needle\n")

        assert await files.content("needle") == ["a.txt:1:needle"]

    async def test_a_binary_file_that_is_named_says_so(self, files: Folder) -> None:
        path = files.write("a.bin", b"\0\0needle\n")

        assert await files.content("needle", path=str(path)) == ["a.bin:binary file matches"]

    async def test_long_lines_are_previewed(self, files: Folder) -> None:
        files.write("a.txt", "y" * 500 + "\n" + "y" * 501 + "\n" + "é" * 300 + "y\n")

        assert await files.content("y") == [
            f"a.txt:1:{'y' * 500}",
            f"a.txt:2:{'y' * 500} [... long line cut]",
            f"a.txt:3:{'é' * 300}y",
        ]

    async def test_a_line_of_a_megabyte_is_found(self, files: Folder) -> None:
        files.write("a.txt", "z" * 1_000_000 + "needle\n")

        assert await files.content("needle") == [f"a.txt:1:{'z' * 500} [... long line cut]"]

    async def test_utf_16_and_marks_are_read(self, files: Folder) -> None:
        files.write("a.txt", "needle é\n".encode("utf-16"))
        files.write("b.txt", b"\xef\xbb\xbfneedle\n")

        assert await files.content("^needle") == ["b.txt:1:needle", "a.txt:1:needle é"]

    async def test_controls_bidi_and_broken_bytes_are_visible(self, files: Folder) -> None:
        files.write("a.txt", b"needle \x1b[31m \xe2\x80\xae \xff tab\there\n")

        assert await files.content("needle") == ["a.txt:1:needle \\x1b[31m \\u202e \\xff tab\there"]

    async def test_names_with_blanks_line_feeds_and_broken_bytes_are_one_line(self, files: Folder) -> None:
        import os

        files.write("two\nlines.txt", "x\n")
        files.write("with blank:5:.txt", "x\n")
        files.write(os.fsdecode(b"bad\xff.txt"), "x\n")
        files.write("-rf", "x\n")

        assert sorted(await files.content("x")) == [
            "-rf:1:x",
            "bad\\xff.txt:1:x",
            "two\\nlines.txt:1:x",
            "with blank:5:.txt:1:x",
        ]

    async def test_carriage_returns_of_line_ends_are_not_shown(self, files: Folder) -> None:
        files.write("a.txt", "one\r\ntwo\r\n")

        assert await files.content("two") == ["a.txt:2:two"]

    async def test_a_last_line_without_end_is_found(self, files: Folder) -> None:
        files.write("a.txt", "one\ntwo")

        assert await files.content("two", **{"-B": 1}) == ["a.txt-1-one", "a.txt:2:two"]

    async def test_pipes_and_sockets_are_passed_over(self, files: Folder) -> None:
        import os

        os.mkfifo(files.root / "pipe")
        files.write("a.txt", "x\n")

        assert await files.matching("x") == ["a.txt"]


class TestArguments:
    def validated(self, **arguments: Any) -> GrepInput:
        tool = Grep(Workspace(), SearchEngine())
        return tool.validate({"pattern": "x", **arguments})

    def test_aliases_mean_their_fields(self) -> None:
        assert self.validated(before_context="2", after_context=1, max_results=5) == self.validated(
            **{"-B": 2, "-A": 1, "head_limit": 5}
        )

    def test_case_sensitive_against_minus_i_is_an_error(self) -> None:
        with pytest.raises(ToolError) as refused:
            self.validated(case_sensitive=True, **{"-i": True})

        assert refused.value.message == "case_sensitive and -i contradict each other; send one"

    def test_exclude_joins_the_glob(self) -> None:
        assert self.validated(exclude=["a", "b c"], glob="*.py").glob == "*.py !a !{b c}"

    def test_a_negative_limit_is_an_error(self) -> None:
        with pytest.raises(ToolError) as refused:
            self.validated(head_limit=-1)

        assert refused.value.code is ErrorCode.INPUT
