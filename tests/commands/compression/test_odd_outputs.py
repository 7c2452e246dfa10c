"""Outputs that the recordings have none of: what is done with them, and what is left as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.commands.compression.output import compressed_output


def shown(command: str, *lines: str, failed: bool = False, within: Path | None = None) -> list[str] | None:
    text = compressed_output(command, "\n".join(lines), failed=failed, directory=within)
    return None if text is None else text.text.split("\n")


LONG = "-rw-r--r-- 1 ada ada 1024 Nov 22 11:03 "
STATUS = (
    "On branch main",
    "Your branch is up to date with 'origin/main'.",
    "",
    "nothing to commit, working tree clean",
)


# --- ls


@pytest.mark.parametrize(
    "entry",
    [
        "-rw-r--r-- 1 ada ada 1024 Nov 22 11:03 a b.txt",
        "-rw-r--r--. 1 ada ada 1.2K Jan  1  2024 a b.txt",
        "-rwsr-xr-x+ 12 1000 1000 1,5M 2026-11-22 11:03 a b.txt",
        "-rw-r--r-- 1 ada domain users 1024 2026-11-22 11:03:11.123456789 +0000 a b.txt",
        "-rw-r--r-- 1 ada 1024 Nov 22 11:03 a b.txt",
    ],
)
def test_an_entry_of_ls_is_its_name(entry: str) -> None:
    assert shown("ls -l", "total 4", entry) == ["a b.txt"]


def test_folders_links_and_devices_of_ls_are_told_apart() -> None:
    assert shown(
        "ls -la /dev",
        "total 0",
        "drwxr-xr-x  1 root root       12 Nov 22 11:03 .",
        "drwxr-xr-x  1 root root       12 Nov 22 11:03 ..",
        "drwxr-xr-x  1 root root       12 Nov 22 11:03 shm",
        "lrwxrwxrwx  1 root root       12 Nov 22 11:03 fd -> /proc/self/fd",
        "crw-rw-rw-  1 root root   1,   3 Nov 22 11:03 null",
    ) == ["shm/", "fd -> /proc/self/fd", "null"]


@pytest.mark.parametrize("command", ["ls", "ls -a", "ls --color=never", "dir -l", "ls -l | sort", "ls -l > a; cat a b"])
def test_what_prints_no_long_listing_is_left_as_it_is(command: str) -> None:
    assert shown(command, "total 4", f"{LONG}a.txt") is None


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("ls -lai", f"131 {LONG}a.txt"),
        ("ls -l --inode", f"131 {LONG}a.txt"),
        ("ls -ls", f"4 {LONG}a.txt"),
        ("ls -lash", f"4.0K {LONG}a.txt"),
        *((command, f"{LONG}a.txt") for command in ("ls -n", "ls -l -c", "ls -lu", "ls -l --block-size=1")),
        ("ls -l --time-style=+%s", f"{LONG}a.txt"),
        ("ls -lZ", "-rw-r--r-- 1 ada ada unconfined_u:object_r:user_home_t:s0 1024 Nov 22 11:03 a.txt"),
        ("ls -l", f"131 4 {LONG}a.txt"),
    ],
)
def test_what_was_asked_for_beside_the_names_of_ls_stays(command: str, line: str) -> None:
    assert shown(command, "total 4", line, line.replace("a.txt", "b.txt")) is None


ENTRIES = (
    "total 12K",
    "drwxr-xr-x 3 ada domain users 4.0K Nov 22 11:03 ..",
    "-rw-r--r-- 1 ada domain users 1.2K Jan  1  2024 1.5M Nov 22 11:03 a.txt",
    "drwxr-xr-x 3 ada domain users 4.0K Nov 22 11:03 sub",
    "crw-rw-rw- 1 root root      1,   3 Nov 22 11:03 null",
)
"""The first file has a name like the columns."""


@pytest.mark.parametrize("command", ["ls -lah", "ls -lhS", "ls -l --si", "ls -l --human-readable", "ls -l --sort=size"])
def test_sizes_that_were_asked_for_stand_before_the_names(command: str) -> None:
    assert shown(command, *ENTRIES) == [
        *("total 12K", "1.2K 1.5M Nov 22 11:03 a.txt", "4.0K sub/", "1, 3 null"),
    ]


@pytest.mark.parametrize("command", ["ls -lat", "ls -l --sort=time"])
def test_dates_that_were_asked_for_stand_before_the_names(command: str) -> None:
    assert shown(command, *ENTRIES) == [
        *("Jan  1  2024 1.5M Nov 22 11:03 a.txt", "Nov 22 11:03 sub/", "Nov 22 11:03 null"),
    ]


def test_sizes_and_dates_that_were_asked_for_stand_before_the_names() -> None:
    assert shown("ls -lht", *ENTRIES) == [
        *("total 12K", "1.2K Jan  1  2024 1.5M Nov 22 11:03 a.txt", "4.0K Nov 22 11:03 sub/", "1, 3 Nov 22 11:03 null"),
    ]


@pytest.mark.parametrize(
    "command", ["ls -laR src", "ls -l --color=never", "ls -lr -- -lS", "ls --format=long --group-directories-first -A"]
)
def test_options_about_names_leave_a_listing_of_names(command: str) -> None:
    assert shown(command, "total 4", f"{LONG}a.txt", f"{LONG}b.txt") == ["a.txt", "b.txt"]


def test_a_name_with_a_line_end_leaves_the_listing_as_it_is() -> None:
    assert shown("ls -l", "total 4", f"{LONG}a", "b.txt") is None


# --- scripts


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cd src && ls -la",
        "cd /tmp; ls -la 2>/dev/null",
        "FOO=1 ls -la 2>&1",
        "/bin/ls -la $FOLDER",
        "timeout 60 ls -la",
        "ls -la | head -50",
        "ls -la | cat | tail -n 20",
        "# look\nls -la",
        "export A=1\nls -la",
        "mkdir -p a > /dev/null\nls -la",
    ],
)
def test_the_listing_is_found_in_a_script(command: str) -> None:
    assert shown(command, "total 4", f"{LONG}a.txt", f"{LONG}b.txt") == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    "command",
    [
        "ls -la &",
        "(ls -la)",
        "if true; then ls -la; fi",
        "$LS -la",
        'bash -c "ls -la"',
        "ls -la | tee a",
        "ls -la; unknown",
        "ls -la; echo $A",
        "ls -la '",
        "ls -la" + " a" * 20_000,
        "ls -la" + "; echo" * 100,
        "",
    ],
)
def test_a_script_that_may_print_something_else_is_left_as_it_is(command: str) -> None:
    assert shown(command, "total 4", f"{LONG}a.txt", f"{LONG}b.txt") is None


def test_what_agents_put_between_outputs_parts_them() -> None:
    assert shown(
        "echo '== files'; ls -la; echo; echo == state; git status; echo == tests; python3 -m pytest -q; echo == end",
        *("== files", "total 4", f"{LONG}a.txt", "", "== state", *STATUS, "== tests"),
        *("....                                  [100%]", "4 passed in 0.12s", "== end"),
    ) == [
        *("== files", "a.txt", "== state", "## main...origin/main", "nothing to commit, working tree clean"),
        *("== tests", "4 passed in 0.12s", "== end"),
    ]


def test_what_is_brief_already_stays_beside_what_is_compressed() -> None:
    assert shown(
        "cd src && pwd && git log --oneline -2 && git status -sb && git diff --stat && ls -la",
        *("/home/ada/shop/src", "108b601 pears: a missing count", "b6531b7 prices: rounding", "## main", " M a.py"),
        *(" src/a.py           | 2 +-", " src/pictures/b.png | Bin 0 -> 12 bytes", " 2 files changed, 1 insertion(+)"),
        *("total 4", f"{LONG}a.py"),
    ) == [
        *("/home/ada/shop/src", "108b601 pears: a missing count", "b6531b7 prices: rounding", "## main", " M a.py"),
        *(" src/a.py | 2", " src/pictures/b.png | Bin 0 -> 12 bytes", " 2 files changed, 1 insertion(+)", "a.py"),
    ]


def test_the_same_words_may_part_more_than_two_outputs() -> None:
    repeated = ["x"] * 9

    lines = shown("cat a; echo ---; cat b; echo ---; ls -la", *repeated, "---", *repeated, "---", f"{LONG}a.txt")

    assert lines == ["1-9\tx", "---", "1-9\tx", "---", "a.txt"]


def test_a_marker_that_a_program_prints_as_well_parts_nothing() -> None:
    repeated = ["x"] * 9

    assert shown("cat a; echo ---; cat b", *repeated, "---", "---", *repeated) is None


def test_what_did_not_run_after_a_failed_test_run_is_not_waited_for() -> None:
    lines = ("F...                                  [100%]", "FAILED a.py::b", "1 failed, 3 passed in 0.12s")

    assert shown("pytest -q && git status && ls -la", *lines, failed=True) == ["FAILED a.py::b", lines[-1]]
    assert shown("pytest -q; git status", *lines, failed=True) is None
    assert shown("git status && ls -la", *STATUS, failed=True) is None


# --- git


def test_a_status_in_the_middle_of_a_rebase_keeps_what_is_going_on() -> None:
    assert shown(
        "git status",
        "interactive rebase in progress; onto c99ec41",
        "Last command done (1 command done):",
        "   pick 4db4d1d bash: known output can be compressed",
        "No commands remaining.",
        "You are currently rebasing branch 'main' on 'c99ec41'.",
        '  (fix conflicts and then run "git rebase --continue")',
        "",
        "Unmerged paths:",
        '  (use "git restore --staged <file>..." to unstage)',
        "\tboth modified:   core/context.py",
        "\tdeleted by us:   core/old.py",
        "",
        'no changes added to commit (use "git add" and/or "git commit -a")',
    ) == [
        "interactive rebase in progress; onto c99ec41",
        "Last command done (1 command done):",
        "pick 4db4d1d bash: known output can be compressed",
        "No commands remaining.",
        "You are currently rebasing branch 'main' on 'c99ec41'.",
        "UU core/context.py",
        "DU core/old.py",
    ]


@pytest.mark.parametrize(
    "line", ["hint: something new", "\tsurprised:   a.py", "warning: could not open directory 'x/'"]
)
def test_a_status_with_a_line_nobody_knows_is_left_as_it_is(line: str) -> None:
    assert shown("git status", *STATUS[:3], "Changes not staged for commit:", "\tmodified:   b.py", line) is None


HUNK = ("@@ -1,2 +1,2 @@", " a", "-b", "+c")


@pytest.mark.parametrize(
    ("head", "named"),
    [
        (("diff --git a/x y.py b/x y.py", "index 1..2 100644", "--- a/x y.py\t", "+++ b/x y.py\t"), "x y.py"),
        (("diff --git a/x.py a/x.py", "index 1..2 100644", "--- a/x.py", "+++ a/x.py"), "a/x.py"),
        (("diff --git i/x.py w/x.py", "index 1..2 100644", "--- i/x.py", "+++ w/x.py"), "x.py"),
        (
            (
                "diff --git a/x.py b/x.py",
                "old mode 100644",
                "new mode 100755",
                "index 1..2",
                "--- a/x.py",
                "+++ b/x.py",
            ),
            "x.py (mode 100644 -> 100755)",
        ),
    ],
)
def test_a_file_of_a_diff_is_named_whatever_its_header_looks_like(head: tuple[str, ...], named: str) -> None:
    assert shown("git diff", *head, *HUNK) == [f"=== {named}", "@@ 2", "-b", "+c"]


@pytest.mark.parametrize(
    "lines",
    [
        (" core/a.py | 3 +--", " 1 file changed, 1 insertion(+), 2 deletions(-)"),
        ("diff --cc a.py", "index 1,2..3", "--- a/a.py", "+++ b/a.py", "@@@ -1,1 -1,1 +1,2 @@@", "++a"),
        ("diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1,3 +1,3 @@", " a", "-b"),
        ("diff --git a/a b/a", "--- a/a", "+++ b/a", *HUNK, "and more"),
        ("diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@", "?a", "-b", "+c"),
    ],
)
def test_a_diff_of_another_form_is_left_as_it_is(lines: tuple[str, ...]) -> None:
    assert shown("git diff", *lines) is None


@pytest.mark.parametrize("option", ["--word-diff", "--word-d=plain", "--color-words", "--output-indicator-new=>"])
@pytest.mark.parametrize("command", ["git diff", "git show"])
def test_a_diff_that_marks_words_is_left_as_it_is(command: str, option: str) -> None:
    head = ("diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@", " one [-old-]{+new+}", "-two", "+three")
    commit = (f"commit {'a' * 40}", "Author: Ada <a@b.example>", "", "    one", "") if command == "git show" else ()

    assert shown(f"{command} {option}", *commit, *head) is None
    assert shown(command, *commit, *head) is not None


def test_a_hunk_in_which_nothing_changed_is_of_another_form() -> None:
    head = ("diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@")

    assert shown("git diff", *head, " one [-old-]{+new+}", " two") is None


def test_a_file_without_a_last_line_end_and_one_without_lines_are_told() -> None:
    assert shown(
        *("git diff", "diff --git a/a.py b/a.py", "index 1..2 100644", "--- a/a.py", "+++ b/a.py"),
        *("@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+b", "\\ No newline at end of file"),
        *("diff --git a/empty.py b/empty.py", "new file mode 100644", "index 0000000..e69de29"),
        *("diff --git a/a.png b/a.png", "index 1..2 100644", "Binary files a/a.png and b/a.png differ"),
    ) == [
        *("=== a.py", "@@ 1", "-a", "\\ No newline at end of file", "+b", "\\ No newline at end of file"),
        *("=== empty.py (new)", "=== a.png (binary)"),
    ]


GREETING = ('diff --git "a/gr\\303\\266\\303\\237e.py" "b/gr\\303\\266\\303\\237e.py"',)
"""As git prints `größe.py`."""


@pytest.mark.parametrize(
    ("head", "named"),
    [
        (
            (*GREETING, "--- " + GREETING[0].split()[2], "+++ " + GREETING[0].split()[3]),
            "größe.py",
        ),
        (
            (*GREETING, "new file mode 100644", "--- /dev/null", "+++ " + GREETING[0].split()[3]),
            "größe.py (new)",
        ),
        (
            (
                'diff --git a/size.py "b/gr\\303\\266\\303\\237e.py"',
                *("similarity index 90%", "rename from size.py", 'rename to "gr\\303\\266\\303\\237e.py"'),
                *("--- a/size.py", '+++ "b/gr\\303\\266\\303\\237e.py"'),
            ),
            "größe.py (rename from size.py)",
        ),
        (
            ('diff --git "gr\\303\\266.py" "gr\\303\\266.py"', '--- "gr\\303\\266.py"', '+++ "gr\\303\\266.py"'),
            "grö.py",
        ),
        (
            ('diff --git "a/q\\"\\\\.py" "b/q\\"\\\\.py"', '--- "a/q\\"\\\\.py"', '+++ "b/q\\"\\\\.py"'),
            'q"\\.py',
        ),
        (
            ('diff --git "a/a\\nb.py" "b/a\\nb.py"', '--- "a/a\\nb.py"', '+++ "b/a\\nb.py"'),
            '"a\\nb.py"',
        ),
        (
            ('diff --git "a/a\\377.py" "b/a\\377.py"', '--- "a/a\\377.py"', '+++ "b/a\\377.py"'),
            '"a\\377.py"',
        ),
    ],
    ids=["changed", "new", "renamed", "without a prefix", "a quote", "a line end", "no text"],
)
@pytest.mark.parametrize("command", ["git diff", "git log -p"])
def test_a_name_that_git_quotes_is_the_name_itself(command: str, head: tuple[str, ...], named: str) -> None:
    commit = (f"commit {'a' * 40}", "Author: Ada <a@b.example>", "", "    one", "") if command != "git diff" else ()

    lines = shown(command, *commit, *head, *HUNK)

    assert lines is not None
    assert lines[-4:] == [f"=== {named}", "@@ 2", "-b", "+c"]


def test_an_empty_or_binary_file_with_a_quoted_name_has_its_name() -> None:
    assert shown("git diff", *GREETING, "new file mode 100644", "index 0000000..e69de29") == ["=== größe.py (new)"]


def test_no_changed_line_looks_like_the_name_of_a_file() -> None:
    assert shown(
        *("git diff", "diff --git a/a.sql b/a.sql", "index 1..2 100644", "--- a/a.sql", "+++ b/a.sql"),
        *("@@ -1,4 +1,3 @@", " select 1;", "--- src/other.py", "--- == x", "+++ x", "+=== y", "-=== z"),
    ) == ["=== a.sql", "@@ 2", "--- src/other.py", "--- == x", "+++ x", "+=== y", "-=== z"]


def test_commits_whose_hashes_begin_alike_stay_apart() -> None:
    first, second = "a" * 40, "a" * 11 + "b" * 29
    head = ("Author: Ada <a@b.example>", "Date:   2026-03-04 10:00:00 +0000", "")

    lines = shown(
        "git log", f"commit {first}", *head, "    one", "", f"commit {second} (HEAD -> main)", *head, "    two"
    )

    assert lines == ["2026-03-04 Ada:", f"{first[:12]} one", f"{second[:12]} two (HEAD -> main)"]


@pytest.mark.parametrize("lines", [("abc1234 one", "abc1235 two"), ("* commit " + "a" * 40, "| Author: Ada <a@b>")])
def test_a_log_of_another_form_is_left_as_it_is(lines: tuple[str, ...]) -> None:
    assert shown("git log", *lines) is None


# --- grep


def test_a_file_that_looks_like_a_place_is_named_whole() -> None:
    assert shown(
        "grep -rn -C1 b src",
        *("src/a-12-b.py-1-    one", "src/a-12-b.py:2:    b = 3:4:5", "src/a-12-b.py-3-    two-4-five", "--"),
        "src/sub/c.py:7:b",
    ) == ["src/a-12-b.py", "1-one", "2:b = 3:4:5", "3-two-4-five", "src/sub/c.py", "7:b"]


def test_files_of_one_folder_are_named_below_it() -> None:
    assert shown("rg -n x", *("src/shop/a.py:1:x", "src/shop/b.py:2:x", "src/shop/b.py:3:x", "setup.py:4:x")) == [
        *("src/shop/", "a.py", "1:x", "b.py", "2:x", "3:x", "./setup.py", "4:x")
    ]


STAMPED = ("logs/app-2026-11-22T10:15:00.log:1:ERROR disk", "logs/app-2026-11-22T10:45:30.log:1:ERROR net")
"""Names that hold what parts a name from its line."""


@pytest.mark.parametrize("command", ["grep -rn ERROR logs", "rg -n ERROR logs", "grep -rn -C1 ERROR logs"])
def test_matches_that_can_be_read_in_two_ways_are_left_as_they_are(command: str) -> None:
    separator = ["--"] if "-C1" in command else []

    assert shown(command, STAMPED[0], *separator, STAMPED[1]) is None
    assert shown(command, "app:10:15:3:x", *separator, "app:11:15:3:x", *separator, "app:12:15:3:x") is None


def test_matches_without_numbers_that_can_be_read_in_two_ways_are_left_as_they_are() -> None:
    assert shown("grep -r ERROR logs", *(line.replace(":1:", ":") for line in STAMPED)) is None
    assert shown("grep -r ERROR logs", "logs/app.log:10:15:00:ERROR", "logs/app.log:11:15:00:ERROR") is None


@pytest.mark.parametrize("line", ["fatal: not a git repository", "FAILED tests/test_a.py::test_b - assert 1 == 2"])
def test_what_a_program_says_is_no_match(line: str) -> None:
    assert shown("rg x", line, line, line) is None


def test_a_match_that_can_be_read_in_two_ways_stays_as_it_is_between_the_others() -> None:
    assert shown(
        "grep -rn x .",
        *("./src/a.py:1:x", "./src/a.py:2:    x", "./src/a.py:3:x[1:2:3]", "./src/a.py:4:x", "./src/b.py:5:x"),
        *STAMPED,
    ) == [
        *("./src/a.py", "1:x", "2:x", "./src/a.py:3:x[1:2:3]", "./src/", "a.py", "4:x", "b.py", "5:x"),
        *STAMPED,
    ]
    assert shown("grep -rn x", "a.py:1:        x", "10:15:00.log:1:x", "a.py:2:    x") == [
        *("./a.py", "1:x", "./10:15:00.log:1:x", "./a.py", "2:x")
    ]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two logs, of which one has a name that holds what parts a name from its line."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").touch()
    (tmp_path / "logs" / "app-10:15:30.log").touch()
    return tmp_path


TIMES = (
    "logs/app.log:7:10:15:00 ERROR disk",
    "logs/app.log:12:10:16:00 ERROR net at 3:4:5",
    "logs/app-10:15:30.log:3:11:15:00 ERROR",
)
UNDER_THEIR_FILES = [
    *("logs/", "app.log", "7:10:15:00 ERROR disk", "12:10:16:00 ERROR net at 3:4:5"),
    *("app-10:15:30.log", "3:11:15:00 ERROR"),
]


@pytest.mark.parametrize(
    "command",
    [
        *("grep -rn ERROR logs", "rg -n ERROR logs", "timeout 9 grep -rn ERROR logs", "grep -rn ERROR logs | head"),
        *("cd . && grep -n ERROR logs/*", "cd logs/.. && cd . ; grep -rn ERROR logs", "true; grep -rn ERROR logs"),
    ],
)
def test_the_file_that_is_there_tells_where_its_name_ends(place: Path, command: str) -> None:
    assert shown(command, *TIMES, within=place) == UNDER_THEIR_FILES


def test_it_does_so_with_a_whole_path_in_context_and_without_numbers(place: Path) -> None:
    log = f"{place}/logs/app.log"

    absolute = shown("grep -rn ERROR /", f"{log}:7:10:15:00 ERROR", f"{log}:9:10:15:01 ERROR", within=place)
    around = shown("grep -rn -C1 x logs", "logs/app.log:7:10:15:00 x", "logs/app.log-8-11:15:00", within=place)
    alone = shown("grep -rn -C0 x logs", "logs/app.log:7:10:15 x", "--", "logs/app.log:9:10:15 x", within=place)
    plain = shown(
        "grep -r x logs",
        *("logs/app.log:10:15:00 x", "logs/app.log:10:15:01 x", "logs/app-10:15:30.log:11:15:00 x"),
        within=place,
    )

    assert absolute == [log, "7:10:15:00 ERROR", "9:10:15:01 ERROR"]
    assert around == ["logs/app.log", "7:10:15:00 x", "8-11:15:00"]
    assert alone == ["logs/app.log", "7:10:15 x", "9:10:15 x"]
    assert plain == ["logs/", "app.log", "  10:15:00 x", "  10:15:01 x", "app-10:15:30.log", "  11:15:00 x"]


def test_where_two_readings_name_a_file_the_line_stays_as_it_is(place: Path) -> None:
    (place / "logs" / "app.log:7").touch()

    assert shown("grep -rn ERROR logs", TIMES[0], *TIMES[1:], within=place) == [
        TIMES[0],
        *UNDER_THEIR_FILES[:2],
        *UNDER_THEIR_FILES[3:],
    ]
    assert shown("grep -rn ERROR logs", TIMES[0], TIMES[0], within=place) is None


@pytest.mark.parametrize("there", ["no file", "a folder", "many colons"])
def test_where_no_reading_names_a_file_the_line_stays_as_it_is(place: Path, there: str) -> None:
    line = "logs/other.log:7:10:15:00" + ":1" * (20 if there == "many colons" else 0)
    if there != "no file":
        (place / "logs" / "other.log").mkdir() if there == "a folder" else (place / "logs" / "other.log").touch()

    assert shown("grep -rn ERROR logs", line, line, within=place) is None


@pytest.mark.parametrize(
    "before",
    [
        *("cd logs &&", "cd $HERE &&", "cd - >/dev/null;", "cd ~;", "cd;", ". env.sh;", "source env.sh &&", "cd a b;"),
        *("env -C other", "cd logs && env -C .."),
    ],
)
def test_where_it_is_not_known_in_which_folder_a_program_ran_its_lines_stay(place: Path, before: str) -> None:
    assert shown(f"{before} grep -rn ERROR logs", *TIMES, within=place) is None


def test_what_stands_around_a_match_tells_the_name_of_its_file() -> None:
    assert shown(
        "grep -rn -C1 ERROR logs",
        *("logs/10:15:00.log-9-one 7", "logs/10:15:00.log:10:ERROR", "logs/10:15:00.log-11-2-12-3", "--"),
        *("logs/b.log:3:x:4:5", "logs/b.log-4-y"),
    ) == ["logs/", "logs/10:15:00.log", "9-one 7", "10:ERROR", "11-2-12-3", "b.log", "3:x:4:5", "4-y"]


def test_context_without_numbers_is_left_as_it_is() -> None:
    assert shown("grep -r -C1 x src", "src/a.py-    a: int", "src/a.py:    x: int", "src/a.py-    b: int") is None


def test_code_with_colons_is_shown_below_its_file_without_numbers() -> None:
    assert shown("grep -r def src", "src/a.py:    def a(x: int):", "src/a.py:    def b(x: int):") == [
        *("src/a.py", "  def a(x: int):", "  def b(x: int):")
    ]


@pytest.mark.parametrize("long", ["x" * 3000, "y" * 250])
def test_a_long_match_is_cut_with_its_length(long: str) -> None:
    assert shown("grep -rn x .", f"./a.js:1:{long}") == [
        *("./a.js", f"1:{long[:200]}... (+{len(long) - 200} characters)")
    ]


def test_a_long_match_that_names_a_failure_is_not_cut() -> None:
    line = "x" * 300 + " ERROR: disk is full"

    assert shown("grep -rn x .", f"a/b.log:1:{line}", "a/b.log:2:x") == ["a/b.log", f"1:{line}", "2:x"]


@pytest.mark.parametrize(
    "command",
    [
        *("grep -n x a.py", "grep -rn x src/a.py", "grep -rc x .", "grep -rl x .", "rg --json x"),
        *(
            "grep -rn -C1 --no-group-separator x .",
            "grep -rn -C1 --group-separator= x .",
            "rg --no-context-separator -nC1 x",
        ),
        *("cat a | grep -n x", "cat a | rg -n x", "grep -rhn x .", "grep -rnZ x .", "rg -nI x", "rg -n x a.py"),
    ],
)
def test_matches_without_file_names_or_in_another_form_are_left_as_they_are(command: str) -> None:
    lines = ["src/a.py:1:x"] * 5

    assert shown(command, *lines) is None


# --- cat


def test_equal_lines_of_a_file_are_numbered_and_said_once() -> None:
    lines = ("a", *["waiting for orders"] * 20, "", "b")

    assert shown("cat a.log", *lines) == ["1\ta", "2-21\twaiting for orders", "23\tb"]
    assert shown("tail -n +100 a.log", *lines) == ["100\ta", "101-120\twaiting for orders", "122\tb"]


@pytest.mark.parametrize(
    "command",
    [
        *("cat a.log; cat b.log", "git status -s; cat a.log", "cat a.log | tail -n 40", "head -n 99 a.log | tail"),
        *("tail -n 40 a.log", "cat a.log b.log", "cat -A a.log", "cat *.log", "unknown | cat", "head -n 9 < a.log"),
    ],
)
def test_without_numbers_only_repeated_lines_go(command: str) -> None:
    lines = ("a", *["waiting for orders"] * 20, "", "", "", "b", "b", "b")

    assert shown(command, *lines) == ["a", "waiting for orders", "[this line 19 times more]", "", "", "", "b", "b", "b"]


SOURCE = ("def a():", "    return 1", "", "", "def b():", "    return 2")


@pytest.mark.parametrize(
    ("command", "first"),
    [
        *(("cat a.py", 1), ("head -n 6 src/a.py", 1), ("head -6 a.py", 1), ("tail -n +40 a.py", 40)),
        *(("cat a.py | head", 1), ("tail -n +40 a.py | head -6", 40), ("cd src && cat a.go", 1)),
    ],
)
def test_source_code_comes_with_the_number_of_each_line(command: str, first: int) -> None:
    assert shown(command, *SOURCE) == [f"{number}\t{line}" for number, line in enumerate(SOURCE, first)]


def test_the_message_about_a_file_that_is_not_there_has_no_line_number() -> None:
    assert shown("cat a.py; echo done", "cat: a.py: No such file or directory", "done") is None


def test_source_code_between_words_of_echo_is_numbered_by_itself() -> None:
    lines = shown("cat a.py; echo ---; head -n 1 b.py", "x = 1", "y = 2", "---", "z = 3")

    assert lines == ["1\tx = 1", "2\ty = 2", "---", "1\tz = 3"]


@pytest.mark.parametrize(
    "command",
    ["cat a.py b.py", "cat a.py; cat b.py", "git status -s; cat a.py", "cat a.py | tail -n 6", "cat *.py", "cat a.txt"],
)
def test_what_is_no_source_code_or_of_which_the_numbers_are_unknown_comes_out_as_it_is(command: str) -> None:
    assert shown(command, *SOURCE) is None


@pytest.mark.parametrize("command", ["tail -n 6 a.py", "tail -6 a.py", "tail a.py"])
def test_the_end_of_source_code_has_the_numbers_that_the_file_says(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n".join(["import os", "", *SOURCE, "", ""]))

    assert shown(command, *SOURCE, within=tmp_path) == [f"{number}\t{line}" for number, line in enumerate(SOURCE, 3)]


def test_the_end_of_a_file_that_is_another_one_now_has_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    os.mkfifo(tmp_path / "b.py")

    for name in ("a.py", "b.py", "c.py"):
        assert shown(f"tail -n 6 {name}", *SOURCE, within=tmp_path) is None


# --- test runs


def test_go_of_1_22_names_goroutines() -> None:
    lines = shown(
        "go test ./...",
        "--- FAIL: TestFirst (0.00s)",
        "panic: runtime error: index out of range [0] with length 0 [recovered]",
        "",
        "goroutine 7 [running]:",
        "testing.tRunner.func1.2({0x52a3e0, 0xc0000182a0})",
        "\t/usr/local/go/src/testing/testing.go:1631 +0x24a",
        "example.com/shop/stock.(*Shelf).First(0xc000012345?, {0x0?, 0x0, 0x0})",
        "\t/home/ada/go/src/example.com/stock/stock.go:6 +0x1d",
        "created by testing.(*T).Run in goroutine 1",
        "\t/usr/local/go/src/testing/testing.go:1742 +0x390",
        "exit status 2",
        "FAIL\texample.com/shop/stock\t0.005s",
        "FAIL\texample.com/shop/bill [build failed]",
        "ok  \texample.com/shop/price\t(cached)",
        "ok  \texample.com/shop/route\t0.004s\tcoverage: 81.2% of statements",
        "FAIL",
        failed=True,
    )

    assert lines == [
        "--- FAIL: TestFirst (0.00s)",
        "panic: runtime error: index out of range [0] with length 0 [recovered]",
        "goroutine 7 [running]:",
        "example.com/shop/stock.(*Shelf).First(...)",
        "\t/home/ada/go/src/example.com/stock/stock.go:6",
        "exit status 2",
        "FAIL\texample.com/shop/stock\t0.005s",
        "FAIL\texample.com/shop/bill [build failed]",
        "ok  \texample.com/shop/route\t0.004s\tcoverage: 81.2% of statements",
        "FAIL",
        'lines not shown: 1 "ok"',
    ]


def test_what_a_go_test_prints_stands_below_its_name() -> None:
    assert shown(
        "go test -v .",
        *("=== RUN   TestOne", "--- PASS: TestOne (0.00s)", "=== RUN   TestTable", "=== RUN   TestTable/alpha"),
        *("    a_test.go:5: got 0, want 7", "=== RUN   TestTable/beta", "=== RUN   TestTable/gamma"),
        *("    a_test.go:5: got 0, want 7", "=== NAME  TestTable", "    a_test.go:9: all in all 0"),
        *("--- FAIL: TestTable (0.00s)", "    --- FAIL: TestTable/alpha (0.00s)"),
        *("    --- PASS: TestTable/beta (0.00s)", "    --- FAIL: TestTable/gamma (0.00s)", "FAIL", "FAIL\ta\t0.003s"),
        failed=True,
    ) == [
        *("=== RUN   TestTable/alpha", "    a_test.go:5: got 0, want 7", "=== RUN   TestTable/gamma"),
        *("    a_test.go:5: got 0, want 7", "=== NAME  TestTable", "    a_test.go:9: all in all 0"),
        *("--- FAIL: TestTable (0.00s)", "    --- FAIL: TestTable/alpha (0.00s)"),
        *("    --- FAIL: TestTable/gamma (0.00s)", "FAIL", "FAIL\ta\t0.003s", "5 tests: 2 passed, 3 failed"),
    ]


def test_go_tests_that_wait_for_each_other_are_counted() -> None:
    lines = shown(
        "go test -v .",
        *("=== RUN   TestA", "=== PAUSE TestA", "=== RUN   TestB", "=== PAUSE TestB", "=== CONT  TestA"),
        *("=== RUN   TestA/x", "=== CONT  TestB", "--- PASS: TestB (0.00s)", "--- PASS: TestA (0.00s)"),
        *("    --- PASS: TestA/x (0.00s)", "PASS", "ok  \ta\t0.003s"),
    )

    assert lines == ["3 tests: 3 passed, 0 failed"]


@pytest.mark.parametrize(
    ("printed", "kept", "not_shown"),
    [
        (("no line end--- FAIL: TestOne (0.00s)",), ("=== RUN   TestOne", "no line end--- FAIL: TestOne (0.00s)"), 1),
        (("--- PASS: TestOther (0.00s)", "--- PASS: TestOne (0.00s)"), ("--- PASS: TestOther (0.00s)",), 2),
        (("--- PASS: TestZero (0.00s)", "--- PASS: TestOne (0.00s)"), (), 3),
        (("=== RUN   TestX", "--- PASS: TestX (0.00s)", "--- PASS: TestOne (0.00s)"), (), 3),
        (("panic: os.Exit",), ("=== RUN   TestOne", "panic: os.Exit"), 1),
    ],
    ids=["no line end", "an end of none", "a second end", "a test in a test", "no end"],
)
def test_go_tests_are_not_counted_where_what_they_print_looks_like_a_result(
    printed: tuple[str, ...], kept: tuple[str, ...], not_shown: int
) -> None:
    before = ("=== RUN   TestZero", "--- PASS: TestZero (0.00s)")

    lines = shown("go test -v .", *before, "=== RUN   TestOne", *printed, "FAIL\ta\t0.003s", failed=True)

    assert lines == [*kept, "FAIL\ta\t0.003s", f'lines not shown: {not_shown} "--- PASS"']


def test_without_v_nobody_knows_how_many_go_tests_passed() -> None:
    lines = ("--- FAIL: TestOne (0.00s)", "    a_test.go:5: got 0, want 7", "--- PASS: TestTwo (0.00s)", "FAIL")

    shown_lines = shown("go test ./...", *lines, "FAIL\ta\t0.003s", "ok  \tb\t0.003s", "ok  \tc\t0.003s", failed=True)

    assert shown_lines == [*lines, "FAIL\ta\t0.003s", 'lines not shown: 2 "ok"']


@pytest.mark.parametrize(
    "command", ["npx vitest run", "pnpm exec vitest", "npm test", "npm run test:unit", "yarn test"]
)
def test_vitest_keeps_what_failed(command: str) -> None:
    assert shown(
        command,
        *(" RUN  v4.1.12 /home/ada/shop", "", " ❯ src/a.test.ts (2 tests | 1 failed) 30ms", "   ✓ fine 2ms"),  # noqa: RUF001  # as vitest prints it
        *("   × not fine 26ms", " ✓ src/b.test.ts (1 test) 3ms", "", "⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯", ""),  # noqa: RUF001  # as vitest prints it
        *(" FAIL  src/a.test.ts > not fine", "AssertionError: expected 1 to be 2", "", " ❯ src/a.test.ts:3:34"),  # noqa: RUF001  # as vitest prints it
        *("⎯⎯⎯⎯⎯⎯⎯⎯[1/1]⎯", " Test Files  1 failed | 1 passed (2)", "      Tests  1 failed | 2 passed (3)"),
        failed=True,
    ) == [
        *("ran src/b.test.ts", " RUN  v4.1.12 /home/ada/shop", " ❯ src/a.test.ts (2 tests | 1 failed) 30ms"),  # noqa: RUF001  # as vitest prints it
        *("   × not fine 26ms", "⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯", " FAIL  src/a.test.ts > not fine"),  # noqa: RUF001  # as vitest prints it
        *("AssertionError: expected 1 to be 2", " ❯ src/a.test.ts:3:34"),  # noqa: RUF001  # as vitest prints it
        *(" Test Files  1 failed | 1 passed (2)", "      Tests  1 failed | 2 passed (3)"),
    ]


def test_a_broken_collection_of_pytest_stays_whole() -> None:
    assert shown(
        "uv run pytest",
        *("=" * 10 + " test session starts " + "=" * 10, "platform linux -- Python 3.11.7, pytest-8.4.1, pluggy-1.6.0"),
        *("rootdir: /home/ada/shop", "collected 3 items / 1 error", "", "=" * 12 + " ERRORS " + "=" * 12),
        *(
            "_" * 8 + " ERROR collecting tests/test_a.py " + "_" * 8,
            "tests/test_a.py:1: in <module>",
            "    import nothing",
        ),
        *("E   ModuleNotFoundError: No module named 'nothing'", "=" * 9 + " short test summary info " + "=" * 9),
        *("ERROR tests/test_a.py", "!" * 9 + " Interrupted: 1 error during collection " + "!" * 9),
        "=" * 12 + " 1 error in 0.12s " + "=" * 12,
        failed=True,
    ) == [
        *("collected 3 items / 1 error", "== ERRORS", "__ ERROR collecting tests/test_a.py"),
        *("tests/test_a.py:1: in <module>", "    import nothing", "E   ModuleNotFoundError: No module named 'nothing'"),
        *("== short test summary info", "ERROR tests/test_a.py"),
        *("!" * 9 + " Interrupted: 1 error during collection " + "!" * 9, "1 error in 0.12s"),
    ]


def test_what_workers_of_pytest_begin_is_left_out_and_how_it_ended_is_not() -> None:
    assert shown(
        "pytest -n 2 -v",
        *("=" * 9 + " test session starts " + "=" * 9, "created: 2/2 workers", "2 workers [3 items]", ""),
        *(
            "tests/test_a.py::test_one ",
            "tests/test_a.py::test_two[a b] ",
            "[gw0] [ 33%] PASSED tests/test_a.py::test_one ",
        ),
        *("[gw1] [ 66%] FAILED tests/test_a.py::test_two[a b] ", "tests/test_b.py::test_three "),
        *("[gw0] [100%] PASSED tests/test_b.py::test_three ", "", "=" * 9 + " 1 failed, 2 passed in 0.12s " + "=" * 9),
        failed=True,
    ) == [
        "passed: tests/test_a.py (1), tests/test_b.py (1)",
        "[gw1] [ 66%] FAILED tests/test_a.py::test_two[a b] ",
        "1 failed, 2 passed in 0.12s",
    ]


BEGINS = "=" * 9 + " test session starts " + "=" * 9


def test_pytest_counts_the_tests_that_passed_however_much_it_prints() -> None:
    ends = "=== 1 failed, 2 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 error in 0.12s ==="
    others = (
        "tests/test_a.py::test_c SKIPPED (needs a printer)                   [ 50%]",
        "tests/test_a.py::test_d XFAIL (a known bug)                         [ 66%]",
        "tests/test_a.py::test_e XPASS (was a bug)                           [ 83%]",
        "tests/test_b.py::test_f FAILED                                      [100%]",
    )

    verbose = shown(
        "pytest -v",
        *(BEGINS, "tests/test_a.py::test_a PASSED    [ 16%]", "tests/test_a.py::test_b PASSED    [ 33%]"),
        *("tests/test_a.py::test_b ERROR                                       [ 33%]", *others, "", ends),
        failed=True,
    )
    brief = shown(
        "pytest", BEGINS, "tests/test_a.py ..EsxX    [ 83%]", "tests/test_b.py F    [100%]", "", ends, failed=True
    )

    assert verbose == [
        *("passed: tests/test_a.py (2)", "tests/test_a.py::test_b ERROR                                       [ 33%]"),
        *(*others, ends.strip("= ")),
    ]
    assert brief == ["passed: tests/test_a.py (2 EsxX), tests/test_b.py (0 F)", ends.strip("= ")]


def test_what_workers_of_pytest_skipped_keeps_its_line() -> None:
    skipped = ("[gw0] [ 33%] SKIPPED tests/test_a.py::test_two ", "[gw1] [ 66%] XFAIL tests/test_a.py::test_three ")
    ends = "1 passed, 1 skipped, 1 xfailed in 0.12s"

    lines = shown("pytest -n 2 -v", BEGINS, "[gw1] [100%] PASSED tests/test_a.py::test_one ", *skipped, f"== {ends} ==")

    assert lines == ["passed: tests/test_a.py (1)", *skipped, ends]


def test_a_test_that_is_named_for_an_error_has_passed_all_the_same() -> None:
    line = "tests/test_a.py::test_one[error] PASSED    [ 50%]"

    lines = shown("pytest -v", BEGINS, line, "tests/test_a.py::test_two PASSED    [100%]", "=== 2 passed in 0.12s ===")

    assert lines == ["passed: tests/test_a.py (2)", line, "2 passed in 0.12s"]


def test_pytest_counts_nothing_where_tests_print_between_its_marks() -> None:
    lines = shown(
        "pytest -s",
        *(BEGINS, "tests/test_a.py ..    [ 50%]", "tests/test_b.py printed", "....", "tests/test_c.py ."),
        "=== 3 passed in 0.12s ===",
    )

    assert lines == ["ran tests/test_a.py, tests/test_c.py", "tests/test_b.py printed", "3 passed in 0.12s"]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("pytest", "ERROR: usage: pytest [options] [file_or_dir]"),
        ("go test ./...", "go: go.mod file not found in current directory or any parent directory"),
        ("cargo test", "error: could not find `Cargo.toml` in `/home/ada` or any parent directory"),
        ("npm test", 'npm error Missing script: "test"'),
        ("make test", "make: *** No rule to make target 'test'.  Stop."),
    ],
)
def test_a_test_run_that_did_not_run_is_left_as_it_is(command: str, line: str) -> None:
    assert shown(command, line, line, failed=True) is None
