"""What keeps others out of the page: other sites, other programs, other users of the browser (design D18)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from goat_mcp.calls.approvals.record import Status
from goat_mcp.server.ui.security import MAX_FIELDS, MAX_FORM_BYTES
from tests.server.ui.open_page import HOST, ORIGIN, OpenPage, open_page, page_parts, request_for, stranger

pytestmark = pytest.mark.anyio

FORM = "application/x-www-form-urlencoded"
KEEPS_OTHERS_OUT = {
    "content-security-policy": (
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


def waiting(page: OpenPage) -> str:
    return page.parts.queue.store.add(request_for()).id


def is_waiting(page: OpenPage, id: str) -> bool:
    return page.parts.queue.store.find(id).status is Status.WAITING


async def test_every_answer_has_the_headers_that_keep_others_out(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        gets = ("/ui", "/ui/login", "/ui/static/ui.js", "/ui/static/none", "/ui/nothing", "/ui/approvals/x/approve")
        answers = [await page.client.get(path) for path in gets]
        answers.append(await page.client.get("/ui", headers={"host": "evil.example"}))
        answers.append(await page.client.get("/ui", headers={"origin": "http://evil.example"}))
        answers.append(await page.client.put("/ui"))
        answers.append(await page.client.post("/ui/logout", headers={"origin": ORIGIN}))
        answers.append(await page.post("/ui/logout"))
        answers.append(await page.client.get("/ui"))

    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 403, 200, 404, 404, 405, 421, 403, 405, 415, 200, 401]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in KEEPS_OTHERS_OUT} == KEEPS_OTHERS_OUT, answer.url
        assert "access-control-allow-origin" not in answer.headers


async def test_without_a_session_nothing_is_answered_but_how_to_get_in(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    parts.queue.store.add(request_for("Bash: the secret plan"))
    async with stranger(parts) as client:
        paths = ("/ui", "/ui/events", "/ui/nothing", "/ui/approvals/x", "/ui/loginx", "/ui//login")
        answers = [await client.get(path) for path in paths]
        answers.append(await client.post("/ui/approvals/x/approve", headers={"origin": ORIGIN}))

    assert [answer.status_code for answer in answers] == [401] * 7
    assert len({answer.text for answer in answers}) == 1
    assert "goat-mcp ui" in answers[0].text
    assert "secret plan" not in answers[0].text and "Calls" not in answers[0].text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:9999", "localhost:8765", f"{HOST}.evil.example", f"{HOST}@evil"]
)
async def test_a_host_that_is_not_exactly_ours_is_refused(tmp_path: Path, host: str) -> None:
    """Against DNS that leads a name of another site to this machine."""
    async with open_page(tmp_path) as page:
        assert (await page.client.get("/ui", headers={"host": host})).status_code == 421
        assert (await page.client.get("/ui/login", headers={"host": host})).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://localhost:8765"},
        {"origin": f"https://{HOST}"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
        {"origin": "null", "sec-fetch-site": "same-site"},
    ],
    ids=str,
)
async def test_a_form_of_another_origin_changes_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    async with open_page(tmp_path) as page:
        id = waiting(page)
        body = urlencode({"csrf": await page.csrf(), "scope": "once"})

        answer = await page.client.post(
            f"/ui/approvals/{id}/approve", content=body, headers={"content-type": FORM, **headers}
        )

        assert answer.status_code == 403
        assert is_waiting(page, id)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_site_may_lead_to_the_page_but_load_nothing_of_it(tmp_path: Path, site: str) -> None:
    """Another port of this machine is the same site: its pages send the cookie along."""
    async with open_page(tmp_path) as page:
        for mode, status in (("no-cors", 403), ("cors", 403), ("navigate", 200)):
            headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
            assert (await page.client.get("/ui", headers=headers)).status_code == status
            assert (await page.client.get("/ui/static/ui.js", headers=headers)).status_code == status


@pytest.mark.parametrize("headers", [{"origin": ORIGIN}, {"origin": "null", "sec-fetch-site": "same-origin"}], ids=str)
async def test_a_form_of_the_page_itself_is_taken(tmp_path: Path, headers: dict[str, str]) -> None:
    """A browser that sends no referrer says `Origin: null` of the page's own forms."""
    async with open_page(tmp_path) as page:
        id = waiting(page)
        body = urlencode({"csrf": await page.csrf(), "scope": "once"})

        answer = await page.client.post(
            f"/ui/approvals/{id}/approve", content=body, headers={"content-type": FORM, **headers}
        )

        assert answer.status_code == 303
        assert not is_waiting(page, id)


