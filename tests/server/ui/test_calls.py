"""The view Calls."""

from __future__ import annotations

import html
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from goat_mcp.calls.approvals.record import Verdict
from goat_mcp.calls.audit import recorded_calls, records
from tests.server.ui.calls_on_record import record_calls, working
from tests.server.ui.open_page import OpenPage, open_page, request_for

pytestmark = pytest.mark.anyio


def words(page: str) -> str:
    """What a person reads of the content."""
    main = page.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", main))).strip()


def listed(page: str) -> list[str]:
    """The ids of the calls on a page of the list."""
    return re.findall(r'<tr id="c-([^"]*)"', page)


def next_of(page: str) -> str:
    found = re.search(r'href="([^"]+)" rel="next"', page)
    return html.unescape(found[1]) if found else ""


async def read(page: OpenPage, path: str, status: int = 200) -> str:
    answer = await page.client.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


async def test_a_call_is_listed_with_who_what_how_and_why_newest_first(tmp_path: Path) -> None:
    record_calls(
        tmp_path,
        {"id": "a1", "tool": "mcp__files__move", "arguments": {"from": "x", "to": ["y"]}, "client": "cursor 1.2"},
        {"id": "b2", "tool": "Bash", "decision": "deny", "rule": "rule Bash(rm *)", "by": "rule", "error": "E_BLOCKED"},
    )

    async with open_page(tmp_path) as page:
        text = await read(page, "/ui/calls")

    assert listed(text) == ["b2", "a1"]
    shown = words(text)
    for part in ("mcp__files__move", "cursor 1.2", 'from: x; to: ["y"]', "allow by mode default", "ok"):
        assert part in shown
    for part in ("E_BLOCKED", "deny by rule Bash(rm *)"):
        assert part in shown


async def test_an_empty_record_says_how_a_call_comes_into_it(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        text = await read(page, "/ui/calls")

    assert "Nothing is recorded yet" in words(text)
    assert "goat-mcp call Glob 'pattern=*'" in words(text)
    assert not (tmp_path / "calls.db").exists()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tool=move", ["a1"]),
        ("tool=mcp__files__move", ["a1"]),
        ("server=files", ["a1"]),
        ("client=VS+code", ["c3"]),
        ("denied=1", ["b2"]),
        ("failed=1", ["c3", "b2"]),
        ("failed=1&client=cursor", ["b2"]),
        ("text=caf%C3%A9+%22x%22", ["c3"]),
        ("text=Bash%28RM", ["b2"]),
        ("text=e_timeout", ["c3"]),
        ("text=a1", ["a1"]),
        ("text=%25", []),
        ("since=1h", ["c3", "b2", "a1"]),
        ("since=2199-01-01", []),
    ],
)
async def test_filters_are_in_the_address(tmp_path: Path, query: str, found: list[str]) -> None:
    record_calls(
        tmp_path,
        {"id": "a1", "tool": "mcp__files__move", "client": "cursor 1.2"},
        {"id": "b2", "decision": "deny", "rule": "rule Bash(rm *)", "error": "E_PERMISSION", "client": "cursor 1.2"},
        {"id": "c3", "arguments": {"q": 'café "x"'}, "error": "E_TIMEOUT", "client": "Visual Studio VS-Code"},
    )

    async with open_page(tmp_path) as page:
        text = await read(page, f"/ui/calls?{query}")

    assert listed(text) == found
    if not found:
        assert "No such calls" in words(text)


async def test_what_is_no_time_and_no_page_is_refused_in_words(tmp_path: Path) -> None:
    record_calls(tmp_path, {"id": "a1"})

    async with open_page(tmp_path) as page:
        assert "'yesterday' is no time" in words(await read(page, "/ui/calls?since=yesterday", 400))
        assert "no such page" in words(await read(page, "/ui/calls?before=1~x", 400))


async def test_pages_have_no_gap_and_no_call_twice_while_calls_come_in(tmp_path: Path) -> None:
    record_calls(tmp_path, *({"id": f"old{number:03}"} for number in range(120)))

    async with open_page(tmp_path) as page:
        seen: list[str] = []
        path = "/ui/calls"
        for round in range(3):
            text = await read(page, path)
            seen += listed(text)
            record_calls(tmp_path, *({"id": f"new{round}{number:03}"} for number in range(30)))
            path = next_of(text)

    assert seen == [f"old{number:03}" for number in reversed(range(120))]
    assert path == ""


