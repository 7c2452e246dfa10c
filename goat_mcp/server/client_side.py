"""The client behind a call, as an upstream reaches it: its requests become a dialogue, its notices notifications."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from goat_mcp.core.client_side import ClientRefused, ClientRequest, NotificationTarget, RequestNotSent
from goat_mcp.server.client_channel import AskedEnough, ClientChannel, Question
from goat_mcp.server.client_roots import ClientRoots, local_folders

_QUESTIONS: TypeAdapter[Question] = TypeAdapter(Question)


class ChannelClient:
    """A `ClientSide` over one call's dialogue. `log_level`: what the client set, or wants for this call."""

    def __init__(
        self,
        dialogue: ClientChannel,
        log_level: str,
        given: Mapping[str, Any],
        known_roots: ClientRoots,
        session_key: str,
        notices: NotificationTarget | None = None,
    ) -> None:
        self.notices = notices
        self._dialogue = dialogue
        self._known_roots = known_roots
        self._session_key = session_key
        self.log_level = log_level
        self.given = given
        self._told: types.ClientCapabilities | None = None
        self._declared: Mapping[str, Any] | None = None
        self.is_over = False
        """The call has its result: what is told now goes beside it, where the era has a way for that."""

    @property
    def protocol_version(self) -> str:
        return self._dialogue.protocol_version

    @property
    def is_stateless(self) -> bool:
        return self._dialogue.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> Mapping[str, Any]:
        # Asked for several times in a call, and worked out each time by the dialogue, since another request of the
        # client's may go on with the call: whose capabilities are the same object as long as it is the same request.
        told = self._dialogue.capabilities
        if self._declared is None or self._told is not told:
            self._told, self._declared = told, self._dialogue.declared
        return self._declared

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        try:
            questions = {key: self._question(request) for key, request in requests.items()}
        except ValidationError as invalid:
            first = invalid.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ClientRefused(types.INVALID_PARAMS, f"no valid request: {where}: {first['msg']}") from None
        try:
            return await self._dialogue.ask_all(questions)
        except AskedEnough as enough:
            raise RequestNotSent(enough.error.code, enough.error.message) from None
        except MCPError as refused:
            raise ClientRefused(refused.error.code, refused.error.message, refused.error.data) from None

    def _question(self, request: ClientRequest) -> Question:
        params = dict(request.params)
        if params.get("mode") == "url" and not self.is_stateless:
            # Revisions before 2026-07-28 want one; since then upstreams give none.
            params.setdefault("elicitationId", f"goat-{secrets.token_hex(8)}")
        return _QUESTIONS.validate_python({"method": request.method, "params": params or None})

    @property
    def known_roots(self) -> Sequence[Path] | None:
        return self._known_roots.of(self._session_key)

    async def roots(self) -> Sequence[Path]:
        known = self.known_roots
        if known is None:
            try:
                answers = await self.ask({"roots": ClientRequest("roots/list", {})})
                known = local_folders(answers["roots"])
            except ClientRefused:
                known = ()
            if not self.is_stateless:  # that era has no sessions: each request may come from another folder
                self._known_roots.keep(self._session_key, known)
        return known

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self.is_over:
            if self.notices is not None:
                await self.notices.notify(method, params)
            return
        try:
            await self._dialogue.notify(method, params)
        except (MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
