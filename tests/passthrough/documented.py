"""What agentgateway's documentation, release notes and pull requests say about the rows of the table. Nothing was run.

"Federation": several servers behind one endpoint. A number is that of a pull request of agentgateway/agentgateway.
"""

from __future__ import annotations

from collections.abc import Mapping

READ_ON, STATE_OF, VERSION = "2026-11-28", "2026-08-21", "1.4.1"
_SILENT = "not documented"
_ASKS = "2026-07-28 clients (release notes of 1.4); from older ones the capability is removed (`mcp/session.rs`)"
AGENTGATEWAY: Mapping[str, str] = {
    "tools": "yes; in federation with the server's name before theirs",
    "resources": "yes; in federation with other URIs (1896)",
    "templates": "in federation, too (1896)",
    "prompts": "in federation, too (issue 1850)",
    "completion": "goes to the server of its prompt or resource (1754)",
    "subscriptions": "yes (1857, in federation 2100, 2599); `subscriptions/listen` for servers over HTTP only",
    "list changes": "yes (2115)",
    "logging": _SILENT,
    "progress": _SILENT,
    "cancel": _SILENT,
    "sampling": _ASKS,
    "elicitation, form": _ASKS,
    "elicitation, URL": _ASKS,
    "roots": _ASKS,
    "`_meta`": "trace context passes (release notes of 1.4); of other keys nothing is said",
    "apps": "yes; in federation with other `ui://` URIs",
    "tasks": "since 1.4.1 for 2026-07-28 clients (2745), with ids of its own in federation",
    "skills": _SILENT,
}
"""By row."""
