"""The help behind an error: a page `goat://errors/CODE` for each code (design D14). A new code needs its page here."""

from __future__ import annotations

from collections.abc import Mapping

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.resources import Reading, last_part, template

ERRORS_URI = "goat://errors"
_MIME_TYPE = "text/markdown"

PAGES: Mapping[ErrorCode, tuple[str, str]] = {
    ErrorCode.INPUT: (
        "The arguments do not fit the tool's schema. The message names each field that is wrong, what came and what is "
        "wanted. Nothing was done.",
        "Correct the fields that are named and call again. The schema is in the list of tools.",
    ),
    ErrorCode.TOOL_NOT_FOUND: (
        "There is no tool of this name, nor an alias that means one.",
        "Use one of the names in the message, or list the tools: those of other MCP servers come and go.",
    ),
    ErrorCode.TOOL_NOT_IN_CATALOG: (
        "The tool exists, but not for this client or this agent: a toolset that is off, `catalog.allow` or "
        "`catalog.deny`, a gate, or the limits of an agent.",
        "Use another tool. The user can enable it with --toolset, `catalog.allow` or the variable the message names.",
    ),
    ErrorCode.PERMISSION: (
        "The call was not allowed: a rule denies it, the user refused it, or it needs an approval and nobody could be "
        "asked. Nothing was done.",
        "Do not try the same by another tool. Ask the user; they can allow it with a rule in `permissions.allow`.",
    ),
    ErrorCode.APPROVAL_PENDING: (
        "The call waits in the user's queue of approvals: the client could not show a form, or nobody answered it in "
        "time. Nothing was done.",
        "Tell the user the id that the message names. They decide with `goat-mcp approve ID`, `goat-mcp deny ID`, or "
        "on the page of `goat-mcp ui`. Then make the same call again: it runs once. Do not try another way.",
    ),
    ErrorCode.HOOK_DENIED: (
        "A hook, a program the user runs before each call, refused it. The message is the hook's reason.",
        "Follow the reason and choose another way.",
    ),
    ErrorCode.PLAN_MODE: (
        "The session only plans. What could change something does not run until the user has approved a plan.",
        "Go on with tools that read, then propose the plan with ExitPlanMode. Only the user ends plan mode.",
    ),
    ErrorCode.CANCELLED: (
        "The call was ended before it was done: by its client, by the end of the server, or because an earlier call of "
        "the same turn was refused. What it had done until then stays done.",
        "Look at what is there before you call again.",
    ),
    ErrorCode.TIMEOUT: (
        "The work took longer than it may, and was ended with all it had started. Output until then is in the answer.",
        "Give a longer `timeout`, do less in one call, or run the command in the background.",
    ),
    ErrorCode.BUSY: (
        "What the call needs is in use: a file another call writes, the shell, or all places for running calls or "
        "for background tasks.",
        "Call again a little later, or stop a task that is no longer needed.",
    ),
    ErrorCode.INTERNAL: (
        "Something went wrong inside goat-mcp that nobody foresaw. The log on the server's stderr has the details "
        "under the call id in the message.",
        "Try another way. The user can report it with the lines of the log.",
    ),
    ErrorCode.AUDIT: (
        "The call would change something or reach out, and the record of calls could not be written. Nothing was done.",
        "Tell the user: the disk may be full, or the file of `audit.path` not be ours. Tools that only read still "
        "work. `audit.on_failure: warn` lets calls run unrecorded.",
    ),
    ErrorCode.TOOL: (
        "The tool itself reported that it failed, or its function raised an exception. The text is its own.",
        "Read its message; the documentation of that tool or server explains it.",
    ),
    ErrorCode.NO_WORKSPACE: (
        "No directory was named for file tools, and the current one is no workspace (the file system's root or a home "
        "directory).",
        "The user names one with --workspace DIR, or starts goat-mcp in the project's directory.",
    ),
    ErrorCode.PATH_RELATIVE: (
        "File tools want absolute paths, so that no path means two files.",
        "Use the absolute path that the message suggests, or write @ for the workspace's directory: @src/main.py.",
    ),
    ErrorCode.PATH_OUTSIDE: (
        "The path leads out of the workspace, directly, by `..` or by a link.",
        "Use a path below the directories the message names. The user can add one with --workspace.",
    ),
    ErrorCode.NOT_FOUND: (
        "There is nothing at this path.",
        "Take one of the paths in the message, or look for the file with Glob.",
    ),
    ErrorCode.DIRECTORY: ("The path is a directory, and a file is wanted.", "List what is in it with Glob."),
    ErrorCode.NOT_A_DIRECTORY: (
        "The path, or a part of it, is a file, and a directory is wanted.",
        "Use the directory it lies in.",
    ),
    ErrorCode.NOT_REGULAR: (
        "The path is a device, a pipe or a socket. Reading one might never end.",
        "Use a regular file; a command in Bash can read the others.",
    ),
    ErrorCode.TOO_LARGE: (
        "The file, the picture or the output is larger than can be worked with.",
        "Take a part of it: `offset` and `limit`, a narrower search, or a command that filters it.",
    ),
    ErrorCode.HARD_LINKED: (
        "The file has several names (hard links). Replacing it would leave the other names with the old content.",
        "Ask the user; a command can write it in place.",
    ),
    ErrorCode.IO: (
        "The system refused to read or write: a full disk, missing rights, a damaged file. The message has its reason.",
        "Solve what it names, or tell the user; then call again.",
    ),
    ErrorCode.BINARY: (
        "The file is not text, and of no kind that can be shown.",
        "Look at it with a command made for its kind, e.g. `file` or `xxd` in Bash.",
    ),
    ErrorCode.ENCODING: (
        "The text cannot be written in the file's encoding, or the file's encoding is not known.",
        "Write only characters it can hold. The user can name the encoding with `files.legacy_encoding`.",
    ),
    ErrorCode.NOT_READ: (
        "The file would be changed without having been read. Nothing was done.",
        "Read it first, then change it. The user can relax this with `files.read_before_write`.",
    ),
    ErrorCode.STALE: (
        "The file has changed since you read it, and the change cannot be placed safely. Nothing was done.",
        "Read it again and repeat the change.",
    ),
    ErrorCode.NO_CHANGE: (
        "The old and the new text are the same, so there is nothing to change.",
        "Send the text that should be there, or go on.",
    ),
    ErrorCode.NO_MATCH: (
        "The text to replace is not in the file. The answer shows the nearest place, tabs and blanks are visible.",
        "Copy the text from the file as Read shows it, without line numbers, and call again.",
    ),
    ErrorCode.AMBIGUOUS: (
        "The text to replace is in the file more than once. Nothing was done.",
        "Add lines around it until it is unique, or send `replace_all`.",
    ),
    ErrorCode.PLACEHOLDER: (
        'The text holds a line that stands for code left out ("... rest of the code ..."), which would replace it.',
        "Write the code in full, or change only a part with Edit.",
    ),
    ErrorCode.PATTERN: (
        "The pattern cannot be understood. The message has the position or the engine's own words.",
        "Escape characters that are meant literally, e.g. `\\(` in Grep, `\\[` in Glob.",
    ),
    ErrorCode.NOTEBOOK: (
        "The file is no notebook that can be read: its JSON is broken or its parts are missing. It was left as it is.",
        "Fix it with Edit as plain text, or make a new one.",
    ),
    ErrorCode.CELL: (
        "The notebook has no cell of this id or number.",
        "Take one of the ids in the message, or read the notebook again: `cell-N` counts from 0.",
    ),
    ErrorCode.EXIT: (
        "The command ended with an exit code that is not 0. Its output is in the answer.",
        "Read the output; what went wrong is usually in its last lines.",
    ),
    ErrorCode.BLOCKED: (
        "The command holds something that must not run here. The message names it. Nothing of it was run.",
        "Leave that part out, or ask the user to run it.",
    ),
    ErrorCode.SANDBOX: (
        "The settings want commands to run in a sandbox, and there is none that works here, or it could not be set up "
        "for this command. Nothing was run.",
        "Do not look for a way around it. Tell the user the reason in the message: they can install bubblewrap "
        "(Linux), run goat-mcp in WSL 2 (Windows), or change the setting `sandbox`.",
    ),
    ErrorCode.TASK_UNKNOWN: (
        "There is no background task of this id among yours: it never was, it ended over an hour ago, or it belongs to "
        "somebody else.",
        "Take an id from the message, or read `goat://tasks`.",
    ),
    ErrorCode.UPSTREAM: (
        "Another MCP server that goat-mcp stands in front of refused the call or answered what cannot be used.",
        "Read its message. The user can look at that server's own log.",
    ),
    ErrorCode.CAPABILITY: (
        "The other server wants something of the client that this client cannot do: show a form, open a page, ask its "
        "model. The call was not finished.",
        "Tell the user what is missing; another MCP client can make the call, or another tool may do.",
    ),
    ErrorCode.UPSTREAM_DOWN: (
        "The MCP server the tool belongs to does not run or cannot be reached. Nothing was done.",
        "Tell the user. It is started again by itself; the call may work later.",
    ),
    ErrorCode.AUTH: (
        "The MCP server the tool belongs to wants a login, or refused the one it was given. Nothing was done. Where "
        "the user was shown a page to log in, `login` in the error says what became of it: declined, cancelled, "
        "unfinished, failed or not_shown.",
        "Tell the user: they log in with the command in the suggestion, then the same call works. If they were "
        "shown a page and have not finished, they may finish there.",
    ),
    ErrorCode.QUARANTINED: (
        "What another MCP server says of this tool has changed since it was pinned in goat.lock, or nobody has "
        "approved it yet. It may be an update; it may be a server that shows one thing to be approved and does "
        "another. The catalog still shows what was pinned. Nothing was done.",
        "Do not try the same by another tool. Tell the user: goat-mcp lock show NAME compares the old with the new "
        "definition, and goat-mcp lock approve NAME pins the new one. A running server sees that by itself.",
    ),
    ErrorCode.OUTCOME_UNKNOWN: (
        "The connection to the tool's server was lost after the call was sent. Whether it was done, nobody knows.",
        "Look at what is there before you call again: it may have been done.",
    ),
    ErrorCode.ADDRESS: (
        "The address is not one to be fetched: a private network, this machine, a scheme other than http and https, "
        "plain http where that is not allowed, or a URL with a password.",
        "Use a public address. The user can allow a host with `web.allow_hosts`.",
    ),
    ErrorCode.NETWORK: (
        "The other side could not be reached, or did not answer as it should. The message has the reason.",
        "Check the address and try again later.",
    ),
    ErrorCode.RATE: (
        "Too many requests in a short time, as the other side or goat-mcp itself counts them.",
        "Wait as long as the message says, then go on more slowly.",
    ),
    ErrorCode.MODEL: (
        "The language model that should answer could not: it refused, was not reached, or its answer cannot be used.",
        "Try again; if it stays so, the user checks the settings the message names.",
    ),
    ErrorCode.NOT_CONFIGURED: (
        "The tool needs something that is not set up: a provider, a key, a program.",
        "Tell the user the steps in the message. Until then use another tool.",
    ),
    ErrorCode.DELIVERY: (
        "The message could not be delivered: there is no team, nobody of that name, or that member has ended.",
        "Write to one of the members the message names, start one with TeamCreate, or resume an ended one with Agent.",
    ),
    ErrorCode.CONFIG: (
        "The settings cannot be used. The message names the file or flag, the key and what is wanted.",
        "The user fixes them and starts goat-mcp again.",
    ),
    ErrorCode.SETTING: (
        "There is no setting of this name.",
        "Take one of the names in the message. Settings are written with dots: `output.max_chars`.",
    ),
}


class ErrorPages:
    """`goat://errors`, all codes on a line each, and `goat://errors/CODE`."""

    entries = (
        {
            "uri": ERRORS_URI,
            "name": "errors",
            "description": "The codes that errors carry, with a page for each",
            "mimeType": _MIME_TYPE,
        },
    )
    templates = (template(f"{ERRORS_URI}/{{code}}", "error", "What an error code means and what to do", _MIME_TYPE),)

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == ERRORS_URI:
            lines = [f"- [{code}]({code.help_url}): {PAGES[code][0].split('. ')[0]}" for code in PAGES]
            return Reading("\n".join(["# Error codes", "", *lines, ""]), _MIME_TYPE)
        code = last_part(uri, f"{ERRORS_URI}/")
        page = PAGES.get(ErrorCode(code)) if code in set(ErrorCode) else None
        if code is None or page is None:
            return None
        meaning, advice = page
        return Reading(f"# {code}\n\n{meaning}\n\n## What to do\n\n{advice}\n", _MIME_TYPE)
