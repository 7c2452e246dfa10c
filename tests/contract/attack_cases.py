"""The agreed attack cases: what happens in each, and which file of tests runs it, or why none does.

`_FINDINGS` are those that got through once, numbered as they were found.

A case is a class of attacks, not one string: its test shows the class. The table is a literal so that a reviewer
can read it; `test_cases_are_covered` holds it against the files, docs/attack-cases.md is made of it, and the end of
every test run tells the count.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AttackCase:
    """One case. `where` is a file below tests/, or the reason, in words, why there is none."""

    id: str
    area: str
    what_happens: str
    where: str

    @property
    def is_tested(self) -> bool:
        return self.where.endswith(".py")


_SHELL_RULES = "commands/shell/attack_scripts.py"
_SHELL_LIMITS = "commands/shell/test_attack_cases.py"
_SHELL = {
    "BR-01-semicolon": ("a second command after `;`", _SHELL_RULES),
    "BR-02-and": ("a second command after `&&`", _SHELL_RULES),
    "BR-04-pipe": ("a second command after `|`", _SHELL_RULES),
    "BR-06-background": ("a second command after `&`", _SHELL_RULES),
    "BR-08-crlf": ("a second command after a CR LF line end", _SHELL_RULES),
    "BR-11-nested_in_dquotes": ("a substitution inside a substitution inside quotes", _SHELL_RULES),
    "BR-12-process_sub_in": ("a command inside `<( )`", _SHELL_RULES),
    "BR-13-process_sub_out": ("a command inside `>( )`", _SHELL_RULES),
    "BR-14-heredoc_expansion": ("a substitution inside a here-document", _SHELL_RULES),
    "BR-15-herestring_shell": ("a script fed to bash as a here-string", _SHELL_RULES),
    "BR-16-heredoc_shell": ("a script fed to bash as a here-document", _SHELL_RULES),
    "BR-19-prompt_expansion_at_P": ("a variable expanded as a prompt runs what it holds", _SHELL_RULES),
    "BR-20-arith_index": ("an array index in arithmetic runs a command", _SHELL_RULES),
    "BR-23-printf_v": ("printf -v evaluates an array index", _SHELL_RULES),
    "BR-25-env_prefix_pager": ("a variable before git names a pager", _SHELL_RULES),
    "BR-26-env_prefix_ldpreload": ("a variable preloads a library", _SHELL_RULES),
    "BR-28-bash_env": ("BASH_ENV makes a harmless bash run a script", _SHELL_RULES),
    "BR-30-env_cmd": ("env runs another program", _SHELL_RULES),
    "BR-32-exec": ("exec runs another program", _SHELL_RULES),
    "BR-33-eval": ("eval puts a command together", _SHELL_RULES),
    "BR-34-source": ("source reads what a command prints", _SHELL_RULES),
    "BR-35-timeout_wrap": ("timeout runs another program", _SHELL_RULES),
    "BR-36-nohup_wrap": ("nohup runs another program", _SHELL_RULES),
    "BR-38-find_exec": ("find -exec runs a program", _SHELL_RULES),
    "BR-39-find_delete": ("find -delete removes files", _SHELL_RULES),
    "BR-40-find_fprint": ("find -fprint writes a file", _SHELL_RULES),
    "BR-42-git_alias": ("a git alias given on the command line runs a program", _SHELL_RULES),
    "BR-46-git_abbrev_opt": ("an abbreviated git option runs a program", _SHELL_RULES),
    "BR-48-rg_pre": ("rg --pre runs a program for each file", _SHELL_RULES),
    "BR-49-sort_compress": ("sort runs a program to compress with", _SHELL_RULES),
    "BR-51-sed_w": ("a sed script writes a file", _SHELL_RULES),
    "BR-52-man_html": ("man runs a browser of the caller's choice", _SHELL_RULES),
    "BR-54-tar_checkpoint": ("tar runs a program at a checkpoint", _SHELL_RULES),
    "BR-55-history_write": ("the history builtin writes a file", _SHELL_RULES),
    "BR-57-redirect_append": ("a redirection appends to a start file", _SHELL_RULES),
    "BR-60-redirect_fdvar": ("a redirection with a named descriptor writes a file", _SHELL_RULES),
    "BR-61-dev_tcp": ("a redirection opens a network connection", _SHELL_RULES),
    "BR-62-quote_split": ("quotes inside a command's name hide it", _SHELL_RULES),
    "BR-64-line_continuation": ("a line continuation inside a command's name hides it", _SHELL_RULES),
    "BR-65-ansi_c": ("an ANSI-C escape in a command's name hides it", _SHELL_RULES),
    "BR-69-brace_cmd": ("braces expand to a command", _SHELL_RULES),
    "BR-70-ifs": ("a variable stands in for the blank", _SHELL_RULES),
    "BR-71-abs_path": ("a program by its absolute path", _SHELL_RULES),
    "BR-72-function_shadow": ("a function takes the name of an allowed program", _SHELL_RULES),
    "BR-73-alias_shadow": ("an alias takes the name of an allowed program", _SHELL_RULES),
    "BR-74-hash_p": ("hash -p gives an allowed name another program", _SHELL_RULES),
    "BR-75-trap": ("trap runs a command at the end", _SHELL_RULES),
    "BR-77-time_kw": ("the time keyword runs a command", _SHELL_RULES),
    "BR-79-brace_group": ("a group in braces runs a command", _SHELL_RULES),
    "BR-80-case_kw": ("a case arm runs a command", _SHELL_RULES),
    "BR-84-fifty_plus": ("more harmless commands than a parser looks at, then one that is not", _SHELL_RULES),
    "BR-85-zero_width": ("a character without width in an allowed command", _SHELL_RULES),
    "BR-87-nul": ("a NUL character in a command", _SHELL_RULES),
    "BR-90-cd_prefix": ("cd leads out before the command", _SHELL_RULES),
    "BR-91-cd_write": ("cd into a settings folder, then a redirection", _SHELL_RULES),
    "BR-DENY-1": ("a denied program in eleven disguises, in the mode that allows all", _SHELL_RULES),
    "BR-DENY-2": ("a denied program behind more commands than are analysed", _SHELL_LIMITS),
    "BR-PARSE-1": ("twenty thousand nested substitutions", _SHELL_LIMITS),
}
_FILES = "contract/test_file_cases.py"
_FILE = {
    "FS-01": ("dots lead out of the root", _FILES),
    "FS-02": ("a folder beside the root whose name begins with the root's", _FILES),
    "FS-04": ("a linked folder leads out", _FILES),
    "FS-05": ("a write through a dangling link that points out", _FILES),
    "FS-06": ("a write with new folders below a link that leads out", _FILES),
    "FS-07": ("a folder exchanged for a link, over and over, during reads", _FILES),
    "FS-09": ("the kernel's view of our environment", _FILES),
    "FS-12": ("an endless device", _FILES),
    "FS-13": ("a FIFO nobody writes to", _FILES),
    "FS-16": ("a sparse file of 20 GiB", _FILES),
    "FS-17": ("a NUL character in a path", _FILES),
    "FS-18": ("dots with percent signs", _FILES),
    "FS-20": ("a tilde in front of a path", _FILES),
    "FS-22": ("a denied file in another spelling", "calls/permissions/test_path_rules_in_use.py"),
    "FS-23": ("a link inside the root to a denied file", "calls/permissions/test_path_rules_in_use.py"),
    "FS-24": ("a write to a hard link of a file outside", _FILES),
    "FS-28": ("a file pattern that begins with dots", _FILES),
    "FS-30": ("a search in a file outside", _FILES),
    "FS-31": ("a search that would follow a link out", _FILES),
    "FS-32": ("a file pattern shaped like an option of ripgrep", _FILES),
    "FS-34": ("a pattern that backtracks for years", "files/search/test_engine.py"),
    "FS-35": ("an edit of a file that changed since it was read", _FILES),
    "FS-36": ("fifty edits of one file at a time", _FILES),
    "FS-38": ("the server is killed while it writes 50 MB", "e2e/test_killed_writes.py"),
    "FS-41": ("the mode of files that are replaced, new or half written", _FILES),
    "FS-42": ("a file of control, bidi and tag characters and bytes that are no UTF-8", _FILES),
    "FS-46": ("a notebook that is a link out", _FILES),
    "FS-47": ("a file name of 5,000 characters", _FILES),
    "FS-48": ("a file URL as a resource", _FILES),
}
_WEB_FETCH = "tools/test_web_fetch.py"
_HTTP_CLIENT = "web/http/test_client.py"
_NET = {
    "WF-01": ("a loopback address", _WEB_FETCH),
    "WF-03": ("an address as one decimal number", _WEB_FETCH),
    "WF-04": ("an address in hexadecimal", _WEB_FETCH),
    "WF-05": ("an address in octal", _WEB_FETCH),
    "WF-07": ("the address zero", _WEB_FETCH),
    "WF-08": ("the IPv6 loopback", _WEB_FETCH),
    "WF-09": ("loopback mapped into IPv6", _WEB_FETCH),
    "WF-11": ("loopback behind a NAT64 prefix", _WEB_FETCH),
    "WF-12": ("loopback inside a 6to4 address", _WEB_FETCH),
    "WF-14": ("a cloud's metadata service by IPv6", _WEB_FETCH),
    "WF-16": ("a cloud's metadata service in shared address space", _WEB_FETCH),
    "WF-19": ("ideographic full stops between the numbers", _WEB_FETCH),
    "WF-20": ("localhost in capitals with a dot behind", _WEB_FETCH),
    "WF-21": ("a user name in front of the host", _WEB_FETCH),
    "WF-22": ("a backslash that parsers read differently", _WEB_FETCH),
    "WF-23": ("another host behind a number sign", _WEB_FETCH),
    "WF-24": ("an encoded NUL in the host", _WEB_FETCH),
    "WF-27": ("a scheme that reaches a Unix socket", _WEB_FETCH),
    "WF-32": ("a redirect to a file", _WEB_FETCH),
    "WF-33": ("redirects in a circle", _WEB_FETCH),
    "WF-34": ("a name that resolves to another address the second time", _HTTP_CLIENT),
    "WF-36": ("proxies and passwords in the environment", _HTTP_CLIENT),
    "WF-37": ("a compressed body that grows a thousandfold", _WEB_FETCH),
    "WF-38": ("a body compressed several times over", _WEB_FETCH),
    "WF-39": ("a body without an end", _WEB_FETCH),
    "WF-41": ("a million nested tags, and other pages that break parsers", _WEB_FETCH),
    "WF-44": ("a host whose name ends like an allowed one", "contract/test_rules_in_use.py"),
    "WF-45": ("an allowed host redirects to another one", _WEB_FETCH),
    "WF-47": ("broken answers and certificates nobody signed", _HTTP_CLIENT),
}
_PROC = {
    "BX-01": ("a command that outlasts its time", "tools/test_bash.py"),
    "BX-02": ("a child in a session of its own outlives a timeout", "tools/test_bash_sandbox.py"),
    "BX-05": ("output without an end", "tools/test_bash.py"),
    "BX-06": ("a line of 200 MB", "tools/test_bash.py"),
    "BX-09": ("secrets in the environments of our processes", "tools/test_bash_sandbox.py"),
    "BX-10": ("terminal escapes and invalid bytes in the output", "tools/test_bash.py"),
    "BX-11": ("a command that kills everything it can", "tools/test_bash_sandbox.py"),
    "BX-14": ("capabilities and namespaces inside the sandbox of a root user", "tools/test_bash_sandbox.py"),
    "BX-15": ("the sandbox is required and cannot be had", "tools/test_bash_sandbox.py"),
    "BX-16": ("a negative timeout", "tools/test_bash.py"),
    "BX-18": ("the working directory was removed", "tools/test_bash.py"),
    "BX-19": ("cd leaves the roots", "tools/test_bash.py"),
    "BX-21": ("an argument that asks for no sandbox", "tools/test_bash.py"),
    "BX-23": ("a path as the id of a task", "tools/test_task_output.py"),
    "BX-25": ("another principal's task", "tools/test_task_output.py"),
    "BX-26": ("two hundred background tasks", "tools/test_bash.py"),
    "BX-27": ("a background task prints 1 GB", "tools/test_task_output.py"),
    "BX-28": ("the server ends or is killed while tasks run", "tools/test_bash.py"),
    "BX-31": ("the protected hooks are moved out of the way", "tools/test_bash_sandbox.py"),
}
_FRAMES = "e2e/test_hostile_frames.py"
_PROTO = {
    "PR-01": ("a line that is no JSON", _FRAMES),
    "PR-02": ("a message of another JSON-RPC version", _FRAMES),
    "PR-04": ("a method nobody knows", _FRAMES),
    "PR-07": ("200,000 open brackets", _FRAMES),
    "PR-10": ("NaN as a number", _FRAMES),
    "PR-11": ("an integer of 5,000 digits", _FRAMES),
    "PR-12": ("two requests at a time under one id", _FRAMES),
    "PR-13": ("a batch", _FRAMES),
    "PR-15": ("a protocol version of long ago", _FRAMES),
    "PR-16": ("a protocol version to come", _FRAMES),
    "PR-20": ("unknown arguments, one of 100 KB", _FRAMES),
    "PR-22": ("100,000 cancellations of nothing", _FRAMES),
    "PR-23": ("something prints to stdout", "e2e/test_stdout.py"),
}
_CONF = {
    "PR-26": ("the model ends plan mode by itself", "contract/test_rules_in_use.py"),
    "PR-30": ("a cloned repository brings hooks and upstreams", "cli/test_trust.py"),
    "PR-31": ("a settings file that is broken, empty or unreadable", "state/trust/test_settings_file.py"),
    "PR-32": ("a secret file that others can read or replace", "state/test_file_safety.py"),
}
_HOOK = {
    "PR-28": ("a hook rewrites an allowed command into a dangerous one", "calls/hooks/test_runner.py"),
    "PR-29": ("shell syntax in what a hook is given", "calls/hooks/test_runner.py"),
}
_HTTP_CASES = "e2e/test_http_cases.py"
_HTTP = {
    "HT-01": ("no token", _HTTP_CASES),
    "HT-04": ("a page of another origin, with the token", _HTTP_CASES),
    "HT-07": ("a Host header with a path behind the port", _HTTP_CASES),
    "HT-09": ("HTTP/1.0 without a Host", _HTTP_CASES),
    "HT-10": ("a body a form could send", _HTTP_CASES),
    "HT-11": ("a preflight", _HTTP_CASES),
    "HT-12": ("the token in the address", _HTTP_CASES),
    "HT-13": ("a body that says it is 1 GB", _HTTP_CASES),
    "HT-14": ("chunks without an end", _HTTP_CASES),
    "HT-15": ("200 connections that drip their headers", _HTTP_CASES),
    "HT-18": ("another principal's session", "server/http/test_http_principals.py"),
    "HT-19": ("a session id of the client's choice", _HTTP_CASES),
    "HT-21": ("two clients with the same request ids", _HTTP_CASES),
    "HT-24": ("where it listens when nobody says", _HTTP_CASES),
    "HT-25": ("an endpoint that would start a process", _HTTP_CASES),
    "HT-26": ("500 clients that hang up during their call", _HTTP_CASES),
    "HT-28": ("pages that tell strangers what runs here", _HTTP_CASES),
    "HT-29": ("thousands of calls a second under one token", _HTTP_CASES),
}
_STDIO_UPSTREAMS = "upstreams/test_hostile_upstreams.py"
_HTTP_UPSTREAMS = "upstreams/test_hostile_http_upstreams.py"
_UP = {
    "UP-02": ("never answers the handshake", _STDIO_UPSTREAMS),
    "UP-03": ("hangs in a call", _STDIO_UPSTREAMS),
    "UP-06": ("prints a banner, log lines and garbage", _STDIO_UPSTREAMS),
    "UP-07": ("writes a line of 500 MB", _STDIO_UPSTREAMS),
    "UP-09": ("writes 1 GB to stderr", _STDIO_UPSTREAMS),
    "UP-10": ("answers with 100 MB, or 10,000 blocks", _STDIO_UPSTREAMS),
    "UP-11": ("answers with what is no result", _STDIO_UPSTREAMS),
    "UP-12": ("answers twice, or calls that are not its own", _STDIO_UPSTREAMS),
    "UP-20": ("hides orders in a description", _STDIO_UPSTREAMS),
    "UP-22": ("calls a destructive tool read-only", _STDIO_UPSTREAMS),
    "UP-24": ("refers to a schema elsewhere", "upstreams/calls/test_output_check.py"),
    "UP-25": ("a schema that refers to itself, or is 5,000 deep", _STDIO_UPSTREAMS),
    "UP-26": ("a small schema that doubles eighteen times", "upstreams/calls/test_output_check.py"),
    "UP-27": ("a pattern that backtracks for years", _STDIO_UPSTREAMS),
    "UP-29": ("asks the user, the model or the roots without leave", _STDIO_UPSTREAMS),
    "UP-30": ("tells its environment", _STDIO_UPSTREAMS),
    "UP-32": ("ignores its end and leaves a grandchild", _STDIO_UPSTREAMS),
    "UP-34": ("an event stream without an end, or with a million events", _HTTP_UPSTREAMS),
    "UP-35": ("names a login address that is a command", _HTTP_UPSTREAMS),
    "UP-36": ("refuses with huge headers, bombs, wrong types, nothing", _HTTP_UPSTREAMS),
    "UP-37": ("a result that gives orders and links to files", _STDIO_UPSTREAMS),
    "UP-38": ("a description that speaks of another server's tools", _STDIO_UPSTREAMS),
    "UP-40": ("forges what only the protocol may say", _STDIO_UPSTREAMS),
    "UP-42": ("a command with shell syntax, or from the repository", _STDIO_UPSTREAMS),
    "UP-43": ("is stopped in its tracks", _STDIO_UPSTREAMS),
    "UP-44": ("its tool in capitals, or with a blank behind", _STDIO_UPSTREAMS),
}
_AUDIT = {
    "AU-01": ("a call that holds a forged record", "calls/audit/test_log.py"),
    "AU-02": ("control characters in a path", "calls/audit/test_log.py"),
    "AU-03": ("a secret in a command", "calls/audit/test_log.py"),
    "AU-05": ("the log cannot be written", "calls/audit/test_log.py"),
    "AU-06": ("200 calls at a time", "calls/test_pipeline.py"),
    "AU-11": ("an error nobody thought of", "calls/test_pipeline.py"),
    "AU-12": ("a log that grows too large", "calls/audit/test_chain.py"),
}
_PERM = {
    "PM-01": ("two rules that contradict each other", "calls/permissions/test_rules.py"),
    "PM-04": ("a sealed state that was changed, used again, or is another's", "server/test_travelling_approval.py"),
    "PM-05": ("every tool in plan mode", "contract/test_rules_in_use.py"),
    "PM-07": ("a rule that is none", "calls/permissions/test_rules.py"),
    "PM-08": ("an allowed server adds a tool", "upstreams/pinning/test_pinned_upstreams.py"),
}
_FINDINGS = {
    "F13-01": ("a sandboxed command opens the kernel's files for writing", "commands/sandbox/test_kernel_files.py"),
    "F13-02-agents": ("B asks for the agents of A, running and recorded", "server/test_two_principals.py"),
    "F13-02-http": ("B takes the approval of a plan that A presented", "server/http/test_http_principals.py"),
    "F13-02-plans": ("30 plans, approved for one session, presented by others", "server/test_two_principals.py"),
    "F13-02-resources": ("B reads each `goat://` resource after A has filled it", "server/test_two_principals.py"),
    "F13-02-session_keys": ("names that give two principals one session key", "server/test_two_principals.py"),
    "F13-02-stores": ("a store that can be asked without saying for whom", "server/test_two_principals.py"),
    "F13-02-teams": ("B makes a team with the name of A's", "agents/teams/test_coordinator.py"),
    "F13-02-tools": ("B asks each tool for what A has left", "server/test_two_principals.py"),
    "F13-03-cut-listing": ("more configuration than is read", "tools/test_git_runs_nothing.py"),
    "F13-03-failed-listing": ("configuration that git cannot list, or not in time", "tools/test_git_runs_nothing.py"),
    "F13-03-gitmodules": ("a .gitmodules that only the index or HEAD has", "tools/test_git_runs_nothing.py"),
    "F13-03-hostile-keys": ("a program behind each git key whose value is one", "tools/test_git_runs_nothing.py"),
    "F13-04-parsed-arguments": ("options hidden from a safety check", "commands/shell/test_against_real_programs.py"),
    "F13-04-real-programs": (
        "made-up commands of wget, sed, tar and others",
        "commands/shell/test_against_real_programs.py",
    ),
    "F13-05-env": (
        "a denied program or file in a variable that a call sets",
        "calls/permissions/test_env_of_commands.py",
    ),
    "F13-06-planted-git-state": (
        "a sandboxed command plants what git runs later",
        "commands/sandbox/test_git_state.py",
    ),
    "F13-07-bare-repository": ("a bare repository in four writes", "calls/permissions/test_protected_paths_in_use.py"),
    "F13-07-commands": ("a command writes what others obey", "calls/permissions/test_protected_paths_in_use.py"),
    "F13-07-names-others-obey": ("a file that another program obeys is written", "files/workspace/test_protected.py"),
    "F13-08-changes": (
        "500 ways to change a denied file by a command",
        "calls/permissions/test_file_rules_against_real_bash.py",
    ),
    "F13-08-doubt": (
        "a command whose files cannot be followed, beside an ask rule",
        "calls/permissions/test_file_rules_against_real_bash.py",
    ),
    "F13-08-sends": (
        "a denied file as an argument of programs that send it",
        "calls/permissions/test_file_rules_against_real_bash.py",
    ),
    "F13-08-shows": (
        "700 ways to show a denied file by a command",
        "calls/permissions/test_file_rules_against_real_bash.py",
    ),
    "F13-09-connections": (
        "one profile keeps every HTTP connection, idle or as a stream",
        "server/http/test_http_shutting_out.py",
    ),
    "F13-09-idle-connections": (
        "one profile keeps more idle HTTP connections than there may be",
        "server/http/test_http_shutting_out.py",
    ),
    "F13-09-sessions": ("99 sessions of one profile over HTTP", "server/http/test_http_shutting_out.py"),
    "F13-09-silent-connections": (
        "520 HTTP connections that say nothing, over and over",
        "server/http/test_http_shutting_out.py",
    ),
    "F13-09-wrong-tokens": ("many wrong tokens on one connection", "server/http/test_http_shutting_out.py"),
    "F13-10-disguises": ("a denied program behind wrappers, options and variables", "commands/shell/test_mentions.py"),
    "F13-10-everyday": ("commands that name what is denied in mere text", "commands/shell/test_mentions.py"),
    "F13-11-catch_all": ("templates that leave the scheme open", "catalog/test_resource_catalog.py"),
    "F13-11-order": ("upstreams that list in whatever order", "catalog/test_resource_catalog.py"),
    "F13-11-takeover": (
        "a later upstream lists a URI of another, or a catch-all template",
        "server/test_resource_requests.py",
    ),
    "F13-12-first-sights": ("gives orders at first sight", "upstreams/pinning/test_suspicious_pins.py"),
    "F13-12-hidden-in-data": ("hides text in values and names", "upstreams/listing/test_listed_entries.py"),
    "F13-12-hidden-in-items": ("hides text in prompts and templates", "upstreams/listing/test_entry_validation.py"),
    "F13-12-hidden-in-messages": ("hides text in what it says", "upstreams/transports/test_visible_messages.py"),
    "F13-12-hidden-in-schemas": ("hides text in schemas and icons", "upstreams/listing/test_listed_entries.py"),
    "F13-12-poison": ("forty ways to give orders", "upstreams/listing/test_suspicious_texts.py"),
    "F13-20-process-limit": ("a fork bomb as root, with and without a sandbox", "processes/test_pids_cgroup.py"),
    "F13-21-dumpable": ("an unsandboxed command reads the server's variables in /proc", "e2e/test_undumpable.py"),
    "F13-22-mixed-scripts": ("a script that reads a repository and commits", "tools/test_git_runs_nothing.py"),
    "F13-23-blocked": ("a blocked command, by whatever tool and name", "manifests/test_commands_by_other_names.py"),
    "F13-24-framing": (
        "HTTP messages with two lengths, or that can be read in two ways",
        "server/http/test_framing.py",
    ),
    "F13-25-refused-body": ("an endless body that is refused, with and without a token", "server/http/test_framing.py"),
    "F13-26-malformed-chunk": ("a malformed chunk from a client with a token", "server/http/test_framing.py"),
    "F13-27-cursor": ("cursors that are not ours, for every list", "server/handlers/test_resource_lists.py"),
    "F13-28-case": ("tools and prompts whose names differ in case only", "upstreams/listing/test_entry_validation.py"),
    "F13-29-event-flood": ("sends 100,000 notices as events", "upstreams/transports/test_unflooded_events.py"),
    "F13-29-notice-flood": ("writes 100,000 notices during a call", "upstreams/test_floods.py"),
}
_LOAD = {"LD-01": ("50 clients for a minute beside upstreams that hang and crash", "e2e/test_soak.py")}

_AREAS = {
    "SHELL": _SHELL,
    "PROC": _PROC,
    "FILE": _FILE,
    "NET": _NET,
    "PROTO": _PROTO,
    "CONF": _CONF,
    "HOOK": _HOOK,
    "HTTP": _HTTP,
    "UP": _UP,
    "AUDIT": _AUDIT,
    "PERM": _PERM,
    "LOAD": _LOAD,
    "FOUND": _FINDINGS,
}
ATTACK_CASES = tuple(
    AttackCase(id, area, what_happens, where)
    for area, cases in _AREAS.items()
    for id, (what_happens, where) in cases.items()
)


def count_line(cases: tuple[AttackCase, ...] = ATTACK_CASES) -> str:
    """How many of the cases run, with what they are counted against."""
    tested = sum(case.is_tested for case in cases)
    return f"attack cases: {tested} of {len(cases)} run as tests, {len(cases) - tested} listed with a reason"
