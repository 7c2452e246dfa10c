"""The accounts of `approval.notify`, and requests of theirs."""

from __future__ import annotations

from pydantic import SecretStr

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.target import parse_target
from goat_mcp.web.messaging.bot_api import Account, Service, WebApi


def notify_account(
    service: Service, token: SecretStr, base_url: str, references: SecretReferences, field: str = "token"
) -> Account:
    """Its token is read now. Raises `ToolError`: NOT_CONFIGURED, CONFIG."""
    try:
        found = references.secret(token.get_secret_value())
    except Unresolved as unresolved:
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"{field}: {unresolved}", "Set that variable or secret.") from None
    if not service.token.fullmatch(found):
        raise ToolError(ErrorCode.CONFIG, f"{field} holds no token of {service.name}", "Copy it from there again.")
    return Account(service, found, parse_target(base_url or service.base_url), bool(base_url), None)


def web_api(http: HttpClient, account: Account) -> WebApi:
    """For one request, or a few after one another."""
    return WebApi(http, account, ToolContext(call_id="approval.notify", session_key="approval.notify"))
