"""One entry of `mcpServers` as a user wrote it, to the upstream it configures: what every key may hold.

Where entries come from, and which of two of one name counts, is the business of `upstream_files`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions
from goat_mcp.core import platform
from goat_mcp.core.names import InvalidName, clean_server_name
from goat_mcp.core.redaction import is_likely_secret
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.substitution import Unresolved, secret_reference_in, substitute
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.core.yaml_words import meant_word
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.entry import (
    DEFAULT_ALLOW,
    DEFAULT_CONCURRENCY,
    DEFAULT_TIMEOUT_S,
    SERVER_REQUESTS,
    WORKSPACE,
    HttpEndpoint,
    StdioLaunch,
    ToolDocs,
    UpstreamConfig,
)
from goat_mcp.upstreams.config.goat_launch import launches_us
from goat_mcp.upstreams.status import ReasonCode

if TYPE_CHECKING:  # few entries have any
    from goat_mcp.upstreams.config.oauth_keys import OAuthOptions

SANDBOX_KEYS = frozenset({"sandbox", "sandbox_network", "sandbox_read", "sandbox_write", "sandbox_domains"})
_STDIO_KEYS = frozenset({"command", "args", "env", "cwd"})
_HTTP_KEYS = frozenset({"url", "headers", "oauth"})
_OUR_KEYS = frozenset(
    {
        "naming",
        "timeout_s",
        "start_timeout_s",
        "idle_timeout_s",
        "concurrency",
        "start",
        "trust_annotations",
        "sanitize",
        "disabled",
        "type",
        "input_check",
        "output_check",
        "enabled_tools",
        "disabled_tools",
        "docs",
        "pin",
        "allow",
        "scope",
        "share",
    }
)
_SECRET_KEYS = frozenset({"env", "headers"})
_OAUTH_SECRETS = frozenset({"client_secret", "private_key", "assertion"})
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "origin", "referer", "user-agent"})
KNOWN_KEYS = _STDIO_KEYS | SANDBOX_KEYS | _HTTP_KEYS | _OUR_KEYS | {"transport"}
_EXAMPLE_KEYS = frozenset({"description", "input", "output"})
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")
_HTTP_TYPES = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})


class BrokenEntry(ValueError):
    """One entry cannot be used; the text names key, value and what to write."""


def upstream_of(
    name: str, entry: Any, file: Path, references: SecretReferences, note: Callable[[ReasonCode, str], None]
) -> UpstreamConfig | None:
    """The upstream that an entry configures; None for one that is left out on purpose, which `note` hears why.

    `note` also hears of what is of no effect in it. Raises `BrokenEntry`.
    """
    if not isinstance(entry, dict):
        raise BrokenEntry(
            f"{_shown(entry)} is not an object; write {{'command': ..., 'args': [...]}} or {{'url': ...}}"
        )
    given = cast("dict[str, Any]", entry)
    try:
        server = clean_server_name(name)
    except InvalidName as problem:
        raise BrokenEntry(f"the name {problem}; rename the entry") from None
    if _flag(given, "disabled"):
        note(ReasonCode.DISABLED, "disabled: true in its entry")
        return None
    for key in sorted(set(given) - KNOWN_KEYS):
        if not {"command", "url"} & set(given) and (near := did_you_mean(key, ("command", "url"))):
            raise BrokenEntry(f"{key}: unknown key; {near}")
        near = did_you_mean(key, KNOWN_KEYS)
        note(ReasonCode.UNKNOWN_KEY, f"{key}: unknown key, ignored" + (f"; {near}" if near else ""))
    for key, value in given.items():
        # An argument is in the list of processes, for all users of the machine; a URL is in status and in errors.
        if key not in _SECRET_KEYS and (reference := secret_reference_in(_without_secret_keys(key, value))):
            raise BrokenEntry(f"{key}: {reference} is a secret and would be seen there; {_elsewhere(given)}")
    try:
        given = _resolved(given, references)
    except Unresolved as missing:
        raise BrokenEntry(str(missing)) from None
    target = _target(given)
    references.hide(*_secrets_of(target))
    if isinstance(target, StdioLaunch) and launches_us(target.command, target.args, target.env, target.cwd, file):
        note(ReasonCode.SELF_LAUNCH, f"would start goat-mcp again with the same file {file}; skipped")
        return None
    start = given.get("start", "lazy")
    if start not in ("lazy", "eager"):
        raise BrokenEntry(f"start: {_shown(start)} is not a way to start; write lazy or eager")
    input_check = meant_word(given.get("input_check", "strict"), ("off",))
    if input_check not in ("off", "strict"):
        raise BrokenEntry(f"input_check: {_shown(input_check)} is not a mode; write off or strict")
    output_check = meant_word(given.get("output_check", "warn"), ("off",))
    if output_check not in ("off", "warn", "strict"):
        raise BrokenEntry(f"output_check: {_shown(output_check)} is not a mode; write off, warn or strict")
    pin = meant_word(given.get("pin", "tofu"), ("off",))
    if pin not in ("tofu", "strict", "off"):
        raise BrokenEntry(f"pin: {_shown(pin)} is not a way to pin; write tofu, strict or off")
    scope = given.get("scope", "workspace")
    if scope not in ("workspace", "session"):
        raise BrokenEntry(f"scope: {_shown(scope)} is not who shares a connection; write workspace or session")
    return UpstreamConfig(
        name=name,
        server=server,
        target=target,
        naming=_naming(given),
        timeout_s=_number(given, "timeout_s", DEFAULT_TIMEOUT_S),
        start_timeout_s=_number(given, "start_timeout_s", 0.0) or None,
        idle_timeout_s=_number(given, "idle_timeout_s", 0.0) or None,
        concurrency=_concurrency(given),
        start=start,
        trust_annotations=_flag(given, "trust_annotations"),
        sanitize=_flag(given, "sanitize"),
        input_check=input_check,
        output_check=output_check,
        enabled_tools=_names(given, "enabled_tools"),
        disabled_tools=_names(given, "disabled_tools") or (),
        docs=_docs(given),
        pin=pin,
        allow=_allow(given),
        scope=scope,
        share=_share(given, target),
    )


def _target(given: Mapping[str, Any]) -> StdioLaunch | HttpEndpoint:
    kind = given.get("type", given.get("transport"))
    if kind == "sse":
        raise BrokenEntry("type: sse is the retired HTTP+SSE transport; write the server's streamable HTTP url")
    if kind is not None and kind != "stdio" and kind not in _HTTP_TYPES:
        raise BrokenEntry(f"type: {_shown(kind)} is no transport; write stdio or http, or leave it out")
    if ("command" in given) == ("url" in given):
        found = "both command and url" if "command" in given else "neither command nor url"
        raise BrokenEntry(f"has {found}; write one of them")
    if "url" in given:
        if kind == "stdio":
            raise BrokenEntry("type: stdio does not go with url; leave type out")
        if misplaced := sorted(SANDBOX_KEYS & set(given)):
            raise BrokenEntry(f"{misplaced[0]}: does not go with url, only with command; leave it out")
        oauth = given.get("oauth")
        return HttpEndpoint(_url(given["url"]), _texts(given, "headers"), _oauth(oauth), oauth is False)
    if kind in _HTTP_TYPES:
        raise BrokenEntry(f"type: {kind} does not go with command; leave type out")
    command, args, cwd = given["command"], given.get("args", []), given.get("cwd")
    if not isinstance(command, str) or not command.strip():
        raise BrokenEntry(f"command: {_shown(command)} is not a program; write its name or absolute path as text")
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in cast("list[Any]", args)):
        raise BrokenEntry(f"args: {_shown(args)} is not a list of texts; write e.g. ['-y', 'package']")
    for key, text in (("command", command), *(("args", arg) for arg in cast("list[str]", args)), ("cwd", cwd)):
        if isinstance(text, str) and "\0" in text:
            raise BrokenEntry(f"{key}: {_shown(text)} holds a NUL, which no program can be given; remove it")
    if cwd is not None and (not isinstance(cwd, str) or not _is_absolute(cwd)):
        raise BrokenEntry(f"cwd: {_shown(cwd)} is not an absolute path, nor one in {WORKSPACE}")
    if cwd is None and _is_relative_path(command):
        # It would be looked for where we were started: in the repository of whoever wrote that.
        raise BrokenEntry(
            f"command: {_shown(command)} is a relative path; write an absolute one, a name that is on PATH, or a cwd"
        )
    return StdioLaunch(
        command,
        tuple(cast("list[str]", args)),
        _texts(given, "env"),
        None if cwd is None else str(Path(cwd).expanduser()),
        _sandbox(given),
    )


def _sandbox(entry: Mapping[str, Any]) -> SandboxOptions | None:
    """The sandbox that an entry wants; None where it wants none, as most do. Raises `BrokenEntry`."""
    given = {key: value for key, value in entry.items() if key in SANDBOX_KEYS}
    if not given:
        return None
    try:
        options = SandboxOptions.model_validate(given)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise BrokenEntry(f"{key}: {first['msg']}; got {str(first['input'])[:60]!r}") from None
    if options.sandbox is None:
        key = min(given)
        raise BrokenEntry(f"{key}: says what a sandbox shows, and there is none; write sandbox: auto or required")
    return None if options.sandbox is SandboxMode.OFF else options


def _oauth(value: Any) -> OAuthOptions | None:
    if value is None or isinstance(value, bool):
        return None
    from goat_mcp.upstreams.config.oauth_keys import BrokenOAuthKeys, oauth_options

    try:
        return oauth_options(value)
    except BrokenOAuthKeys as broken:
        raise BrokenEntry(str(broken)) from None


def _resolved(given: Mapping[str, Any], references: SecretReferences) -> dict[str, Any]:
    """The entry without references, but for those that are read with each use. Raises `Unresolved`."""
    resolved = cast("dict[str, Any]", references.resolve({key: given[key] for key in given if key != "oauth"}))
    if "oauth" not in given:
        return resolved
    oauth = given["oauth"]
    if not isinstance(oauth, dict) or "assertion" not in oauth:
        return {**resolved, "oauth": references.resolve(oauth)}
    rest = {name: child for name, child in cast("dict[str, Any]", oauth).items() if name != "assertion"}
    # It is short-lived: whoever writes it may not have written it yet, and writes it again.
    substitute(oauth["assertion"], references.environ, lambda kind, name: "")
    return {**resolved, "oauth": {**references.resolve(rest), "assertion": oauth["assertion"]}}


def _without_secret_keys(key: str, value: Any) -> Any:
    """What of an entry's value is seen by others."""
    if key in ("oauth", "identity_provider") and isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {name: _without_secret_keys(name, child) for name, child in members if name not in _OAUTH_SECRETS}
    return value


