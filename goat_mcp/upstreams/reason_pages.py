"""What each reason code means and what to do about it. Loaded by commands and for the docs, not by a server."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from goat_mcp.upstreams.status import ReasonCode


class ReasonPage(NamedTuple):
    meaning: str
    remedy: str


_R = ReasonCode
REASON_PAGES: dict[ReasonCode, ReasonPage] = {
    _R.CONFIG_ERROR: ReasonPage(
        "Its entry cannot be used: a key, a value, a name or a reference to a secret is wrong.",
        "Fix what the detail names in the file it names.",
    ),
    _R.DISABLED: ReasonPage("Its entry says `disabled: true`.", "Use it again with `goat-mcp enable SERVER`."),
    _R.SELF_LAUNCH: ReasonPage(
        "Its entry would start goat-mcp with the very file it stands in.",
        "Remove the entry; goat-mcp need not be behind itself.",
    ),
    _R.UNKNOWN_KEY: ReasonPage(
        "Its entry has a key that means nothing here; the rest of the entry is used.", "Correct or remove the key."
    ),
    _R.COMMAND_NOT_FOUND: ReasonPage(
        "The program it would be started with is not there.",
        "Install it, or write its absolute path: hosts with a window rarely have your shell's PATH.",
    ),
    _R.FOLDER_NOT_FOUND: ReasonPage(
        "The folder that its entry names in `cwd` is not there.", "Create it, or correct `cwd`; it is tried again."
    ),
    _R.START_FAILED: ReasonPage(
        "Its process could not be started, or ended before it answered.",
        "Read the detail and `goat-mcp logs SERVER`: what it says on stderr is there.",
    ),
    _R.START_TIMEOUT: ReasonPage(
        "It was started and did not answer in time.",
        "Run its command by hand. If it needs longer, write `start_timeout_s` into its entry.",
    ),
    _R.NO_WORKSPACE: ReasonPage(
        "Its entry says `${workspace}`, and neither the client nor the settings name a folder to work in.",
        "Name one with `--workspace`, or call from a client that tells its roots.",
    ),
    _R.SANDBOX_UNAVAILABLE: ReasonPage(
        "Its entry wants a sandbox, and none can be made here.",
        "Install bubblewrap (Linux), run goat-mcp in WSL 2 (Windows), or take `sandbox` out of the entry.",
    ),
    _R.UNREACHABLE: ReasonPage(
        "Nothing answers under its URL.", "Check the URL and that the server runs; it is tried again by itself."
    ),
    _R.AUTH_REQUIRED: ReasonPage(
        "It wants credentials, or refused those it was given.",
        "Put a valid token into `headers`, or log in with `goat-mcp auth login SERVER`.",
    ),
    _R.HANDSHAKE_FAILED: ReasonPage(
        "Something answers, but not as an MCP server that we can speak with.",
        "Check that the URL or command is the MCP server's and not a web page's or another program's.",
    ),
    _R.GATEWAY_CYCLE: ReasonPage(
        "It leads back to this very goat-mcp, directly or through others.",
        "Remove one entry of the circle.",
    ),
    _R.STARTING: ReasonPage(
        "It is starting and not ready yet. The first start by `npx`, `uvx`, `docker run` and the like downloads the "
        "server, and may take 300 s.",
        "Wait: a running goat-mcp goes on starting it, and `goat-mcp list --server SERVER` waits for it.",
    ),
    _R.CONNECTION_BROKE: ReasonPage(
        "The connection failed in a way that is a fault of goat-mcp's.", "Report it with what `goat-mcp logs` says."
    ),
    _R.LOST: ReasonPage(
        "It was connected and then ended or went silent.",
        "It is started again by itself; `goat-mcp logs SERVER` has its last words.",
    ),
    _R.LIST_FAILED: ReasonPage(
        "It is connected but did not list what it offers; what it listed before stays in use.",
        "Read the detail; it is asked again by itself.",
    ),
    _R.LIST_TRUNCATED: ReasonPage(
        "It listed more than is taken from one server; the first part is in use.",
        "Configure the server to offer less.",
    ),
    _R.NAME_COLLISION: ReasonPage(
        "Another source has the name of one of its tools or prompts, or a URI; or two names of its own differ in upper "
        "and lower case only. That one is rejected.",
        "Give one of the two sources another `naming`; two names of one server are for its maker to change.",
    ),
    _R.LISTED_TWICE: ReasonPage(
        "It lists two things of one kind under one name. The first is used and pinned, the second rejected.",
        "Tell whoever makes the server; nothing in your settings can tell the two apart.",
    ),
    _R.TOOL_DISABLED: ReasonPage(
        "Your entry for the server leaves this tool out.",
        "To use it, change `enabled_tools` or `disabled_tools` there.",
    ),
    _R.TASKS_ONLY: ReasonPage(
        "The tool runs only as a task of the protocol's tasks extension, which goat-mcp does not pass on.",
        "Use another tool, or connect to that server directly.",
    ),
    _R.BROKEN_ENTRY: ReasonPage(
        "What it lists as a tool, resource or prompt is none; that one is rejected.",
        "Report it to whoever makes the server.",
    ),
    _R.BROKEN_SCHEMA: ReasonPage(
        "A tool's schema is none that clients accept; that tool is rejected.",
        "Report it to whoever makes the server.",
    ),
    _R.HIDDEN_DATA: ReasonPage(
        "Values or names in its schema, as in `enum` or `properties`, have invisible characters. They cannot be shown "
        "without being changed; that tool, prompt or template is rejected.",
        "Find out what it wants to hide before you trust the server; report it to whoever makes it.",
    ),
    _R.SCHEMA_TOO_LARGE: ReasonPage(
        "A tool's schema is larger than is passed on; that tool is rejected.", "Report it to whoever makes the server."
    ),
    _R.SCHEMA_TOO_DEEP: ReasonPage(
        "A tool's schema is nested deeper than is passed on; that tool is rejected.",
        "Report it to whoever makes the server.",
    ),
    _R.LAUNCH_CHANGED: ReasonPage(
        "Your entry starts or calls it in another way than when it was pinned in `goat.lock`. Calls go on; with "
        "`pin: strict` it would be `quarantined`.",
        "If the entry is as you want it: `goat-mcp lock approve SERVER`.",
    ),
    _R.QUARANTINED: ReasonPage(
        "What it offers has changed since it was pinned in `goat.lock`, or waits for its first approval; calls of it "
        "are refused. Changed instructions are only reported: no client receives them.",
        "Compare with `goat-mcp lock show SERVER`, then `goat-mcp lock approve SERVER`.",
    ),
}


def remedy_for(code: ReasonCode, server: str) -> str:
    """What to do about it, with the commands as one types them for that server."""
    return REASON_PAGES[code].remedy.replace("SERVER", shlex.quote(server))


def reasons_page() -> str:
    """The page of the docs."""
    rows = [f"| `{code}` | {page.meaning} | {page.remedy} |" for code, page in REASON_PAGES.items()]
    return "\n".join(
        [
            "# What is wrong with an upstream",
            "",
            "Generated by `make generated`. These words stand as `reason_code` in `goat-mcp status --json`, in",
            "`goat://status` and in errors of calls. A part that is wrong fails alone; everything else works.",
            "",
            "| reason code | what it means | what to do |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )
