"""The view Now."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import Approval, Choice, Kind, Request, Status, Verdict
from goat_mcp.calls.approvals.wording import CONSEQUENCES
from goat_mcp.server.ui.now import MAX_WAITING
from tests.server.ui.open_page import OpenPage, open_page, request_for

pytestmark = pytest.mark.anyio


def words(html: str) -> str:
    """What a person reads of the content."""
    main = html.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", main)).strip()


def added(page: OpenPage, request: Request, call_id: str = "") -> Approval:
    return page.parts.queue.store.add(request, call_id)


async def test_a_waiting_call_is_shown_with_all_that_a_person_needs(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        request = request_for(
            why=("it writes to a remote",),
            asked_by="Bash(git push *)",
            arguments=(("command", "git push <origin>"),),
            diff="--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new",
            choices=(Choice("once", "Allow once"), Choice("prefix", "Allow these", prefix="git push *")),
        )
        approval = added(page, request)

        html = (await page.client.get("/ui")).text

    page_text = words(html)
    for part in ("Bash: git push", "high risk", "it writes to a remote", "editor", "Bash(git push *)", "Allow once"):
        assert part in page_text
    assert "git push &lt;origin&gt;" in html
    assert '<span class="added">+new</span>' in html
    assert 'name="prefix" value="git push *"' in html
    assert f'action="/ui/approvals/{approval.id}/deny"' in html
    assert "style=" not in html and "onclick" not in html


async def test_what_is_strange_about_a_tool_and_how_to_log_in_are_shown(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        added(page, request_for(facts={"careful": ["hides text", "names a secret"]}))
        added(
            page,
            request_for(
                "Log in to github", kind=Kind.LOGIN, facts={"server": "github", "command": "goat-mcp auth login github"}
            ),
        )

        html = (await page.client.get("/ui")).text
        page_text = words(html)

    assert "Careful: its definition hides text; names a secret" in page_text
    assert "Log in ... Or in a terminal: goat-mcp auth login github" in page_text
    assert 'href="/ui/servers/github"' in html


async def test_hidden_characters_are_visible_and_tags_are_text(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        added(page, request_for("Bash: \u202egnp.exe <script>alert(1)</script>"))

        html = (await page.client.get("/ui")).text

    assert "\u202e" not in html
    assert "\\u202egnp.exe &lt;script&gt;" in html


async def test_approve_decides_once_and_shows_who_and_when(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        approval = added(page, request_for(), "call-1")

        answer = await page.post(f"/ui/approvals/{approval.id}/approve", scope="session")
        html = (await page.client.get(answer.headers["location"])).text
        decided = page.parts.queue.store.find(approval.id)

    assert answer.status_code == 303
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "page")
    assert decided.verdict == Verdict(True, "session", ("Bash(git push)",))
    assert "Approved by page (session) at" in words(html)
    assert "the call has not run yet" in words(html)
    assert "Nothing waits for you" in words(html)


async def test_deny_keeps_the_reason_for_the_model(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        approval = added(page, request_for())

        await page.post(f"/ui/approvals/{approval.id}/deny", reason=" use a branch ")
        decided = page.parts.queue.store.find(approval.id)
        html = (await page.client.get("/ui")).text

    assert decided.verdict == Verdict(False, reason="use a branch")
    assert "reason: use a branch" in words(html)


async def test_the_second_of_two_tabs_reads_who_was_first(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        approval = added(page, request_for())
        await page.post(f"/ui/approvals/{approval.id}/approve", scope="once")

        answer = await page.post(f"/ui/approvals/{approval.id}/deny")
        html = (await page.client.get(answer.headers["location"])).text

    assert answer.status_code == 303
    assert "was approved before, by page" in words(html)
    assert page.parts.queue.store.find(approval.id).status is Status.APPROVED


async def test_an_expired_record_is_shown_as_expired_and_cannot_be_approved(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        approval = added(page, request_for(expires_at_s=time.time() - 1))

        answer = await page.post(f"/ui/approvals/{approval.id}/approve", scope="once")
        html = (await page.client.get(answer.headers["location"])).text

    assert "has expired" in words(html)
    assert "Expired at" in words(html)
    assert page.parts.queue.store.find(approval.id).status is Status.EXPIRED


async def test_a_scope_that_is_not_offered_is_refused_in_words(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        approval = added(page, request_for())

        answer = await page.post(f"/ui/approvals/{approval.id}/approve", scope="everything")

    assert answer.status_code == 400
    assert "is not offered here" in words(answer.text)
    assert page.parts.queue.store.find(approval.id).status is Status.WAITING


async def test_an_unknown_record_is_not_found(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        added(page, request_for())

        answer = await page.post("/ui/approvals/00000000000000/approve", scope="once")

    assert answer.status_code == 404


async def test_of_very_many_that_wait_the_oldest_are_shown(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        for number in range(MAX_WAITING + 2):
            added(page, request_for(f"Bash: number {number};"))

        page_text = words((await page.client.get("/ui")).text)

    assert f"Waits for you {MAX_WAITING + 2} " in page_text
    assert (
        "number 0;" in page_text
        and f"number {MAX_WAITING - 1};" in page_text
        and f"number {MAX_WAITING};" not in page_text
    )
    assert "2 more wait" in page_text


async def test_an_empty_page_says_what_to_do_next(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        page_text = words((await page.client.get("/ui")).text)

    assert "Nothing waits for you." in page_text and "goat-mcp rules ask" in page_text


async def test_every_kind_has_a_name(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        for kind in Kind:
            added(page, request_for(f"{kind} waits", kind=kind, choices=()))

        html = (await page.client.get("/ui")).text
        page_text = words(html)

    assert all(f"{kind} waits" in page_text for kind in Kind)
    assert html.count('<button class="approve') == len(Kind) - 1  # a login takes more than a press
    assert all(text in page_text for text in CONSEQUENCES.values())
    assert (page_text.count("Reason, read by the model"), page_text.count("Reason, kept with the decision")) == (
        2,
        len(Kind) - 2,
    )


async def test_each_line_of_a_diff_has_its_class(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        page.parts.queue.store.add(request_for(diff="--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same"))

        html = (await page.client.get("/ui")).text

    found = re.search(r'<pre class="diff"[^>]*>(.*?)</pre>', html, re.S)
    assert found is not None
    assert re.findall(r'<span class="(.+?)">(.*?)</span>\n', found[1]) == [
        ("file", "--- a"),
        ("file", "+++ b"),
        ("hunk", "@@ -1 +1 @@"),
        ("removed", "-old"),
        ("added", "+new"),
        ("same", " same"),
    ]
