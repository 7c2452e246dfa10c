"""A client that plans, asks, edits, delegates and reads through goat-mcp, and prints what happens.

    python examples/walkthrough/client.py WORKSPACE

WORKSPACE is a copy of `project/` that may be changed. The agent of the fifth step thinks with the model that
GOAT_MCP_AGENT__BASE_URL names, for example a LiteLLM proxy. You are played by this program: it answers the forms.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext

YOUR_ANSWERS: list[dict[str, Any]] = [{"decision": "approve"}, {"q1": "50"}]
PLAN = "# Make the code follow the terms\n1. Ask which limit holds\n2. Change FREE_FROM\n3. Have the tests looked at"


def say(text: str) -> None:
    print(text, flush=True)


async def you(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Show the form and fill it in."""
    assert isinstance(params, types.ElicitRequestFormParams)
    answer = YOUR_ANSWERS.pop(0)
    say("  | " + params.message.replace("\n", "\n  | "))
    say(f"  you answer: {', '.join(answer.values())}")
    return types.ElicitResult(action="accept", content=answer)


def _short(value: Any) -> str:
    return repr(value.splitlines()[0]) if isinstance(value, str) else "..."


async def call(client: Client, tool: str, **arguments: Any) -> None:
    shown = ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())
    say(f"\n{tool}({shown})")
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
    say("  " + text.replace(str(WORKSPACE), "WORKSPACE").replace("\n", "\n  "))


WORKSPACE = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-m", "goat_mcp", "serve", "--workspace", str(WORKSPACE), "--mode", "plan"],
    env=dict(os.environ),
)


async def main() -> None:
    async with Client(SERVER, elicitation_callback=you) as client:
        say("1. Plan. Nothing can be changed until you approve.")
        await call(client, "Grep", pattern="TODO", output_mode="content")
        await call(client, "Read", file_path="@/delivery.py")
        await call(client, "Edit", file_path="@/delivery.py", old_string="60", new_string="50")
        await call(client, "ExitPlanMode", plan=PLAN)

        say("\n2. Read a PDF and a notebook.")
        await call(client, "Read", file_path="@/terms.pdf")
        await call(client, "Read", file_path="@/orders.ipynb")

        say("\n3. Ask you.")
        limit = {"question": "Which limit holds?", "header": "Limit", "multiSelect": False}
        options = [{"label": "50", "description": "as in the terms"}, {"label": "60", "description": "as in the code"}]
        await call(client, "AskUserQuestion", questions=[{**limit, "options": options}])

        say("\n4. Edit.")
        await call(
            client,
            "Edit",
            file_path="@/delivery.py",
            old_string="FREE_FROM = 60  # TODO: compare with the terms",
            new_string="FREE_FROM = 50  # terms.pdf",
        )

        say("\n5. Delegate to an agent.")
        await call(
            client,
            "Agent",
            description="Check the change",
            prompt="Does delivery.py follow terms.pdf now? Answer in one sentence.",
            subagent_type="explorer",
        )


if __name__ == "__main__":
    anyio.run(main)
