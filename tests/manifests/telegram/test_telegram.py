"""telegram: what reaches Telegram, what comes back, and that the token never does. Contract: tools.md, section 3."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.web.messaging.text_parts import utf16_length
from tests.manifests.shipped_tools import ShippedTools
from tests.manifests.telegram.bot_api import CHAT, TOKEN, BotApi
from tests.web.messaging.wire_server import Said, WireServer, answering

pytestmark = pytest.mark.anyio

CALLS: dict[str, dict[str, Any]] = {
    "send": {"chatId": CHAT, "text": "hello"},
    "edit": {"chatId": CHAT, "messageId": 7, "text": "other"},
    "delete": {"chatId": CHAT, "messageId": 7},
    "react": {"chatId": CHAT, "messageId": 7, "emoji": "👍"},
    "setChatAction": {"chatId": CHAT, "action": "typing"},
    "downloadFile": {"fileId": "f1", "path": "got.bin"},
}


class Desk:
    def __init__(self, tools: ShippedTools, api: BotApi, wire: WireServer) -> None:
        self.tools = tools
        self.api = api
        self.wire = wire

    async def value(self, export: str, **arguments: Any) -> Any:
        return await self.tools.value(f"telegram__{export}", **arguments)

    async def error(self, export: str, **arguments: Any) -> tuple[str | None, str]:
        result = await self.tools.call(f"telegram__{export}", **arguments)
        assert result.is_error
        return result.error_code, result.text


@asynccontextmanager
async def desk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, api: BotApi | None = None, **settings: Any
) -> AsyncGenerator[Desk]:
    api = api or BotApi()
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    async with answering(api.answer) as wire:
        config = {"token": "${env:TELEGRAM_BOT_TOKEN}", "baseUrl": wire.url, **settings.pop("config", {})}
        tools = ShippedTools(folder, monkeypatch, tools={"telegram": config}, **settings)
        yield Desk(tools, api, wire)


# --- messages


async def test_a_text_is_sent_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch) as telegram:
        value = await telegram.value("send", chatId=CHAT, text="Grüße 🐐\n<b>")

    assert value == {"chatId": str(CHAT), "messageIds": [100]}
    assert telegram.api.sent == [{"chat_id": str(CHAT), "text": "Grüße 🐐\n<b>"}]
    assert telegram.wire.asked[0].path == f"/bot{TOKEN}/sendMessage"


@pytest.mark.parametrize("text", [" ", "\n \t\n", " " * 5000])
async def test_blanks_alone_are_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    async with desk(tmp_path, monkeypatch) as telegram:
        code, _ = await telegram.error("send", chatId=CHAT, text=text)

    assert (code, telegram.api.sent) == ("E_INPUT", [])


async def test_a_message_can_answer_another_and_have_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch) as telegram:
        await telegram.value("send", chatId="@goats", text="<b>x</b>" * 2000, parseMode="HTML", messageId=7)

    first, *others = telegram.api.sent
    assert first["reply_parameters"] == {"message_id": 7}
    assert all("reply_parameters" not in other for other in others)
    assert {sent["parse_mode"] for sent in telegram.api.sent} == {"HTML"}


async def test_a_long_text_becomes_several_messages_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "🐐" * 5000
    async with desk(tmp_path, monkeypatch) as telegram:
        value = await telegram.value("send", chatId=CHAT, text=text)

    assert value["messageIds"] == [100, 101, 102]
    assert "".join(sent["text"] for sent in telegram.api.sent) == text
    assert [utf16_length(sent["text"]) for sent in telegram.api.sent] == [4096, 4096, 1808]


async def test_what_was_sent_before_a_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, monkeypatch) as telegram:
        text = "<b>" + "x" * 4000 + "</b>\n<i>" + "y" * 200 + "\n" + "</b>" + "z" * 100
        code, told = await telegram.error("send", chatId=CHAT, text=text, parseMode="HTML")

    assert code == "E_TOOL"
    assert "1 of 2 messages were sent, then: Telegram refused sendMessage: Bad Request: can't parse entities" in told
    assert "Send only the rest." in told


async def test_messages_are_edited_deleted_and_reacted_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = BotApi(messages={7: "old", 8: "bad"})
    async with desk(tmp_path, monkeypatch, api) as telegram:
        edited = await telegram.value("edit", chatId=CHAT, messageId=7, text="new")
        deleted = await telegram.value("delete", chatId=CHAT, messageId=8)
        await telegram.value("react", chatId=CHAT, messageId=7, emoji="👍")
        await telegram.value("react", chatId=CHAT, messageId=7)
        await telegram.value("setChatAction", chatId=CHAT)

    assert (edited, deleted) == ({"chatId": "4242", "messageId": 7}, {"chatId": "4242", "messageId": 8})
    assert api.messages == {7: "new"}
    assert [action.get("reaction", action.get("action")) for action in api.actions] == [
        [{"type": "emoji", "emoji": "👍"}],
        [],
        "typing",
    ]


@pytest.mark.parametrize(
    ("export", "arguments", "code", "told"),
    [
        ("send", {"chatId": 999, "text": "x"}, "E_TOOL", "Bad Request: chat not found"),
        ("send", {"chatId": 13, "text": "x"}, "E_TOOL", "bot was blocked by the user"),
        ("send", {"chatId": -55, "text": "x"}, "E_TOOL", "use chatId -100777"),
        ("send", {"chatId": CHAT, "text": "<b>", "parseMode": "HTML"}, "E_TOOL", "without parseMode"),
        ("edit", {"chatId": CHAT, "messageId": 7, "text": "old"}, "E_NO_CHANGE", "not modified"),
        ("edit", {"chatId": CHAT, "messageId": 9, "text": "new"}, "E_TOOL", "message to edit not found"),
        ("edit", {"chatId": CHAT, "messageId": 7, "text": "🐐" * 2049}, "E_INPUT", "text has 4098 characters"),
        ("delete", {"chatId": CHAT, "messageId": 9}, "E_TOOL", "message to delete not found"),
        ("react", {"chatId": CHAT, "messageId": 7, "emoji": "x"}, "E_TOOL", "REACTION_INVALID"),
        ("setChatAction", {"chatId": CHAT, "action": "sleeping"}, "E_INPUT", "upload_photo"),
        ("send", {"chatId": "nobody", "text": "x"}, "E_INPUT", "'nobody' is no chat"),
        ("send", {"chatId": "1/../x", "text": "x"}, "E_INPUT", "is no chat"),
        ("send", {"chatId": CHAT, "text": ""}, "E_INPUT", "text"),
        ("downloadFile", {"fileId": "none", "path": "a"}, "E_TOOL", "wrong file_id"),
    ],
)
async def test_what_telegram_refuses_is_an_error_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, arguments: dict[str, Any], code: str, told: str
) -> None:
    async with desk(tmp_path, monkeypatch, BotApi(messages={7: "old"})) as telegram:
        found, text = await telegram.error(export, **arguments)

    assert (found, told in text) == (code, True), text


# --- too often


@pytest.mark.parametrize("export", CALLS)
async def test_a_429_is_waited_for_and_the_call_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str
) -> None:
    api = BotApi(messages={7: "old"}, files={"f1": ("documents/file_1.bin", b"data")}, limits=[1])
    began_s = time.monotonic()
    async with desk(tmp_path, monkeypatch, api) as telegram:
        await telegram.value(export, **CALLS[export])

    assert time.monotonic() - began_s >= 1
    assert api.methods[0] == api.methods[1]


async def test_a_429_for_longer_than_the_call_may_take_is_e_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, monkeypatch, BotApi(limits=[44])) as telegram:
        result = await telegram.tools.call("telegram__send", chatId=CHAT, text="x")

    assert result.error_code == "E_RATE"
    assert "Call again in 44 s." in result.text
    assert telegram.api.methods == ["sendMessage"]


# --- files


async def test_a_file_is_saved_as_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 1000
    async with desk(tmp_path, monkeypatch, BotApi(files={"f1": ("photos/file 1#?.jpg", data)})) as telegram:
        value = await telegram.value("downloadFile", fileId="f1", path="photos/goat.jpg")
        absolute = await telegram.value("downloadFile", fileId="f1", path=str(tmp_path / "work" / "b.jpg"))
        at = await telegram.value("downloadFile", fileId="f1", path="@/c.jpg")

    saved = tmp_path / "work" / "photos" / "goat.jpg"
    assert value == {"fileId": "f1", "path": str(saved), "bytes": len(data)}
    saved_too = tmp_path / "work"
    assert (absolute["path"], at["path"]) == (str(saved_too / "b.jpg"), str(saved_too / "c.jpg"))
    assert [file.read_bytes() for file in (saved, saved_too / "b.jpg", saved_too / "c.jpg")] == [data] * 3


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../out.bin", "E_PATH_OUTSIDE"),
        ("/etc/goat.bin", "E_PATH_OUTSIDE"),
        ("way-out/x.bin", "E_PATH_OUTSIDE"),
        ("there.bin", "E_STALE"),
        ("folder", "E_DIRECTORY"),
        ("a\0b", "E_INPUT"),
    ],
)
async def test_a_download_leaves_the_workspace_nowhere_and_replaces_nothing(  # R-FILE-1
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    (work / "there.bin").write_bytes(b"mine")
    (work / "way-out").symlink_to(tmp_path)
    async with desk(tmp_path, monkeypatch, BotApi(files={"f1": ("a/b", b"theirs")})) as telegram:
        found, told = await telegram.error("downloadFile", fileId="f1", path=path)

    assert found == code, told
    assert (work / "there.bin").read_bytes() == b"mine"
    assert not (tmp_path / "x.bin").exists()
    assert telegram.api.methods == []


@pytest.mark.parametrize("declared", [True, False])
async def test_a_file_over_20_mb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: bool) -> None:
    limit = 20 * 1024 * 1024
    api = BotApi(files={"f1": ("a/b", b"x" if declared else bytes(limit + 1))})
    api.sizes["f1"] = limit + 1 if declared else 5
    async with desk(tmp_path, monkeypatch, api) as telegram:
        code, told = await telegram.error("downloadFile", fileId="f1", path="x.bin")

    assert (code, "at most 20,971,520" in told) == ("E_TOO_LARGE", True)
    assert not (tmp_path / "work" / "x.bin").exists()


@pytest.mark.parametrize("place", ["/var/lib/bot/file", "../../bot1:x/getMe", "a//b", "", "a/./b"])
async def test_a_place_that_leads_elsewhere_on_the_server_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async with desk(tmp_path, monkeypatch, BotApi(files={"f1": (place, b"x")})) as telegram:
        code, _ = await telegram.error("downloadFile", fileId="f1", path="x.bin")

    assert (code, len(telegram.wire.asked)) == ("E_NETWORK", 1)


@pytest.mark.parametrize(
    "rule", ["Edit(./secret/**)", "Write(./secret/**)", "Read(./secret/**)", "telegram__downloadFile"]
)
async def test_a_rule_that_denies_a_path_keeps_downloads_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    api = BotApi(files={"f1": ("a/b", b"x")})
    async with desk(tmp_path, monkeypatch, api, permissions={"deny": [rule]}) as telegram:
        code, _ = await telegram.error("downloadFile", fileId="f1", path="secret/x.bin")

    assert (code, api.methods) == ("E_PERMISSION", [])


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "@.git/hooks/pre-commit", "@/.git/hooks/pre-commit", "link", "up/../hooks/x"]
)
async def test_protected_files_are_not_written_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "work" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "work" / "link").symlink_to(tmp_path / "work" / ".git" / "hooks" / "pre-push")
    (tmp_path / "work" / ".git" / "info").mkdir()
    (tmp_path / "work" / "up").symlink_to(tmp_path / "work" / ".git" / "info")
    async with desk(tmp_path, monkeypatch, BotApi(files={"f1": ("a/b", b"x")})) as telegram:
        code, told = await telegram.error("downloadFile", fileId="f1", path=path)

    assert list((tmp_path / "work" / ".git" / "hooks").iterdir()) == []
    assert code == "E_APPROVAL_PENDING", told


# --- which chats


@pytest.mark.parametrize(
    ("chat", "is_allowed"), [(CHAT, True), (str(CHAT), True), (" 4242 ", True), ("@GOATS", True), (-100777, False)]
)
async def test_only_the_chats_of_the_list_are_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat: Any, is_allowed: bool
) -> None:
    api = BotApi(chats={str(CHAT), "@GOATS", "-100777"})
    async with desk(tmp_path, monkeypatch, api, config={"chats": [CHAT, "@goats"]}) as telegram:
        result = await telegram.tools.call("telegram__setChatAction", chatId=chat)

    assert result.error_code == (None if is_allowed else "E_PERMISSION")
    assert len(api.actions) == is_allowed


@pytest.mark.parametrize("export", CALLS)
async def test_an_empty_list_allows_no_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str) -> None:
    async with desk(tmp_path, monkeypatch, config={"chats": []}) as telegram:
        code, told = await telegram.error(export, **{"chatId": CHAT, **CALLS[export]})

    assert (code, telegram.api.methods) == ("E_PERMISSION", [])
    assert "tools.telegram.chats" in told


@pytest.mark.parametrize(
    ("chats", "chat", "code"),
    [
        ([CHAT], None, "E_PERMISSION"),
        ([CHAT], -100777, "E_PERMISSION"),
        ([CHAT], CHAT, None),
        (None, None, None),
    ],
)
async def test_where_only_some_chats_may_be_used_a_download_says_which_it_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chats: Any, chat: Any, code: str | None
) -> None:
    """The id of a file, and what Telegram tells of it, name no chat."""
    api = BotApi(files={"f1": ("a/b", b"x")})
    given = {"chatId": chat} if chat is not None else {}
    async with desk(tmp_path, monkeypatch, api, config={"chats": chats} if chats else {}) as telegram:
        result = await telegram.tools.call("telegram__downloadFile", fileId="f1", path="x.bin", **given)

    assert result.error_code == code, result.text
    assert bool(api.methods) == (code is None)
    if chats and not given:
        assert "Call again with chatId: the chat in which the file was sent." in result.text
        assert "tools.telegram.chats" in result.text


# --- settings


@pytest.mark.parametrize(
    ("config", "code", "told"),
    [
        ({"token": ""}, "E_NOT_CONFIGURED", "tools.telegram.token: ${env:TELEGRAM_BOT_TOKEN}"),
        ({"token": "${env:NOBODY_SET_THIS}"}, "E_CONFIG", "NOBODY_SET_THIS"),
        ({"token": f"{TOKEN}/../x"}, "E_CONFIG", "is no token of Telegram"),
        ({"chat": [1]}, "E_CONFIG", "tools.telegram"),
        ({"chats": "4242"}, "E_CONFIG", "tools.telegram.chats"),
        ({"chats": ["goats"]}, "E_CONFIG", "'goats' is no chat"),
        ({"baseUrl": "ftp://x"}, "E_CONFIG", "tools.telegram.baseUrl"),
        ({"baseUrl": "http://a:b@x"}, "E_CONFIG", "tools.telegram.baseUrl"),
    ],
)
async def test_settings_that_cannot_be_used_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], code: str, told: str
) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    base = {} if config.get("token") == "" else {"token": TOKEN}
    tools = ShippedTools(tmp_path, monkeypatch, tools={"telegram": {**base, **config}})

    result = await tools.call("telegram__send", chatId=1, text="x")

    assert result.error_code == code
    assert told in result.text
    assert TOKEN not in result.text


async def test_the_token_of_the_environment_is_used_where_the_settings_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    api = BotApi()
    async with answering(api.answer) as wire:
        tools = ShippedTools(tmp_path, monkeypatch, tools={"telegram": {"baseUrl": wire.url}})
        await tools.value("telegram__send", chatId=CHAT, text="x")

    assert len(api.sent) == 1


async def test_the_services_own_address_has_to_be_public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = ShippedTools(tmp_path, monkeypatch, tools={"telegram": {"token": TOKEN}})
    tools.names.known["api.telegram.org"] = ["127.0.0.1"]

    result = await tools.call("telegram__send", chatId=CHAT, text="x")

    assert result.error_code == "E_ADDRESS"
    assert TOKEN not in result.text


# --- the token (R-SECRET-1, R-SECRET-2)


def _lying(kind: str) -> BotApi:
    """A server that repeats the token, or breaks off in ways whose messages name the URL."""
    api = BotApi(messages={7: "old"}, files={"f1": ("a/b", b"x")})
    said = {
        "echo": Said(json.dumps({"ok": False, "error_code": 400, "description": f"bad /bot{TOKEN}/"}).encode()),
        "echo in result": Said(json.dumps({"ok": True, "result": {"message_id": TOKEN, "file_path": TOKEN}}).encode()),
        "html": Said(f"<h1>502 /bot{TOKEN}/</h1>".encode(), "502 Bad Gateway", {"Content-Type": "text/html"}),
        "redirect": Said(b"", "302 Found", {"Location": f"https://other.test/bot{TOKEN}/"}),
        "bad encoding": Said(b"x", headers={"Content-Encoding": "br"}),
        "bad bytes": Said(b"\xff\xfe"),
    }
    if kind in said:
        api.answer = lambda asked: said[kind]  # pyright: ignore[reportAttributeAccessIssue]  # a double's method
    return api


@pytest.mark.parametrize("export", CALLS)
@pytest.mark.parametrize(
    "kind",
    ["fine", "echo", "echo in result", "html", "redirect", "bad encoding", "bad bytes", "nobody there", "refused"],
)
async def test_the_token_is_in_no_result_log_record_or_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], export: str, kind: str
) -> None:
    api = _lying(kind)
    # Written into the settings, and under a name that gives nothing away in the environment.
    config = {"token": TOKEN}
    if kind == "nobody there":
        config["baseUrl"] = "http://127.0.0.1:9"
    if kind == "refused":
        config["baseUrl"] = "http://metadata.test"
    async with desk(tmp_path, monkeypatch, api, config=config, log_level="debug") as telegram:
        monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
        result = await telegram.tools.call(f"telegram__{export}", **CALLS[export])
        shown = await telegram.tools.call("Config", setting="tools")
        gateway = telegram.tools.gateway
        status = gateway.status.raw()

    if kind not in ("fine", "echo in result"):
        assert result.is_error
    kept = [path.read_text("utf-8", "replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    said = capfd.readouterr()
    everything = [json.dumps(result.wire()), json.dumps(shown.wire()), json.dumps(status, default=str), *kept, *said]
    secret = TOKEN.partition(":")[2]
    assert [text for text in everything if secret in text] == []
