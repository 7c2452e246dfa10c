"""`bg_exec__start`: a program in the background, under Bash's rules. Source: goa, `bg_exec`."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.manifests.handler_results import handler_failed
from goat_mcp.tools.bash import Bash, Given

DEFAULT_TIMEOUT_S = 1800
_LOOK_TIMEOUT_MS = 20_000


@dataclass(frozen=True)
class BgExec:
    host: Host

    async def start(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        bash: Bash = self.host.tool("Bash")
        command = shlex.join([str(input["command"]), *input.get("args", ())])
        timeout_ms = int(input.get("timeout", DEFAULT_TIMEOUT_S)) * 1000
        await self._check_program(bash, ctx, str(input["command"]))
        asked = bash.validate({"command": command, "run_in_background": True, "timeout": timeout_ms})
        # A file, not a pipe: nobody has to stay to write into it, and it ends where the text does.
        with tempfile.TemporaryFile(prefix="stdin-") as stdin:
            stdin.write(str(input.get("stdin", "")).encode())
            stdin.seek(0)
            extra = Given(script=f"exec -- {command}", stdin=os.dup(stdin.fileno()))
        try:
            result = await bash.run(asked, ctx.call, extra)
        finally:
            os.close(extra.stdin)
        facts = result.facts or {}
        value = {"taskId": facts.get("task_id"), "command": command, "outputFile": facts.get("output_file")}
        return {**value, "notices": extra.notices}

    async def _check_program(self, bash: Bash, ctx: HandlerContext, program: str) -> None:
        """Raises `ToolError` for a program that is not there: the background would report it only when asked.

        bash looks for it, where the program will run: a sandbox shows other directories than we see.
        """
        look = f"type -P -- {shlex.quote(program)}"
        asked = bash.validate({"command": look, "timeout": _LOOK_TIMEOUT_MS})
        try:
            await bash.run(asked, ctx.call, Given(script=f"{look} >/dev/null"))
        except ToolError as failed:
            if failed.code is not ErrorCode.EXIT:
                raise
            raise handler_failed(
                f"there is no program {program[:200]!r}",
                "Send its path, or a name that is on PATH. What only a shell knows (cd, if) is none: use Bash.",
                name="NoSuchProgram",
            ) from None


def build_handlers(host: Host) -> Mapping[str, Handler]:
    return {"start": BgExec(host).start}