def _is_relative_path(command: str) -> bool:
    is_path = "/" in command or (platform.SYSTEM == "windows" and "\\" in command)
    return is_path and not _is_absolute(command)


def _is_absolute(path: str) -> bool:
    return path.startswith(WORKSPACE) or Path(path).expanduser().is_absolute()


def _elsewhere(given: Mapping[str, Any]) -> str:
    return "put it into headers" if "url" in given else "put it into env, where most servers look for it"


def _secrets_of(target: StdioLaunch | HttpEndpoint) -> list[str]:
    """What is written out in an entry and should be shown nowhere else."""
    if isinstance(target, StdioLaunch):
        return [value for name, value in target.env.items() if is_likely_secret(name, value)]
    values = [value for name, value in target.headers.items() if name.lower() not in _PLAIN_HEADERS]
    if target.oauth is not None:
        values += target.oauth.secrets()
    # What follows `Bearer` may be told without it.
    return [form for value in values for form in (value, value.rpartition(" ")[2])]


def _url(value: Any) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        valid = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid, parts = False, None
    if not valid or parts is None:
        raise BrokenEntry(f"url: {_shown(value)} is not an http or https address; write e.g. https://host/mcp")
    try:
        is_port = parts.port != 0
    except ValueError:
        is_port = False
    if not is_port:
        raise BrokenEntry("url: its port is no number from 1 to 65535; write e.g. https://host:8443/mcp")
    if parts.username or parts.password:
        raise BrokenEntry("url: holds a user name or password; put them into headers")
    return cast("str", value)


