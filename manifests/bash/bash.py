"""`bash__exec` and `bash__script`: Bash with its two outputs apart and an answer in JSON.

Source: Goondan, @goondan/base.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.command_runner import CommandAnswer
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.manifests.manifest_tool import script_file
from goat_mcp.tools.bash import Bash, Given


@dataclass(frozen=True)
class JsonBash:
    host: Host

    async def exec(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        return await self._run(ctx, input, str(input["command"]))

    async def script(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        script = script_file(self.host.workspace, str(input["path"]))
        if script.sha256 != ctx.call.script_sha256:
            # It runs from where it lies, or `$0` and what lies beside it would be missed: so it has to be the same.
            raise ToolError(
                ErrorCode.STALE,
                f"{script.path} has changed since the call was judged, so it was not run",
                "Read it and call again.",
            )
        command = shlex.join(script.argv(tuple(input.get("args", ()))))
        return await self._run(ctx, input, command, f"exec -- {command}")

    async def _run(self, ctx: HandlerContext, input: Mapping[str, Any], command: str, script: str = "") -> Any:
        bash: Bash = self.host.tool("Bash")
        fields = {"workdir": input.get("cwd"), "env": input.get("env"), "timeout": input.get("timeoutMs")}
        answer = CommandAnswer(self.host.spill.create)
        given = {name: value for name, value in fields.items() if value is not None}
        asked = bash.validate({"command": command, **given})
        extra = Given(script=script, streams=answer.fresh_streams)
        return await answer.of(bash.run(asked, ctx.call, extra), extra.notices)


def build_handlers(host: Host) -> Mapping[str, Handler]:
    tool = JsonBash(host)
    return {"exec": tool.exec, "script": tool.script}
