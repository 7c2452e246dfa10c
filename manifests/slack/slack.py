"""slack: six methods of Slack's Web API, as a bot that the user configured.

Source: tools.md, section 3; Slack's documentation of the Web API (evaluating responses, rate limits, pagination).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping, mappings
from goat_mcp.core.result import ToolResult
from goat_mcp.manifests.bot_handlers import Bot, bot_handlers
from goat_mcp.manifests.handler_api import Handler, Host
from goat_mcp.web.http.domains import host_is_in_domain
from goat_mcp.web.http.target import parse_target
from goat_mcp.web.messaging.bot_api import MAX_BYTES, Account, NewFile, too_large
from goat_mcp.web.messaging.slack_api import SLACK, ask_slack, change_slack, slack_login
from goat_mcp.web.messaging.text_parts import mrkdwn, send_each, split_text

MAX_UNITS = 4000
"""What Slack asks texts to be kept to; it cuts longer ones."""
_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
_SHOWN_OF_A_MESSAGE = ("ts", "thread_ts", "user", "bot_id", "username", "subtype", "text", "reply_count")
_SHOWN_OF_A_FILE = ("id", "name", "mimetype", "size")


def build_handlers(host: Host) -> Mapping[str, Handler]:
    """A handler for each export."""
    methods = {
        "send": send,
        "read": read,
        "edit": edit,
        "delete": delete,
        "react": react,
        "downloadFile": download_file,
    }
    return bot_handlers(host, SlackBot, methods)


class SlackBot(Bot):
    service = SLACK

    def chat(self, input: Mapping[str, Any]) -> str:
        """The channel. Raises `ToolError` also where a message is named by what is no `ts`."""
        channel = self.account.check_chat(input["channel"])
        for name in ("ts", "threadTs"):
            if name in input and not _TS.fullmatch(input[name]):
                problem = f"{name} {input[name][:40]!r} is no `ts` of a message"
                raise ToolError(ErrorCode.INPUT, problem, "Send it as slack__read gives it.")
        return channel

    @property
    def login(self) -> dict[str, str]:
        return slack_login(self.account)

    async def change(self, method: str, **arguments: str) -> Mapping[str, Any]:
        """A method that writes. Raises `ToolError`."""
        return await change_slack(self.api, self.account, method, **arguments)

    async def ask(self, method: str, **arguments: str) -> Mapping[str, Any]:
        """A method that reads. Raises `ToolError`."""
        return await ask_slack(self.api, self.account, method, **arguments)


async def send(bot: SlackBot, channel: str, input: Mapping[str, Any]) -> Any:
    thread = {"thread_ts": input["threadTs"]} if "threadTs" in input else {}

    async def send_one(part: str, is_first: bool) -> str:
        return str((await bot.change("chat.postMessage", channel=channel, text=part, **thread)).get("ts", ""))

    return {"channel": channel, "ts": await send_each(split_text(input["text"], MAX_UNITS, mrkdwn), send_one, "ts")}


async def read(bot: SlackBot, channel: str, input: Mapping[str, Any]) -> Any:
    page = {"limit": str(input.get("limit", 20)), **({"cursor": input["cursor"]} if input.get("cursor") else {})}
    if "ts" in input:
        # A thread's messages are not in its channel's history.
        page |= {"oldest": input["ts"], "latest": input["ts"], "inclusive": "true", "limit": "1"}
    if "threadTs" in input:
        answer = await bot.ask("conversations.replies", channel=channel, ts=input["threadTs"], **page)
    else:
        answer = await bot.ask("conversations.history", channel=channel, **page)
    following = mapping(answer.get("response_metadata")).get("next_cursor")
    messages = [_shown(message) for message in mappings(answer.get("messages"))]
    return {"messages": messages, "nextCursor": following or None}


async def edit(bot: SlackBot, channel: str, input: Mapping[str, Any]) -> Any:
    await bot.change("chat.update", channel=channel, ts=input["ts"], text=input["text"])
    return {"channel": channel, "ts": input["ts"]}


async def delete(bot: SlackBot, channel: str, input: Mapping[str, Any]) -> Any:
    await bot.change("chat.delete", channel=channel, ts=input["ts"])
    return {"channel": channel, "ts": input["ts"]}


async def react(bot: SlackBot, channel: str, input: Mapping[str, Any]) -> Any:
    await bot.change("reactions.add", channel=channel, timestamp=input["ts"], name=input["emoji"].strip().strip(":"))
    return {"channel": channel, "ts": input["ts"]}


async def download_file(bot: SlackBot, channel: str, input: Mapping[str, Any]) -> ToolResult:
    new = NewFile(bot.host.workspace, bot.host.tool("Write").changes, input["path"])
    await new.check()
    file = mapping((await bot.ask("files.info", file=input["fileId"])).get("file"))
    shared_in = {str(one) for key in ("channels", "groups", "ims") for one in items(file.get(key))}
    bot.account.check_any_chat(frozenset(shared_in), f"file {input['fileId']}, which is in none of them,")
    size = file.get("size")
    if isinstance(size, int) and size > MAX_BYTES:
        raise too_large("Slack", "the file", size)
    url = file.get("url_private_download") or file.get("url_private") or ""
    answer = await bot.api.get("file download", _place(bot.account, url), bot.login, MAX_BYTES)
    kind = str(file.get("mimetype") or "")
    if answer.status != 200 or (answer.headers.get("content-type", "").startswith("text/html") and "html" not in kind):
        # Who may not read it is led to a page for logging in.
        raise ToolError(
            ErrorCode.AUTH,
            f"Slack gave a page in place of the file (HTTP {answer.status})",
            "Tell the user: the bot's token needs the scope files:read, and the bot has to be in the channel.",
        )
    if answer.truncated:
        raise too_large("Slack", "the file", None)
    facts = {"fileId": input["fileId"], "name": file.get("name"), "mimetype": file.get("mimetype")}
    return await new.save(answer.body, bot.ctx.call, "slack__downloadFile", facts)


def _place(account: Account, url: object) -> str:
    """A file's URL, if it is one of Slack's (or of the configured server): the token goes there."""
    text = str(url)
    target = parse_target(text) if text else None
    is_slacks = target is not None and target.scheme == "https" and host_is_in_domain(target.host, "slack.com")
    if target is None or not (target.origin == account.base.origin if account.is_elsewhere else is_slacks):
        raise ToolError(
            ErrorCode.ADDRESS,
            f"the file is not kept by Slack but at {target.origin if target is not None else 'no address'}",
            "Have the user download it: the bot's token goes to Slack only.",
        )
    return text


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    """What of a message somebody who reads it needs; blocks and attachments repeat its text mostly."""
    shown = {key: message[key] for key in _SHOWN_OF_A_MESSAGE if key in message}
    if files := mappings(message.get("files")):
        shown["files"] = [{key: file[key] for key in _SHOWN_OF_A_FILE if key in file} for file in files]
    if reactions := mappings(message.get("reactions")):
        shown["reactions"] = {str(one.get("name")): one.get("count") for one in reactions}
    return shown