def _texts(given: Mapping[str, Any], key: str) -> dict[str, str]:
    value: Any = given.get(key) or {}
    if not isinstance(value, dict):
        raise BrokenEntry(f"{key}: is {type(value).__name__}, not an object of names and texts")
    texts: dict[str, str] = {}
    for name, text in cast("dict[str, Any]", value).items():
        if not name or ("=" in name or "\0" in name if key == "env" else not _HEADER_NAME.fullmatch(name)):
            raise BrokenEntry(f"{key}: {_shown(name)} is no name; write the name here and its value behind the colon")
        # The value is never shown: it is where secrets are.
        if not isinstance(text, str):
            raise BrokenEntry(f"{key}.{name}: is {type(text).__name__}, not text; put it in quotes")
        if "\0" in text or (key == "headers" and ("\r" in text or "\n" in text)):
            raise BrokenEntry(f"{key}.{name}: holds a line end or NUL; remove it")
        if key == "headers" and not _HEADER_VALUE.fullmatch(text):
            raise BrokenEntry(f"{key}.{name}: holds a character that no header can carry; write it in ASCII")
        texts[name] = text
    return texts


def _flag(given: Mapping[str, Any], key: str) -> bool:
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise BrokenEntry(f"{key}: {_shown(value)} is not true or false")
    return value


