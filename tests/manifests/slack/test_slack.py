"""slack: what reaches Slack, what comes back, and that the token goes nowhere else. Contract: tools.md, section 3."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.client import WholeResponse
from tests.manifests.shipped_tools import ShippedTools
from tests.manifests.slack.web_api import CHANNEL, FILE, TOKEN, SlackApi
from tests.web.http.local_server import page, serving
from tests.web.messaging.wire_server import Said, WireServer, answering

pytestmark = pytest.mark.anyio

TS = "1700000000.000007"
CALLS: dict[str, dict[str, Any]] = {
    "send": {"text": "hello"},
    "read": {},
    "edit": {"ts": TS, "text": "other"},
    "delete": {"ts": TS},
    "react": {"ts": TS, "emoji": "thumbsup"},
    "downloadFile": {"fileId": "F1", "path": "got.png"},
}


class Desk:
    def __init__(self, tools: ShippedTools, api: SlackApi, wire: WireServer) -> None:
        self.tools = tools
        self.api = api
        self.wire = wire
        self.sees(f"{wire.url}/files-pri/T1-F1/download/goat.png")

    def sees(self, url: str, **more: Any) -> None:
        """Make `F1` a file that lies there."""
        self.api.files["F1"] = {**FILE, "size": 4, "url_private": url, "url_private_download": url, **more}

    async def value(self, export: str, **arguments: Any) -> Any:
        return await self.tools.value(f"slack__{export}", **{"channel": CHANNEL, **arguments})

    async def error(self, export: str, **arguments: Any) -> tuple[str | None, str]:
        result = await self.tools.call(f"slack__{export}", **{"channel": CHANNEL, **arguments})
        assert result.is_error
        return result.error_code, result.text


@asynccontextmanager
async def desk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, api: SlackApi | None = None, **settings: Any
) -> AsyncGenerator[Desk]:
    api = api or SlackApi()
    api.bodies["goat.png"] = b"\x89PNG"
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    async with answering(api.answer) as wire:
        config = {"token": "${env:SLACK_BOT_TOKEN}", "baseUrl": f"{wire.url}/api", **settings.pop("config", {})}
        tools = ShippedTools(folder, monkeypatch, tools={"slack": config}, **settings)
        yield Desk(tools, api, wire)


def mine(text: str = "old", ts: str = TS) -> dict[str, Any]:
    return {"type": "message", "user": "U0BOT", "bot_id": "B01", "text": text, "ts": ts}


async def test_messages_are_sent_edited_deleted_and_reacted_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch, SlackApi(messages=[mine()])) as slack:
        sent = await slack.value("send", text="Grüße 🐐", threadTs=TS)
        await slack.value("edit", ts=TS, text="new")
        await slack.value("react", ts=TS, emoji=":thumbsup:")
        deleted = await slack.value("delete", ts=sent["ts"][0])

    assert (sent, deleted) == (
        {"channel": CHANNEL, "ts": ["1700000000.000001"]},
        {"channel": CHANNEL, "ts": sent["ts"][0]},
    )
    assert [message["text"] for message in slack.api.messages] == ["new"]
    assert slack.api.reactions == [{"channel": CHANNEL, "timestamp": TS, "name": "thumbsup"}]
    first = slack.wire.asked[0]
    assert first.fields == {"channel": CHANNEL, "text": "Grüße 🐐", "thread_ts": TS}
    assert first.headers["authorization"] == f"Bearer {TOKEN}"
    assert first.headers["content-type"] == "application/json; charset=utf-8"


async def test_a_long_text_becomes_several_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "word " * 1700
    async with desk(tmp_path, monkeypatch) as slack:
        value = await slack.value("send", text=text)

    assert len(value["ts"]) == 3
    assert "".join(message["text"] for message in reversed(slack.api.messages)) == text


async def test_messages_are_read_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[dict[str, Any]] = [
        {
            "type": "message",
            "user": "U1",
            "text": f"m{n}",
            "ts": f"1700000000.{n:06}",
            "blocks": [{"type": "rich_text"}],
        }
        for n in range(45)
    ]
    messages[0] |= {"files": [{**FILE, "size": 4}], "reactions": [{"name": "tada", "users": ["U2"], "count": 1}]}
    async with desk(tmp_path, monkeypatch, SlackApi(messages=messages)) as slack:
        pages = [await slack.value("read")]
        while pages[-1]["nextCursor"]:
            pages.append(await slack.value("read", cursor=pages[-1]["nextCursor"]))

    assert [len(found["messages"]) for found in pages] == [20, 20, 5]
    assert [message["text"] for found in pages for message in found["messages"]] == [f"m{n}" for n in range(45)]
    assert pages[0]["messages"][0] == {
        "ts": "1700000000.000000",
        "user": "U1",
        "text": "m0",
        "files": [{"id": "F1", "name": "goat.png", "mimetype": "image/png", "size": 4}],
        "reactions": {"tada": 1},
    }
    assert {asked.headers["content-type"] for asked in slack.wire.asked} == {"application/x-www-form-urlencoded"}


async def test_a_thread_and_one_message_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = SlackApi(
        messages=[mine("a", "1700000000.000009"), mine("b")], threads={TS: [mine("b"), mine("c", "1700000001.0")]}
    )
    async with desk(tmp_path, monkeypatch, api) as slack:
        thread = await slack.value("read", threadTs=TS)
        one = await slack.value("read", ts=TS)

    assert [message["text"] for message in thread["messages"]] == ["b", "c"]
    assert [message["text"] for message in one["messages"]] == ["b"]


@pytest.mark.parametrize(
    ("export", "arguments", "code", "told"),
    [
        ("send", {"channel": "C9", "text": "x"}, "E_TOOL", "Slack refused chat.postMessage: channel_not_found"),
        ("edit", {"ts": "1.1", "text": "x"}, "E_TOOL", "message_not_found"),
        ("delete", {"ts": "1.1"}, "E_TOOL", "message_not_found"),
        ("react", {"ts": TS, "emoji": "no such"}, "E_TOOL", "invalid_name"),
        ("read", {"cursor": "!!"}, "E_TOOL", "invalid_cursor"),
        ("read", {"threadTs": "1.1"}, "E_TOOL", "thread_not_found"),
        ("downloadFile", {"fileId": "F9", "path": "x"}, "E_TOOL", "file_not_found"),
        ("edit", {"ts": "now", "text": "x"}, "E_INPUT", "no `ts`"),
        ("send", {"channel": "a b", "text": "x"}, "E_INPUT", "is no channel"),
    ],
)
async def test_ok_false_is_an_error_with_slacks_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, arguments: dict[str, Any], code: str, told: str
) -> None:
    async with desk(tmp_path, monkeypatch) as slack:
        result = await slack.tools.call(f"slack__{export}", **{"channel": CHANNEL, **arguments})

    assert (result.error_code, told in result.text) == (code, True), result.text
    if code == "E_TOOL":
        assert result.wire()["structuredContent"]["error"]["name"] in told


async def test_a_token_that_slack_does_not_take_is_e_auth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch, config={"token": "xoxb-another-token-0000"}) as slack:
        code, told = await slack.error("read")

    assert (code, "invalid_auth" in told, "another-token" in told) == ("E_AUTH", True, False)


@pytest.mark.parametrize("export", CALLS)
async def test_a_429_is_waited_for_and_the_call_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str
) -> None:
    async with desk(tmp_path, monkeypatch, SlackApi(messages=[mine()], limits=[1])) as slack:
        await slack.value(export, **CALLS[export])

    assert slack.api.methods[0] == slack.api.methods[1]


async def test_a_429_for_longer_than_the_call_may_take_is_e_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, monkeypatch, SlackApi(limits=[60])) as slack:
        code, told = await slack.error("read")

    assert (code, "Call again in 60 s." in told, slack.api.methods) == ("E_RATE", True, ["conversations.history"])


# --- files


async def test_a_file_is_saved_as_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch) as slack:
        value = await slack.value("downloadFile", fileId="F1", path="in/goat.png")
        again, _ = await slack.error("downloadFile", fileId="F1", path="in/goat.png")
        outside, _ = await slack.error("downloadFile", fileId="F1", path="../goat.png")

    saved = tmp_path / "work" / "in" / "goat.png"
    assert value == {"fileId": "F1", "name": "goat.png", "mimetype": "image/png", "path": str(saved), "bytes": 4}
    assert (saved.read_bytes(), again, outside) == (b"\x89PNG", "E_STALE", "E_PATH_OUTSIDE")
    assert slack.wire.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("declared", [True, False])
async def test_a_file_over_20_mb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: bool) -> None:
    async with desk(tmp_path, monkeypatch) as slack:
        slack.api.bodies["goat.png"] = b"x" if declared else bytes(20 * 1024 * 1024 + 1)
        slack.api.files["F1"]["size"] = 20 * 1024 * 1024 + 1 if declared else 4
        code, _ = await slack.error("downloadFile", fileId="F1", path="x.png")

    assert (code, (tmp_path / "work" / "x.png").exists()) == ("E_TOO_LARGE", False)


async def test_a_page_for_logging_in_is_not_taken_for_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch, SlackApi(scopes=())) as slack:
        code, told = await slack.error("downloadFile", fileId="F1", path="x.png")

    assert (code, "files:read" in told, (tmp_path / "work" / "x.png").exists()) == ("E_AUTH", True, False)


async def test_the_token_goes_to_no_other_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving({"/": page("x")}) as other, desk(tmp_path, monkeypatch) as slack:
        codes: list[str | None] = []
        for url in (
            other.url(),
            "https://files.slack.com/x",
            "https://slack.com.evil.test/x",
            "file:///etc/passwd",
            "",
        ):
            slack.sees(url)
            codes.append((await slack.error("downloadFile", fileId="F1", path="x.png"))[0])

    assert codes == ["E_ADDRESS"] * 5
    assert other.connections == 0


@pytest.mark.parametrize(
    ("url", "is_slacks"),
    [
        ("https://files.slack.com/files-pri/a", True),
        ("https://goats.slack.com/a", True),
        ("http://files.slack.com/a", False),
        ("https://evil.test/a", False),
        ("https://slack.com.evil.test/a", False),
        ("https://notslack.com/a", False),
    ],
)
async def test_slacks_own_files_are_asked_over_https_of_slack_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, is_slacks: bool
) -> None:
    """With the address of the settings left out, Slack's API is told of a file by a client that never dials."""
    asked: list[str] = []

    async def send(self: HttpClient, method: str, target: str, **more: Any) -> WholeResponse:
        asked.append(target)
        file = {**FILE, "size": 4, "url_private_download": url}
        body = json.dumps({"ok": True, "file": file}).encode() if target.endswith("files.info") else b"data"
        return WholeResponse(200, target, {}, body, False)

    monkeypatch.setattr(HttpClient, "send", send)
    tools = ShippedTools(tmp_path, monkeypatch, tools={"slack": {"token": TOKEN}})

    result = await tools.call("slack__downloadFile", channel=CHANNEL, fileId="F1", path="x.png")

    assert result.error_code == (None if is_slacks else "E_ADDRESS")
    assert asked == ["https://slack.com/api/files.info", *([url] if is_slacks else [])]


