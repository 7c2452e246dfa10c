"""Pages of others in the browser of the owner: they reach nothing of the page, logged in or not."""

from __future__ import annotations

import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from goat_mcp.calls.approvals.record import Status
from tests.ui.browser import Tabs
from tests.ui.desk import Desk, new_desk
from tests.ui.seed import asked

pytestmark = pytest.mark.e2e

_FORM = """<!doctype html><title>Win a goat</title><form method="post" action="{action}">
<input name="scope" value="once"><input name="csrf" value="{csrf}"><button>Win</button></form>"""


class Elsewhere:
    """A page at another origin: another port of this machine."""

    def __init__(self) -> None:
        self.html = ""
        elsewhere = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(elsewhere.html.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def at(self, host: str) -> str:
        return f"http://{host}:{self.server.server_address[1]}/"


@pytest.fixture(scope="module")
def desk(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    """One account for all tests here: nothing that a stranger does changes it."""
    with new_desk(tmp_path_factory.mktemp("strangers") / "ada").served() as desk:
        yield desk


@pytest.fixture
def elsewhere() -> Generator[Elsewhere]:
    found = Elsewhere()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_form_of_another_page_decides_nothing(desk: Desk, page_at: Tabs, elsewhere: Elsewhere, host: str) -> None:
    """From another port the browser sends the cookie along, for the site is the same; from another name it does not.
    The form even knows the token."""
    approval = desk.approvals.add(asked())
    page = page_at("/ui")
    csrf = page.locator("input[name=csrf]").first.input_value()
    elsewhere.html = _FORM.format(action=f"{desk.origin}/ui/approvals/{approval.id}/approve", csrf=csrf)
    page.goto(elsewhere.at(host))

    with page.expect_response("**/approve") as answered:
        page.get_by_role("button", name="Win").click()

    assert answered.value.status == 403
    assert desk.approvals.find(approval.id).status is Status.WAITING
    page_at.problems.clear()  # the browser notes the refusal


def test_a_script_of_another_page_reads_and_changes_nothing(desk: Desk, page_at: Tabs, elsewhere: Elsewhere) -> None:
    approval = desk.approvals.add(asked())
    page = page_at("/ui")
    page.goto(elsewhere.at("127.0.0.1"))

    read = page.evaluate(
        """async ([view, change]) => {
          const seen = [];
          for (const options of [{}, { mode: "no-cors", credentials: "include" }]) {
            try { seen.push(await (await fetch(view, options)).text()); } catch { seen.push("refused"); }
          }
          const body = new URLSearchParams({ scope: "once" });
          try {
            await fetch(change, { method: "POST", mode: "no-cors", credentials: "include", body });
          } catch { seen.push("refused"); }
          return seen;
        }""",
        [f"{desk.origin}/ui", f"{desk.origin}/ui/approvals/{approval.id}/approve"],
    )

    assert not any("git push" in text for text in read), read
    assert desk.approvals.find(approval.id).status is Status.WAITING
    page_at.problems.clear()


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "https://example.org"}, 403), ({"Origin": "null"}, 403), ({"Host": "example.org"}, 421)],
)
def test_a_foreign_origin_or_host_is_refused(desk: Desk, page_at: Tabs, headers: dict[str, str], status: int) -> None:
    """With the cookie of the owner, as another program or a page behind a rebound name would send it."""
    approval = desk.approvals.add(asked())
    page = page_at("/ui")
    csrf = page.locator("input[name=csrf]").first.input_value()

    answer = page.request.post(
        f"{desk.origin}/ui/approvals/{approval.id}/approve", form={"csrf": csrf, "scope": "once"}, headers=headers
    )

    assert answer.status == status
    assert desk.approvals.find(approval.id).status is Status.WAITING


def test_nobody_sees_anything_without_the_link_and_it_works_once(desk: Desk, page_at: Tabs) -> None:
    desk.approvals.add(asked("Bash: the secret of the goat"))
    link = desk.new_link()
    first, second = page_at.window(logged_in=False), page_at.window(logged_in=False)

    second.goto(f"{desk.origin}/ui")
    expect(second.locator("main")).to_contain_text("You are not logged in")
    first.goto(link)
    expect(first.locator("main")).to_contain_text("the secret of the goat")
    second.goto(link)

    expect(second.locator("main")).to_contain_text("This link was used before")
    assert "token" not in first.url and urlsplit(first.url).path == "/ui"
    page_at.problems.clear()


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(desk: Desk, page_at: Tabs) -> None:
    page = page_at("/ui")

    (cookie,) = page.context.cookies(desk.origin + "/ui")

    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Strict", "/ui")
    assert page.evaluate("document.cookie") == ""


def test_a_page_cannot_be_shown_in_a_frame_of_another(desk: Desk, page_at: Tabs, elsewhere: Elsewhere) -> None:
    desk.approvals.add(asked("Bash: framed"))
    page = page_at("/ui")
    elsewhere.html = f'<!doctype html><iframe src="{desk.origin}/ui"></iframe>'

    page.goto(elsewhere.at("127.0.0.1"))

    frame = page.frames[1]
    assert "framed" not in (frame.content() if frame.url.startswith("http") else "")
    page_at.problems.clear()
