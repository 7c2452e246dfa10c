"""What an upstream may ask of a client, and what we declare to it for that (ERA-3, R-UP-8). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from goat_mcp.catalog.schemas.visible_schema import visible_entry
from goat_mcp.core.client_side import ClientRequest, RequestNotSent
from goat_mcp.upstreams.envelope import passing_meta

ELICITATION, SAMPLING, ROOTS = "elicitation", "sampling", "roots"
_INVALID_PARAMS = -32602
KIND_OF = {"elicitation/create": ELICITATION, "sampling/createMessage": SAMPLING, "roots/list": ROOTS}


def declared_for(client: Mapping[str, Any], allow: Collection[str]) -> dict[str, Any]:
    """The capabilities an upstream is told of: what this client can do and the user lets upstreams ask for.

    Roots, too, only where the client has some, whoever answers for it: some servers trust them more than the folders
    in their own arguments.
    """
    declared = {kind: client[kind] for kind in (ELICITATION, SAMPLING) if kind in allow and kind in client}
    if ROOTS in allow and ROOTS in client:
        tells = isinstance(client[ROOTS], Mapping) and client[ROOTS].get("listChanged") is True
        declared[ROOTS] = {"listChanged": True} if tells else {}
    return declared


def required_for(request: ClientRequest) -> dict[str, Any]:
    """The capability a client needs to answer; empty for a request that no client answers."""
    kind = KIND_OF.get(request.method)
    if kind == ELICITATION:
        return {ELICITATION: {"url" if request.params.get("mode") == "url" else "form": {}}}
    if kind == SAMPLING:
        wants_tools = request.params.get("tools") or request.params.get("toolChoice")
        return {SAMPLING: {"tools": {}} if wants_tools else {}}
    return {} if kind is None else {kind: {}}


def covers(declared: Mapping[str, Any], required: Mapping[str, Any]) -> bool:
    """Whether what was declared is enough. A bare `elicitation: {}` means forms."""
    for kind, details in required.items():
        have = declared.get(kind)
        if not isinstance(have, Mapping):
            return False
        for detail in details:
            bare_form = kind == ELICITATION and detail == "form" and not have
            if detail not in have and not bare_form:
                return False
    return bool(required)


def labelled(upstream: str, request: ClientRequest) -> ClientRequest:
    """The request as the client gets it: without what belongs to the hop, a question with its author in front.

    Texts of a question are made visible. Raises `RequestNotSent` for one whose data hides something (R-UP-7b).
    """
    params = {key: value for key, value in request.params.items() if key != "_meta"}
    if meta := passing_meta(request.params.get("_meta")):
        params["_meta"] = meta
    if request.method == "elicitation/create":
        params = _visible(params)
        params["message"] = f"{upstream}: {params.get('message', '')}"
    return ClientRequest(request.method, params)


def _visible(params: Mapping[str, Any]) -> dict[str, Any]:
    try:
        shown, hidden, _ = visible_entry(params, schemas=("requestedSchema",), data=("url", "elicitationId", "mode"))
    except RecursionError:
        raise RequestNotSent(_INVALID_PARAMS, "the question is nested too deeply") from None
    if hidden:
        where = next(iter(hidden.values()))
        raise RequestNotSent(_INVALID_PARAMS, f"the {where} of the question holds invisible characters")
    return shown


def roots_result(roots: Sequence[Path]) -> dict[str, Any]:
    """The answer to `roots/list`, where we know it ourselves (ERA-6)."""
    return {"roots": [{"uri": root.as_uri(), "name": root.name or str(root)} for root in roots]}