async def test_calls_of_one_moment_are_on_one_page_each(tmp_path: Path) -> None:
    record_calls(tmp_path, *({"id": f"{number:03}"} for number in range(130)))
    with sqlite3.connect(tmp_path / "calls.db") as connection:
        connection.execute("UPDATE calls SET at_s = 1e9")

    async with open_page(tmp_path) as page:
        seen: list[str] = []
        path = "/ui/calls"
        while path:
            text = await read(page, path)
            seen += listed(text)
            path = next_of(text)

    assert sorted(seen) == [f"{number:03}" for number in range(130)]


def test_a_search_that_finds_nothing_says_how_far_it_came_and_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_calls, "MAX_ROWS_SEARCHED", 40)
    record_calls(tmp_path, {"id": "wanted", "tool": "Glob"}, *({"id": f"{number:03}"} for number in range(100)))
    rare = recorded_calls.CallSearch(tool="Glob")
    pages: list[recorded_calls.CallPage] = []

    while not pages or pages[-1].next:
        before = pages[-1].next if pages else ""
        pages.append(recorded_calls.page_of_calls(tmp_path / "calls.db", rare, before=before))

    assert [[call["call_id"] for call in page.calls] for page in pages] == [[], [], ["wanted"]]
    assert pages[0].searched_to_s is not None and pages[2].searched_to_s is None