# --- which channels


@pytest.mark.parametrize("export", CALLS)
@pytest.mark.parametrize("channels", [[], ["C9"]])
async def test_only_the_channels_of_the_list_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, channels: list[str]
) -> None:
    async with desk(tmp_path, monkeypatch, config={"channels": channels}) as slack:
        code, told = await slack.error(export, **CALLS[export])

    assert (code, slack.api.methods, "tools.slack.channels" in told) == ("E_PERMISSION", [], True)
    assert "is not among the channels that Slack may be used for" in told and "chat" not in told


async def test_a_file_of_another_channel_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch, config={"channels": [CHANNEL]}) as slack:
        fine = await slack.tools.call("slack__downloadFile", channel=CHANNEL, fileId="F1", path="a.png")
        slack.sees(f"{slack.wire.url}/files-pri/T1-F1/download/goat.png", channels=["C9"], groups=["G9"])
        code, _ = await slack.error("downloadFile", fileId="F1", path="b.png")

    assert (fine.is_error, code, (tmp_path / "work" / "b.png").exists()) == (False, "E_PERMISSION", False)


# --- the token (R-SECRET-1, R-SECRET-2)


@pytest.mark.parametrize("export", CALLS)
@pytest.mark.parametrize("kind", ["fine", "echo", "html", "redirect", "nobody there"])
async def test_the_token_is_in_no_result_log_record_or_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], export: str, kind: str
) -> None:
    secret = "plain-looking-secret-of-slack"
    api = SlackApi(messages=[mine()])
    said = {
        "echo": Said(json.dumps({"ok": False, "error": f"bad {secret}"}).encode()),
        "html": Said(f"<h1>{secret}".encode(), "502 Bad Gateway", {"Content-Type": "text/html"}),
        "redirect": Said(b"", "302 Found", {"Location": f"https://other.test/?{secret}"}),
    }
    if kind in said:
        api.answer = lambda asked: said[kind]  # pyright: ignore[reportAttributeAccessIssue]  # a double's method
    config = {"token": secret, **({"baseUrl": "http://127.0.0.1:9"} if kind == "nobody there" else {})}
    async with desk(tmp_path, monkeypatch, api, config=config, log_level="debug") as slack:
        result = await slack.tools.call(f"slack__{export}", **{"channel": CHANNEL, **CALLS[export]})
        shown = await slack.tools.call("Config", setting="tools")
        status = slack.tools.gateway.status.raw()

    kept = [path.read_text("utf-8", "replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    everything = [json.dumps(result.wire()), json.dumps(shown.wire()), json.dumps(status, default=str), *kept]
    assert [text for text in (*everything, *capfd.readouterr()) if secret in text] == []


async def test_a_token_that_stands_in_a_message_is_not_read_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, monkeypatch, SlackApi(messages=[mine(f"ours is {TOKEN}")])) as slack:
        value = await slack.value("read")

    assert [message["text"] for message in value["messages"]] == ["ours is [redacted]"]
