"""Slack's Web API: what an account looks like, and one call of a method.

Source: Slack's documentation of the Web API (evaluating responses).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.web.messaging.bot_api import Account, Service, WebApi

_CHANNEL = re.compile(r"[A-Za-z0-9#@][A-Za-z0-9._-]{0,99}")
_BAD_TOKEN = frozenset({"invalid_auth", "not_authed", "account_inactive", "token_expired", "token_revoked"})


def _same_channel(channel: object) -> str:
    text = str(channel).strip()
    if not _CHANNEL.fullmatch(text):
        raise ToolError(ErrorCode.INPUT, f"channel {text[:80]!r} is no channel", "Send its id, e.g. C0123456789.")
    return text


SLACK = Service(
    name="Slack",
    resource="slack",
    base_url="https://slack.com/api",
    token=re.compile(r"[!-~]{8,500}"),
    variable="SLACK_BOT_TOKEN",
    chats="channels",
    same_chat=_same_channel,
)


async def change_slack(api: WebApi, account: Account, method: str, **arguments: Any) -> Mapping[str, Any]:
    """A method that writes: its arguments as JSON. Raises `ToolError`."""
    content = json.dumps(arguments, ensure_ascii=False).encode()
    return await _call(api, account, method, content, "application/json; charset=utf-8")


async def ask_slack(api: WebApi, account: Account, method: str, **arguments: str) -> Mapping[str, Any]:
    """A method that reads: its arguments as a form, for those take no JSON. Raises `ToolError`."""
    return await _call(api, account, method, urlencode(arguments).encode(), "application/x-www-form-urlencoded")


def slack_login(account: Account) -> dict[str, str]:
    return {"authorization": f"Bearer {account.token}"}


async def _call(api: WebApi, account: Account, method: str, content: bytes, kind: str) -> Mapping[str, Any]:
    url = f"{account.base_url}/{method}"
    answer = await api.post(method, url, content, {**slack_login(account), "content-type": kind})
    if answer.get("ok") is not True:
        raise _refused(method, answer)
    return answer


def _refused(method: str, answer: Mapping[str, Any]) -> ToolError:
    """From `{ok: false, error, needed, provided, response_metadata: {messages}}`."""
    error = str(answer.get("error", "no reason given"))[:200]
    details = "; ".join(map(str, items(mapping(answer.get("response_metadata")).get("messages"))))
    more = f" ({details[:400]})" if details else ""
    code = ErrorCode.TOOL
    if error in _BAD_TOKEN:
        code, advice = ErrorCode.AUTH, "Tell the user: Slack does not take the bot's token."
    elif error == "missing_scope":
        code, advice = ErrorCode.AUTH, f"Tell the user: the bot's token needs the scope {answer.get('needed', '?')}."
    elif error in ("ratelimited", "rate_limited"):
        code, advice = ErrorCode.RATE, "Call again later."
    elif error in ("not_in_channel", "channel_not_found"):
        advice = "Check the channel's id; somebody has to invite the bot into it."
    else:
        advice = "Slack's code says what to fix."
    facts = {"slack_error": error}
    return ToolError(code, f"Slack refused {method}: {error}{more}", advice, facts=facts, name=error)
