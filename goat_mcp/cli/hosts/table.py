"""The hosts we know: where each keeps its servers, in which notation, under which keys. Data only.

Sources: the vendors' pages on MCP, as of November 2026. What a host does with an entry is not its file's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from goat_mcp.cli.hosts.host import ConfigLocation, Host, Key, Variables, WorkspaceSource
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean

_COMMON: Mapping[str, Key] = {
    "command": Key.SAME,
    "args": Key.SAME,
    "cwd": Key.SAME,
    "env": Key.ENV,
    "url": Key.URL,
    "headers": Key.HEADERS,
    "type": Key.TYPE,
    "transport": Key.TYPE,
    "disabled": Key.SAME,
    "enabled": Key.ENABLED,
    "serverUrl": Key.URL,
    "httpUrl": Key.URL,
    "autoApprove": Key.APPROVAL,
    "alwaysAllow": Key.APPROVAL,
    "trust": Key.APPROVAL,
    "disabledTools": Key.TOOLS_HIDDEN,
    "excludeTools": Key.TOOLS_HIDDEN,
    "includeTools": Key.TOOLS_SHOWN,
    "oauth": Key.LOGIN,
    "auth": Key.LOGIN,
    "name": Key.MEANINGLESS,
    "description": Key.MEANINGLESS,
}
"""Keys that mean the same wherever they are used: users copy entries from one host's file to another's."""

_MCP_SERVERS = ("mcpServers",)


def _of_application(path: str) -> ConfigLocation:
    """A file where desktop applications of the platform keep theirs."""
    return ConfigLocation(linux=f"{{config}}/{path}", darwin=f"{{support}}/{path}", win32=f"{{appdata}}/{path}")


_ROWS = (
    Host(
        "claude-desktop",
        "Claude Desktop",
        "json",
        _MCP_SERVERS,
        user=_of_application("Claude/claude_desktop_config.json"),
        after="Quit Claude Desktop entirely and start it again.",
    ),
    Host(
        "claude-code",
        "Claude Code",
        "json",
        _MCP_SERVERS,
        user=ConfigLocation(any="{CLAUDE_CONFIG_DIR|}/.claude.json"),
        project=".mcp.json",
        per_project=("projects", "*", "mcpServers"),
        keys={"timeout": Key.MILLISECONDS, "headersHelper": Key.LOGIN, "alwaysLoad": Key.MEANINGLESS},
        variables=Variables.SHELL,
        own_entry={"type": "stdio"},
        workspace=WorkspaceSource.ROOTS,
        after="Start a new session of Claude Code.",
    ),
    Host(
        "cursor",
        "Cursor",
        "jsonc",
        _MCP_SERVERS,
        user=ConfigLocation(any="{home}/.cursor/mcp.json"),
        project=".cursor/mcp.json",
        keys={"envFile": Key.ENV_FILE},
        variables=Variables.EDITOR,
        workspace=WorkspaceSource.ROOTS,
        after="Reload the window of Cursor.",
        unseen="what is switched off in Cursor's window is not in this file",
    ),
    Host(
        "vscode",
        "VS Code",
        "jsonc",
        ("servers",),
        user=_of_application("Code/User/mcp.json"),
        project=".vscode/mcp.json",
        keys={"envFile": Key.ENV_FILE, "dev": Key.MEANINGLESS, "gallery": Key.MEANINGLESS, "version": Key.MEANINGLESS},
        variables=Variables.EDITOR,
        own_entry={"type": "stdio"},
        workspace=WorkspaceSource.ROOTS,
        after="Start the server goat in VS Code (MCP: List Servers).",
        unseen="what is switched off in VS Code's window is not in this file",
    ),
    Host(
        "codex",
        "Codex",
        "toml",
        ("mcp_servers",),
        user=ConfigLocation(any="{CODEX_HOME|.codex}/config.toml"),
        project=".codex/config.toml",
        keys={
            "env_vars": Key.ENV_NAMES,
            "bearer_token_env_var": Key.BEARER_VARIABLE,
            "http_headers": Key.HEADERS,
            "env_http_headers": Key.HEADER_VARIABLES,
            "startup_timeout_sec": Key.START_WAIT,
            "startup_timeout_ms": Key.START_WAIT,
            "tool_timeout_sec": Key.SECONDS,
            "enabled_tools": Key.TOOLS_SHOWN,
            "disabled_tools": Key.TOOLS_HIDDEN,
            "default_tools_approval_mode": Key.APPROVAL,
            "tools": Key.APPROVAL,
            "required": Key.MEANINGLESS,
            "scopes": Key.LOGIN,
            "oauth_resource": Key.LOGIN,
        },
        workspace=WorkspaceSource.START_DIRECTORY,
        after="Start Codex again.",
    ),
    Host(
        "gemini",
        "Gemini CLI",
        "jsonc",
        _MCP_SERVERS,
        user=ConfigLocation(any="{home}/.gemini/settings.json"),
        project=".gemini/settings.json",
        keys={"url": Key.SSE_URL, "timeout": Key.MILLISECONDS, "authProviderType": Key.LOGIN},
        variables=Variables.DOLLAR,
        workspace=WorkspaceSource.START_DIRECTORY,
        after="Start Gemini CLI again.",
    ),
    Host(
        "windsurf",
        "Windsurf",
        "jsonc",
        _MCP_SERVERS,
        user=ConfigLocation(any="{home}/.codeium/windsurf/mcp_config.json"),
        variables=Variables.EDITOR,
        after="Press refresh in Windsurf's list of MCP servers.",
    ),
    Host(
        "zed",
        "Zed",
        "jsonc",
        ("context_servers",),
        user=ConfigLocation(
            any="{config}/zed/settings.json",
            darwin="{home}/.config/zed/settings.json",
            win32="{appdata}/Zed/settings.json",
        ),
        project=".zed/settings.json",
        keys={"command": Key.COMMAND_LINE, "source": Key.MEANINGLESS},
        own_entry={"source": "custom"},
    ),
    Host(
        "copilot-cli",
        "Copilot CLI",
        "json",
        _MCP_SERVERS,
        user=ConfigLocation(any="{home}/.copilot/mcp-config.json"),
        keys={"tools": Key.TOOLS_SHOWN},
        variables=Variables.SHELL,
        own_entry={"type": "local", "tools": ["*"]},
        workspace=WorkspaceSource.START_DIRECTORY,
    ),
    Host(
        "cline",
        "Cline CLI",
        "json",
        _MCP_SERVERS,
        user=ConfigLocation(any="{home}/.cline/data/settings/cline_mcp_settings.json"),
        keys={"timeout": Key.SECONDS},
        workspace=WorkspaceSource.START_DIRECTORY,
    ),
    Host(
        "kilo",
        "Kilo Code",
        "json",
        _MCP_SERVERS,
        project=".kilocode/mcp.json",
        keys={"timeout": Key.SECONDS},
        variables=Variables.EDITOR,
    ),
    Host("lm-studio", "LM Studio", "json", _MCP_SERVERS, user=ConfigLocation(any="{home}/.lmstudio/mcp.json")),
    Host(
        "junie",
        "Junie",
        "json",
        _MCP_SERVERS,
        user=ConfigLocation(any="{home}/.junie/mcp/mcp.json"),
        project=".junie/mcp/mcp.json",
    ),
    Host(
        "opencode",
        "opencode",
        "jsonc",
        ("mcp",),
        user=ConfigLocation(any="{config}/opencode/opencode.json"),
        project="opencode.json",
        keys={"command": Key.COMMAND_LINE, "environment": Key.ENV, "timeout": Key.START_WAIT},
        variables=Variables.BRACES,
        own_entry={"type": "local", "enabled": True},
        command_line="command",
        env_key="environment",
        workspace=WorkspaceSource.START_DIRECTORY,
    ),
    Host(
        "goose",
        "Goose",
        "yaml",
        ("extensions",),
        user=ConfigLocation(any="{config}/goose/config.yaml", win32="{appdata}/Block/goose/config/config.yaml"),
        keys={
            "cmd": Key.COMMAND_LINE,
            "envs": Key.ENV,
            "uri": Key.URL,
            "timeout": Key.SECONDS,
            "env_keys": Key.ENV_NAMES,
            "available_tools": Key.TOOLS_SHOWN,
            "bundled": Key.MEANINGLESS,
        },
    ),
)

HOSTS: Mapping[str, Host] = {host.name: host for host in _ROWS}


def key_of(host: Host, name: str) -> Key | None:
    """What a key of this host's entries means; None for an unknown one."""
    return host.keys.get(name) or _COMMON.get(name)


def host_named(name: str) -> Host:
    """Raises `ToolError(INPUT)` for one that is not in the table, with the nearest one named."""
    found = HOSTS.get(name.lower().replace("_", "-").replace(" ", "-"))
    if found is None:
        near = did_you_mean(name, HOSTS)
        hint = f"; {near}" if near else ""
        raise ToolError(ErrorCode.INPUT, f"{name!r} is no host we know{hint}", f"Known: {', '.join(HOSTS)}.")
    return found
