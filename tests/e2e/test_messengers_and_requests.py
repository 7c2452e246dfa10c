"""http-fetch, telegram and slack from a real client's side, in both protocol eras."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.e2e.goat import Launch, connected
from tests.manifests.slack.web_api import CHANNEL, FILE, SlackApi
from tests.manifests.slack.web_api import TOKEN as SLACK_TOKEN
from tests.manifests.telegram.bot_api import CHAT, TOKEN, BotApi
from tests.web.http.local_server import page, serving
from tests.web.messaging.wire_server import answering

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_sends_reads_downloads_and_fetches(launch: Launch, era: str) -> None:
    bot, slack_api = BotApi(files={"f1": ("photos/a.jpg", b"data")}), SlackApi()
    async with (
        answering(bot.answer) as telegram,
        answering(slack_api.answer) as slack,
        serving({"/": page("hi")}) as web,
    ):
        tools = {
            "telegram": {"token": "${env:TELEGRAM_BOT_TOKEN}", "baseUrl": telegram.url, "chats": [CHAT]},
            "slack": {"token": "${env:SLACK_BOT_TOKEN}", "baseUrl": f"{slack.url}/api", "channels": [CHANNEL]},
        }
        started = replace(
            launch,
            options=(
                *("--toolset", "base", "--set", f"tools={json.dumps(tools)}", "--set", "log_level=debug"),
                *("--set", f'web.allow_hosts=["127.0.0.1:{web.port}"]'),
            ),
            variables={"TELEGRAM_BOT_TOKEN": TOKEN, "SLACK_BOT_TOKEN": SLACK_TOKEN},
        )
        place = f"{slack.url}/files-pri/T1-F1/download/goat.png"
        slack_api.files["F1"] = {**FILE, "size": 4, "url_private": place, "url_private_download": place}
        slack_api.bodies["goat.png"] = b"goat"
        async with connected(started, era) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            sent = await client.call_tool("telegram__send", {"chatId": CHAT, "text": "from a client"})
            file = {"fileId": "f1", "path": "in/a.jpg", "chatId": CHAT}
            got = await client.call_tool("telegram__downloadFile", file)
            refused = await client.call_tool("telegram__send", {"chatId": 13, "text": "x"})
            posted = await client.call_tool("slack__send", {"channel": CHANNEL, "text": "from a client"})
            read = await client.call_tool("slack__read", {"channel": CHANNEL})
            fetched = await client.call_tool("http-fetch__get", {"url": web.url()})
            message = {"chatId": CHAT, "messageId": 100}
            ts = posted.structured_content["ts"][0] if posted.structured_content else ""
            others = [
                await client.call_tool(tool, arguments)
                for tool, arguments in (
                    ("telegram__edit", {**message, "text": "better"}),
                    ("telegram__react", {**message, "emoji": "👍"}),
                    ("telegram__setChatAction", {"chatId": CHAT, "action": "typing"}),
                    ("telegram__delete", message),
                    ("slack__edit", {"channel": CHANNEL, "ts": ts, "text": "better"}),
                    ("slack__react", {"channel": CHANNEL, "ts": ts, "emoji": "thumbsup"}),
                    ("slack__downloadFile", {"channel": CHANNEL, "fileId": "F1", "path": "in/b.txt"}),
                    ("slack__delete", {"channel": CHANNEL, "ts": ts}),
                    ("http-fetch__post", {"url": web.url(), "body": {"a": 1}}),
                )
            ]

    assert sent.structured_content == {"chatId": str(CHAT), "messageIds": [100]}
    assert (launch.workspace / "in" / "a.jpg").read_bytes() == b"data"
    assert (got.is_error, refused.is_error, posted.is_error) == (False, True, False)
    assert [result.content for result in others if result.is_error] == []
    assert read.structured_content is not None
    assert [message["text"] for message in read.structured_content["messages"]] == ["from a client"]
    assert fetched.structured_content is not None
    assert (fetched.structured_content["status"], fetched.structured_content["body"]) == (200, "hi")
    hints = listed["slack__read"].annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
        *(True, False, True, True),
    )
    # R-SECRET-1: nothing that this run left behind holds a token.
    kept = [path.read_bytes() for path in launch.folder.rglob("*") if path.is_file()]
    assert [data for data in kept if TOKEN.encode() in data or SLACK_TOKEN.encode() in data] == []