@pytest.mark.parametrize("token", [None, "", "x" * 43, "\u00e9"])
async def test_a_form_without_the_token_of_the_session_changes_nothing(tmp_path: Path, token: str | None) -> None:
    async with open_page(tmp_path) as page:
        id = waiting(page)
        fields = {"scope": "once"} if token is None else {"scope": "once", "csrf": token}

        answer = await page.client.post(
            f"/ui/approvals/{id}/approve",
            content=urlencode(fields),
            headers={"content-type": FORM, "origin": ORIGIN},
        )

        assert answer.status_code == 403
        assert is_waiting(page, id)


async def test_the_token_of_another_session_changes_nothing(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        id = waiting(page)
        async with stranger(page.parts) as other:
            await other.get(page.parts.links.new())
            theirs = (await other.get("/ui")).text.partition('name="csrf" value="')[2].partition('"')[0]

        answer = await page.post(f"/ui/approvals/{id}/approve", csrf=theirs, scope="once")

        assert len(theirs) == 43
        assert answer.status_code == 403
        assert is_waiting(page, id)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "multipart/form-data; boundary=x", None])
async def test_only_forms_are_taken(tmp_path: Path, content_type: str | None) -> None:
    async with open_page(tmp_path) as page:
        headers = {"origin": ORIGIN, **({"content-type": content_type} if content_type else {})}

        answer = await page.client.post("/ui/logout", content="csrf=x", headers=headers)

        assert answer.status_code == 415


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"csrf=" + b"x" * MAX_FORM_BYTES, 413),
        (b"&".join(b"a=%d" % number for number in range(MAX_FIELDS + 1)), 400),
        (b"csrf=\xff", 400),
        (b"csrf=%ff%fe", 400),
    ],
    ids=["too long", "too many fields", "no ASCII", "no UTF-8"],
)
async def test_a_form_that_is_too_large_or_cannot_be_read_is_refused(tmp_path: Path, body: bytes, status: int) -> None:
    async with open_page(tmp_path) as page:
        headers = {"content-type": FORM, "origin": ORIGIN}

        assert (await page.client.post("/ui/logout", content=body, headers=headers)).status_code == status


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
async def test_only_get_and_post_are_answered(tmp_path: Path, method: str) -> None:
    async with open_page(tmp_path) as page:
        assert (await page.client.request(method, "/ui", headers={"origin": ORIGIN})).status_code == 405


@pytest.mark.parametrize("path", ["/ui/static/../app.py", "/ui/static/%2e%2e/app.py", "/ui/static/base.html"])
async def test_only_the_static_files_themselves_are_served(tmp_path: Path, path: str) -> None:
    async with open_page(tmp_path) as page:
        assert (await page.client.get(path)).status_code == 404


async def test_a_bug_shows_only_its_id_and_is_logged_once(tmp_path: Path) -> None:
    logged: list[tuple[str, str, str]] = []

    def log(id: str, where: str, bug: BaseException) -> None:
        logged.append((id, where, str(bug)))

    async with open_page(tmp_path, unexpected=log) as page:
        page.parts.queue.waiting = fail  # type: ignore[method-assign]  # a view that has a bug

        answer = await page.client.get("/ui")

    assert answer.status_code == 500
    assert logged[0][0] in answer.text and "/home/ada" not in answer.text
    assert [about[1:] for about in logged] == [("page /ui", "in /home/ada")]


async def fail() -> Any:
    raise RuntimeError("in /home/ada")
