"""self-restart: have the server start itself again (source: Goondan, "Built-in Tools"). How: `server.restart`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host

_SHOWN_TITLE_CHARS = 60


def build_handlers(host: Host) -> Mapping[str, Handler]:
    async def request(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        restart = host.restart()
        if restart.prevented:
            raise ToolError(
                ErrorCode.CAPABILITY,
                f"this server cannot start itself again: {restart.prevented}",
                "The user can restart it in the host.",
            )
        if ctx.call.rights.depth:
            raise ToolError(
                ErrorCode.PERMISSION, "an agent cannot restart the server it runs in", "Ask for it in your answer."
            )
        if wait_s := math.ceil(restart.wait_s()):
            raise ToolError(
                ErrorCode.RATE,
                f"this server has started itself again {restart.in_a_row} times in a row; again in {wait_s} s",
                "Nothing was done. Go on with what there is, and tell the user what is not as it should be.",
                facts={"retry_after_s": wait_s, "in_a_row": restart.in_a_row},
            )
        running = host.tasks.running()
        mine = [task for task in running if task.principal == ctx.call.principal]
        if len(mine) < len(running):
            raise ToolError(ErrorCode.BUSY, "another client's tasks run here", "The operator can restart it.")
        shown = [f"{task.id} ({' '.join(task.work.title.split())[:_SHOWN_TITLE_CHARS]})" for task in mine]
        if mine and not input.get("force"):
            raise ToolError(
                ErrorCode.BUSY,
                f"{len(mine)} background task{'' if len(mine) == 1 else 's'} would end: {', '.join(shown)}",
                "Wait for them with TaskOutput, or call again with force=true.",
                facts={"running": [task.id for task in mine]},
            )
        restart.check()
        restart.request(input.get("reason") or "")
        return {"restarting": True, "ends": [task.id for task in mine]}

    return {"request": request}