def steps_of(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """How many steps of SQLite's machine it takes: each row that is read is some."""
    steps = 0
    connect = sqlite3.connect

    def counted(*given: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*given, **named)

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        connection.set_progress_handler(step, 1)
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", counted)
        work()
    return steps


@pytest.mark.parametrize(
    "wanted",
    [{}, {"tool": "Glob"}, {"text": "nowhere"}, {"client": "nobody"}, {"only_failed": True}, {"server": "s"}],
    ids=str,
)
def test_the_rows_that_a_page_reads_do_not_grow_with_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    monkeypatch.setattr(recorded_calls, "MAX_ROWS_SEARCHED", 200)
    path = tmp_path / "calls.db"

    def look() -> None:
        recorded_calls.page_of_calls(path, recorded_calls.CallSearch(**wanted))
        recorded_calls.names_in(path, 200)
        recorded_calls.one_call(path, "0007")

    taken: list[int] = []
    for start in (0, 400):
        record_calls(tmp_path, *({"id": f"{start + number:04}"} for number in range(400 if start == 0 else 3600)))
        taken.append(steps_of(monkeypatch, look))

    assert taken[1] < taken[0] * 1.2


async def test_one_call_is_shown_whole_with_its_lines_of_the_chain(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        (work.workspace / "f.txt").write_text("one\n")
        await work.call("Read", file_path=str(work.workspace / "f.txt"))
        id = await work.call("Grep", pattern="one", path=str(work.workspace))
        async with open_page(work.state, **work.parts) as page:
            text = await read(page, f"/ui/calls/{id}")

    lines = [json.loads(html.unescape(line)) for line in re.findall(r"<pre[^>]*>(\{.*?\})</pre>", text)]
    assert [(line["event"], line["call_id"], line["tool"]) for line in lines] == [
        ("decision", id, "Grep"),
        ("outcome", id, "Grep"),
    ]
    shown = words(text)
    for part in ("Call of Grep ok", "pattern one", "editor", "allow by", f"goat-mcp audit show --call {id}"):
        assert part in shown
    assert "Changed files" not in shown


@pytest.mark.parametrize("block_bytes", [100, 700, 1 << 20])
def test_the_lines_of_a_call_are_found_wherever_a_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    record_calls(tmp_path, *({"id": f"{number:03}", "tool": '"call_id":"007"'} for number in range(20)))
    monkeypatch.setattr(records, "_BLOCK_BYTES", block_bytes)
    chain = tmp_path / "audit.jsonl"

    found = {id: records.lines_of_call(chain, id, 0.0) for id in ("007", "019", "07")}

    lines = chain.read_text().splitlines()
    assert found["007"] == [("audit.jsonl:15", lines[14]), ("audit.jsonl:16", lines[15])]
    assert [where for where, _ in found["019"]] == ["audit.jsonl:39", "audit.jsonl:40"]
    assert found["07"] == []
    assert records.lines_of_call(chain, "007", time.time() + 60) == []


async def test_who_approved_a_call_stands_with_it(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        id = await work.call("Glob", pattern="*")
        async with open_page(work.state, **work.parts) as page:
            store = page.parts.queue.store
            asked = store.add(request_for(), id)
            store.decide(asked.id, Verdict(True, "session"), "telegram: ada")
            store.use(asked.id, id)
            one, all = await read(page, f"/ui/calls/{id}"), await read(page, "/ui/calls")

    assert "approved by telegram: ada at" in words(one) and "(session)" in words(one)
    assert "telegram: ada" in words(all)


async def test_a_call_that_runs_is_marked_and_one_whose_process_is_gone_is_not(tmp_path: Path) -> None:
    record_calls(tmp_path, {"id": "runs", "ends": False}, pid=os.getpid())
    record_calls(tmp_path, {"id": "lost", "ends": False}, pid=2**22 + 1)

    async with open_page(tmp_path) as page:
        text = await read(page, "/ui/calls")

    rows = dict(re.findall(r'<tr id="c-([^"]+)">(.*?)</tr>', text, re.DOTALL))
    assert "running" in rows["runs"] and "no end recorded" in rows["lost"]


async def test_hostile_texts_are_inert(tmp_path: Path) -> None:
    hostile = {"a": "<script>alert(1)</script>", "b": "\u202egnp.exe", "c\u2066": "x" * 2048, "d": "'\"><img src=x>"}
    record_calls(
        tmp_path / "state",
        {"id": "h1", "tool": "mcp__<b>__<i>", "client": "<u>\u202e", "rule": "<s>", "arguments": hostile},
    )
    async with working(tmp_path) as work, open_page(work.state, **work.parts) as page:
        pages = [await read(page, path) for path in ("/ui/calls", "/ui/calls/h1", "/ui/calls?text=%22%3E%3Cimg%3E")]

    for text in pages:
        assert not re.search(r"<(script>|img|b>|i>|u>|s>)|[\u202e\u2066]", text)
        assert not re.search(r"style=|\son\w+=", text)
    assert "\\u202egnp.exe" in pages[1] and "&lt;script&gt;alert(1)" in pages[1] and "x" * 2048 in pages[1]
    assert "&lt;img&gt;" in pages[2]


@pytest.mark.parametrize("path", ["nothing", "%00", "..%2f..", "a" * 300, "verify/undo"])
async def test_an_id_that_nobody_knows_is_no_page(tmp_path: Path, path: str) -> None:
    async with working(tmp_path) as work:
        await work.call("Glob", pattern="*")
        async with open_page(work.state, **work.parts) as page:
            await read(page, f"/ui/calls/{path}", 404)
            await read(page, f"/ui/calls/{path}/undo", 404)
            assert (await page.post(f"/ui/calls/{path}/undo")).status_code == 404


async def test_undo_shows_the_diff_first_puts_the_file_back_and_is_on_record(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        path = work.workspace / "f.txt"
        path.write_text("one\ntwo\n")
        id = await work.call("Write", file_path=str(path), content="one\n<three>\n")
        async with open_page(work.state, **work.parts) as page:
            call = await read(page, f"/ui/calls/{id}")
            asked = await read(page, f"/ui/calls/{id}/undo")
            before = path.read_text()
            answer = await page.post(f"/ui/calls/{id}/undo")
            after = await read(page, answer.headers["location"])
            again = await read(page, f"/ui/calls/{id}/undo", 400)
            work.gateway.audit.close()
            (recorded,) = listed(await read(page, "/ui/calls?tool=undo"))
            undo = await read(page, f"/ui/calls/{recorded}")

    assert f'href="/ui/calls/{id}/undo"' in call and f"changed {path}" in words(call)
    assert "-&lt;three&gt;" in asked and "+two" in asked
    assert (before, path.read_text()) == ("one\n<three>\n", "one\ntwo\n")
    assert answer.status_code == 303
    assert f"restored: {path} (Write {id})" in words(after)
    assert f"call {id} is undone already" in words(again)
    assert f"page, calls {id}" in words(undo) and "goat-mcp ui" in words(undo)


async def test_an_undo_can_be_undone_from_its_own_call(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        path = work.workspace / "f.txt"
        id = await work.call("Write", file_path=str(path), content="new\n")
        async with open_page(work.state, **work.parts) as page:
            await page.post(f"/ui/calls/{id}/undo")
            is_gone = not path.exists()
            work.gateway.audit.close()
            (undo,) = listed(await read(page, "/ui/calls?tool=undo"))
            await page.post(f"/ui/calls/{undo}/undo")

    assert is_gone
    assert path.read_text() == "new\n"


async def test_a_file_that_has_changed_since_is_left_alone_and_named(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        path = work.workspace / "f.txt"
        path.write_text("one\n")
        id = await work.call("Write", file_path=str(path), content="two\n")
        path.write_text("mine\n")
        async with open_page(work.state, **work.parts) as page:
            asked = await read(page, f"/ui/calls/{id}/undo")
            answer = await page.post(f"/ui/calls/{id}/undo")
            after = await read(page, answer.headers["location"])

    assert path.read_text() == "mine\n"
    assert '<button class="danger">' not in asked
    for shown in (words(asked), words(after)):
        assert f"not undone: {path} has changed since; it was left as it is" in shown


async def test_a_call_that_changed_no_file_and_one_whose_workspace_is_gone_are_refused(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        read_id = await work.call("Glob", pattern="*")
        written = await work.call("Write", file_path=str(work.workspace / "f.txt"), content="x")
        async with open_page(work.state, **work.parts) as page:
            work.workspace.rename(tmp_path / "elsewhere")
            assert "has changed no file" in words(await read(page, f"/ui/calls/{read_id}/undo", 404))
            assert f"the workspace {work.workspace} is not there" in words(
                await read(page, f"/ui/calls/{written}/undo", 404)
            )


async def test_without_the_token_nothing_is_undone(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        path = work.workspace / "f.txt"
        id = await work.call("Write", file_path=str(path), content="new\n")
        async with open_page(work.state, **work.parts) as page:
            answer: httpx.Response = await page.post(f"/ui/calls/{id}/undo", csrf="no")

    assert answer.status_code == 403
    assert path.exists()


async def test_the_record_is_checked_and_a_changed_line_is_named(tmp_path: Path) -> None:
    async with working(tmp_path) as work:
        await work.call("Glob", pattern="*")
        async with open_page(work.state, **work.parts) as page:
            nothing_yet = await read(page, "/ui/calls/verify")
            answer = await page.post("/ui/calls/verify")
            intact = await read(page, answer.headers["location"])
            chain = work.state / "audit.jsonl"
            chain.write_bytes(chain.read_bytes().replace(b'"Glob"', b'"Grep"', 1))
            await page.post("/ui/calls/verify")
            changed = await read(page, "/ui/calls/verify")

    assert "intact: 2 events" not in words(nothing_yet)
    assert "intact: 2 events in 1 file, numbers 1 to 2" in words(intact)
    assert "not intact: audit.jsonl:1 is not as it was written" in words(changed)


async def test_a_check_that_takes_too_long_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.server.ui.calls.VERIFY_TIMEOUT_S", -1.0)
    async with working(tmp_path) as work:
        await work.call("Glob", pattern="*")
        async with open_page(work.state, **work.parts) as page:
            await page.post("/ui/calls/verify")
            text = await read(page, "/ui/calls/verify")

    assert "not finished: the first 0 events are intact" in words(text)
    assert "not known" in words(text)


async def test_a_record_that_is_damaged_is_named_and_no_bug(tmp_path: Path) -> None:
    (tmp_path / "calls.db").write_bytes(b"this is no database" * 100)

    async with open_page(tmp_path) as page:
        text = await read(page, "/ui/calls", 400)

    assert "cannot be read" in words(text)


async def test_an_old_record_gets_the_index_of_rules_with_the_next_call(tmp_path: Path) -> None:
    record_calls(tmp_path, {"id": "a"})
    with sqlite3.connect(tmp_path / "calls.db") as connection:
        connection.execute("DROP INDEX calls_by_rule")
    connection.close()

    record_calls(tmp_path, {"id": "b", "rule": "rule Bash(ls)"})

    with sqlite3.connect(tmp_path / "calls.db") as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert "calls_by_rule" in names
    use = recorded_calls.decided_by_rules(tmp_path / "calls.db", time.time() - 60)
    assert use["rule Bash(ls)"].calls == 1
