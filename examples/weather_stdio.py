"""An example MCP server over stdio: made-up weather for four made-up towns.

It needs no network and always gives the same answers, so that demos and tests can rely on them.
Start it with `python examples/weather_stdio.py`; an MCP client talks to it over stdin and stdout.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

# town -> (temperature in Celsius, sky, wind in km/h). Example data: none of these towns exists.
TOWNS = {
    "Aldermoor": (12.5, "light rain", 18),
    "Brightwater": (21.0, "clear", 7),
    "Coldharbour": (-3.0, "snow", 25),
    "Dunmere": (16.5, "fog", 3),
}
READS_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
SURVEY_STEP_S = 0.2


class Weather(BaseModel):
    """The weather of one town, now."""

    town: str
    temperature_c: float
    sky: str
    wind_kmh: int
    note: str = "example data"


class Towns(BaseModel):
    """The towns this server knows."""

    towns: list[str]


class Survey(BaseModel):
    """What a survey of all towns found."""

    warmest: str
    coldest: str
    mean_temperature_c: float
    note: str = "example data"


server = MCPServer("example-weather", version="1.0.0", log_level="ERROR")


@server.tool(title="List towns", annotations=READS_ONLY)
def list_towns() -> Towns:
    """List the towns whose (made-up) weather can be asked for."""
    return Towns(towns=sorted(TOWNS))


@server.tool(title="Current weather", annotations=READS_ONLY)
def current_weather(town: Annotated[str, Field(description="A name from list_towns")]) -> Weather:
    """The weather of one town, now. Example data: it never changes."""
    if town not in TOWNS:
        raise ToolError(f"unknown town {town!r}; known are {', '.join(sorted(TOWNS))}")
    temperature_c, sky, wind_kmh = TOWNS[town]
    return Weather(town=town, temperature_c=temperature_c, sky=sky, wind_kmh=wind_kmh)


@server.tool(title="Survey all towns", annotations=READS_ONLY)
async def survey_towns(ctx: Context[Any]) -> Survey:
    """Visit every town, one after the other, and report progress on the way."""
    for visited, town in enumerate(sorted(TOWNS), start=1):
        await asyncio.sleep(SURVEY_STEP_S)
        await ctx.report_progress(visited, len(TOWNS), f"visited {town}")
    temperature = {town: values[0] for town, values in TOWNS.items()}
    return Survey(
        warmest=max(temperature, key=lambda town: temperature[town]),
        coldest=min(temperature, key=lambda town: temperature[town]),
        mean_temperature_c=sum(temperature.values()) / len(temperature),
    )


if __name__ == "__main__":
    server.run("stdio")
