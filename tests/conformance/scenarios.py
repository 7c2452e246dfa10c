"""The suite's client scenarios by revision, for tests that have to know them before the suite is there, and what is
known not to pass.

Its server scenarios are run as a whole. `test_client_scenarios.py` holds this to what the suite itself lists.
"""

from __future__ import annotations

_AUTH_OF_BOTH = (
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
)
CLIENT_SCENARIOS = {
    "2025-11-25": (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        *_AUTH_OF_BOTH,
        "json-schema-2020-12-preservation",
    ),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        *_AUTH_OF_BOTH,
        "auth/resource-mismatch",
        "auth/offline-access-scope",
        "auth/offline-access-not-supported",
        "auth/authorization-server-migration",
        "auth/iss-supported",
        "auth/iss-not-advertised",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
        "auth/metadata-issuer-mismatch",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
NOT_YET: dict[str, str] = {}
"""What is known not to pass, and why."""
NOT_ACROSS_ERAS = (
    # The suite looks for the upstream's own key of a question; one that asks by a request has none.
    "input-required-result-basic-elicitation",
    # Requests come one after the other, not in one answer.
    "input-required-result-multiple-input-requests",
    # It waits 0.6 s for the first frame, and the first call of a client with other abilities starts a process.
    "server-stateless",
)
"""What an upstream that knows only the older era cannot do for newer clients, whoever stands between."""