def _number(given: Mapping[str, Any], key: str, default: float) -> float:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 < value <= 86_400 or value == default):
        raise BrokenEntry(f"{key}: {_shown(value)} is not a number of seconds between 0 and 86400")
    return float(value)


def _names(given: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value: Any = given.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in cast("list[Any]", value)):
        raise BrokenEntry(f"{key}: {_shown(value)} is not a list of names; write e.g. ['search']")
    return tuple(cast("list[str]", value))


def _docs(given: Mapping[str, Any]) -> dict[str, ToolDocs]:
    value: Any = given.get("docs") or {}
    if not isinstance(value, dict):
        raise BrokenEntry(f"docs: {_shown(value)} is not an object of names of its tools and texts")
    return {name: _docs_of(f"docs.{name}", said) for name, said in cast("dict[str, Any]", value).items()}


def _docs_of(key: str, said: Any) -> ToolDocs:
    """A text, or an object with `long` and `examples`."""
    parts = cast("dict[str, Any]", {"long": said} if isinstance(said, str) else said)
    if not isinstance(said, str | dict) or not parts.keys() <= {"long", "examples"}:
        raise BrokenEntry(f"{key}: {_shown(said)} is neither a text nor an object of long and examples")
    long, examples = parts.get("long", ""), parts.get("examples", [])
    if not isinstance(long, str) or not isinstance(examples, list):
        raise BrokenEntry(f"{key}: long is a text, examples are a list of {{description, input, output}}")
    return ToolDocs(long, tuple(_example(key, one) for one in cast("list[Any]", examples)))


def _example(key: str, said: Any) -> ToolExample:
    if not isinstance(said, dict) or not isinstance(said.get("input"), dict) or not said.keys() <= _EXAMPLE_KEYS:  # type: ignore[reportUnknownMemberType]  # JSON
        raise BrokenEntry(f"{key}: {_shown(said)} is no example; write {{description, input, output}}")
    given = cast("dict[str, Any]", said)
    output = given.get("output", "")
    shown = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return ToolExample(str(given.get("description", "")), given["input"], shown)


def _concurrency(given: Mapping[str, Any]) -> int:
    value = given.get("concurrency", DEFAULT_CONCURRENCY)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
        raise BrokenEntry(f"concurrency: {_shown(value)} is not a whole number from 1 to 1000")
    return value


def _allow(given: Mapping[str, Any]) -> frozenset[str]:
    value = given.get("allow")
    if value is None:
        return DEFAULT_ALLOW
    if not isinstance(value, list) or not all(one in SERVER_REQUESTS for one in cast("list[Any]", value)):
        raise BrokenEntry(f"allow: {_shown(value)} is not a list of {', '.join(SERVER_REQUESTS)}")
    return frozenset(cast("list[str]", value))


def _share(given: Mapping[str, Any], target: StdioLaunch | HttpEndpoint) -> bool | None:
    if "share" not in given or not _flag(given, "share"):
        return False if "share" in given else None
    if isinstance(target, HttpEndpoint):
        raise BrokenEntry("share: does not go with url: an HTTP server is one for all sessions already; leave it out")
    if target.sandbox is not None:
        raise BrokenEntry("share: does not go with sandbox: each session has its own; leave one of them out")
    if given.get("scope") == "session":
        raise BrokenEntry("share: does not go with scope: session; leave one of them out")
    return True


def _naming(given: Mapping[str, Any]) -> str:
    value = given.get("naming", "qualified")
    if value in ("qualified", "flat"):
        return cast("str", value)
    try:
        if isinstance(value, str) and clean_server_name(value) == value and value != "mcp" and not value[0].isdigit():
            return value
    except InvalidName:
        pass
    raise BrokenEntry(
        f"naming: {_shown(value)} is not qualified, flat or an alias; an alias has A-Z a-z 0-9 - and single _, "
        "does not start with a digit and is not mcp"
    )


def _shown(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."
