"""The hosts we know that are editors, their extensions, and desktop applications. Data only.

Sources: the vendors' pages on MCP, as of November 2026, or what is named above a row. What a host does with an entry
is not its file's business.
"""

from __future__ import annotations

from goat_mcp.cli.hosts.host import MCP_SERVERS, ConfigLocation, Host, Key, Variables, WorkspaceSource, of_application

EDITORS = (
    # anthropics/claude-code#26073: the Windows installer makes a package since February 2026.
    Host(
        "claude-desktop",
        "Claude Desktop",
        "json",
        MCP_SERVERS,
        user=of_application("Claude/claude_desktop_config.json"),
        packaged="Claude_*",
        after="Quit Claude Desktop entirely and start it again.",
    ),
    Host(
        "cursor",
        "Cursor",
        "jsonc",
        MCP_SERVERS,
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
        user=of_application("Code/User/mcp.json"),
        project=".vscode/mcp.json",
        keys={"envFile": Key.ENV_FILE, "dev": Key.MEANINGLESS, "gallery": Key.MEANINGLESS, "version": Key.MEANINGLESS},
        variables=Variables.EDITOR,
        own_entry={"type": "stdio"},
        workspace=WorkspaceSource.ROOTS,
        # microsoft/vscode: src/vs/workbench/contrib/mcp/common/mcpServer.ts (roots of the same authority only)
        in_wsl="In a window in WSL it names none to servers of this file: add --workspace DIR, or --project DIR for "
        "the project's own file, whose servers VS Code starts in the distribution.",
        after="Start the server goat in VS Code (MCP: List Servers).",
        unseen="what is switched off in VS Code's window is not in this file",
    ),
    Host(
        "windsurf",
        "Windsurf",
        "jsonc",
        MCP_SERVERS,
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
            macos="{home}/.config/zed/settings.json",
            windows="{appdata}/Zed/settings.json",
        ),
        project=".zed/settings.json",
        keys={"command": Key.COMMAND_LINE, "source": Key.MEANINGLESS},
        own_entry={"source": "custom"},
        after="Zed reads the file again by itself; its agent panel lists goat.",
    ),
    # cline/cline: sdk/packages/shared/src/storage/paths.ts and apps/vscode/src/services/mcp/schemas.ts. Extension and
    # CLI share the file since June 2026; what the extension had elsewhere is taken over at its first start.
    Host(
        "cline",
        "Cline",
        "json",
        MCP_SERVERS,
        user=ConfigLocation(any="{CLINE_DIR|.cline}/data/settings/cline_mcp_settings.json"),
        elsewhere=of_application("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        keys={
            "url": Key.SSE_URL,
            "timeout": Key.SECONDS,
            "transportType": Key.TYPE,
            "remoteConfigured": Key.MEANINGLESS,
            "metadata": Key.MEANINGLESS,
        },
        variables=Variables.EDITOR,
        after="Cline in VS Code reads the file again by itself. Start the CLI again.",
    ),
    # RooCodeInc/Roo-Code: src/services/mcp/McpHub.ts, src/utils/config.ts
    Host(
        "roo",
        "Roo Code",
        "json",
        MCP_SERVERS,
        user=of_application("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        project=".roo/mcp.json",
        keys={"timeout": Key.SECONDS},
        variables=Variables.EDITOR,
        # Servers without a `cwd` start in the folder that is open.
        workspace=WorkspaceSource.START_DIRECTORY,
        after="Roo Code reads the file again by itself; reload the window if goat is not listed.",
    ),
    # kilo.ai/docs/features/mcp: the extension before it read the CLI's file (`kilo-cli`).
    Host(
        "kilo",
        "Kilo Code (legacy extension)",
        "json",
        MCP_SERVERS,
        project=".kilocode/mcp.json",
        keys={"timeout": Key.SECONDS},
        variables=Variables.EDITOR,
        after="Kilo Code reads the file again by itself; reload the window if goat is not listed.",
    ),
    # kiro.dev/docs/mcp/configuration; IDE and CLI share both files. What it does after a change is not said there.
    Host(
        "kiro",
        "Kiro",
        "json",
        MCP_SERVERS,
        user=ConfigLocation(any="{home}/.kiro/settings/mcp.json"),
        project=".kiro/settings/mcp.json",
        keys={"oauthScopes": Key.LOGIN},
        variables=Variables.SHELL,
        after="Start Kiro again, or reconnect goat in its list of MCP servers.",
    ),
    # continuedev/continue: packages/config-yaml/src/schemas/mcp, core/util/paths.ts, docs/customize/deep-dives/mcp.mdx.
    # A project's servers are whole files in .continue/mcpServers: not written.
    Host(
        "continue",
        "Continue",
        "yaml",
        MCP_SERVERS,
        user=ConfigLocation(any="{CONTINUE_GLOBAL_DIR|.continue}/config.yaml"),
        keys={
            "apiKey": Key.BEARER,
            "requestOptions": Key.REQUEST_OPTIONS,
            "connectionTimeout": Key.START_WAIT,
            "faviconUrl": Key.MEANINGLESS,
            "serverName": Key.MEANINGLESS,
        },
        variables=Variables.SECRETS,
        name_key="name",
        is_list=True,
        new_file={"name": "Local config", "version": "1.0.0", "schema": "v1"},
        # Servers without a `cwd` start in the folder that is open.
        workspace=WorkspaceSource.START_DIRECTORY,
        after="Continue reads the file again by itself. MCP servers work in its agent mode only.",
    ),
    # antigravity.google/docs/mcp names the keys; the folder changed with version 2 and is known from other installers
    # (not confirmed by a page of the vendor's). Notation of variables: not documented.
    Host(
        "antigravity",
        "Antigravity",
        "json",
        MCP_SERVERS,
        user=ConfigLocation(any="{home}/.gemini/config/mcp_config.json"),
        elsewhere=ConfigLocation(any="{home}/.gemini/antigravity/mcp_config.json"),
        keys={"authProviderType": Key.LOGIN, "$typeName": Key.MEANINGLESS},
        after="Press Refresh in Antigravity's list of MCP servers (Manage MCP Servers).",
    ),
    # volcengine.com/docs/86677 names the entry's keys and .trae/mcp.json; the user's file is reported by users
    # (pathintegral-institute/mcpm.sh issue 92), for Linux not confirmed.
    Host(
        "trae",
        "Trae",
        "json",
        MCP_SERVERS,
        user=of_application("Trae/User/mcp.json"),
        project=".trae/mcp.json",
        keys={"fromGalleryId": Key.MEANINGLESS},
        variables=Variables.EDITOR,
        after="Look at Settings > MCP in Trae; for a project's file, switch on Enable Project MCP there.",
    ),
    # warpdotdev/docs: agent-platform/capabilities/mcp.mdx (file-based MCP servers); servers that are entered in its
    # window are in its account and not in this file.
    Host(
        "warp",
        "Warp",
        "json",
        MCP_SERVERS,
        user=ConfigLocation(any="{home}/.warp/.mcp.json"),
        project=".warp/.mcp.json",
        keys={"working_directory": Key.CWD, "start_on_launch": Key.MEANINGLESS},
        variables=Variables.SHELL,
        after="Warp starts goat by itself; a project's server is started in Settings > Agents > MCP servers.",
        unseen="servers that were entered in Warp's window are not in this file",
    ),
    # jetbrains.com/help/ai-assistant/mcp.html: a settings dialog alone, no file of its own.
    Host(
        "jetbrains",
        "JetBrains AI Assistant",
        "json",
        MCP_SERVERS,
        after="Press Apply; the status of goat is shown in the same list.",
        paste_into="Settings | Tools | AI Assistant | Model Context Protocol (MCP) | Add",
    ),
    Host(
        "junie",
        "Junie",
        "json",
        MCP_SERVERS,
        user=ConfigLocation(any="{home}/.junie/mcp/mcp.json"),
        project=".junie/mcp/mcp.json",
        after="Look at Settings | Tools | Junie | MCP Settings; start the IDE again if goat is not there.",
    ),
    # lmstudio.ai/docs/app/mcp
    Host(
        "lm-studio",
        "LM Studio",
        "json",
        MCP_SERVERS,
        user=ConfigLocation(any="{home}/.lmstudio/mcp.json"),
        elsewhere=ConfigLocation(any="{home}/.cache/lm-studio/mcp.json"),
        after="LM Studio starts goat when the file is saved; switch it on beside the chat (Program tab).",
    ),
)
