"""Programs that fetch what they start, as `npx`, `uvx` and `docker run` do: a first start is as long as a download."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.config.entry import HttpEndpoint, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.status import ReasonCode

_RUNNERS = {
    "npx": "npm",
    "bunx": "npm",
    "pnpx": "npm",
    "uvx": "python",
    "pipx": "python",
    "docker": "image",
    "podman": "image",
}
_TWO_WORDS = {
    "npm exec": "npm",
    "npm x": "npm",
    "pnpm dlx": "npm",
    "yarn dlx": "npm",
    "bun x": "npm",
    "deno run": "",
    "uv run": "",
    "uv tool": "python",
}
"""Those without a kind download, too, but name no package."""
_RUN = frozenset({"pipx", "docker", "podman", "tool"})


class Launcher(NamedTuple):
    """`name` is what people type, `kind` whose packages it fetches (npm, python, image or empty), `words` the rest."""

    name: str
    kind: str
    words: tuple[str, ...]


def launcher_of(target: StdioLaunch | HttpEndpoint) -> Launcher | None:
    """The launcher that an entry starts its server with; None for a program that is there already."""
    if not isinstance(target, StdioLaunch):
        return None
    program = PurePath(target.command.replace("\\", "/")).name.removesuffix(".cmd").removesuffix(".exe")
    words = (program, *target.args)
    kind, name = _RUNNERS.get(program), program
    if (both := " ".join(words[:2])) in _TWO_WORDS:
        kind, name, words = _TWO_WORDS[both], both, words[1:]
    if kind is None:
        return None
    if words[0] in _RUN:
        if words[1:2] != ("run",):
            return None
        name, words = f"{name} run", words[1:]
    return Launcher(name, kind, words[1:])


def start_timeout_s(config: UpstreamConfig, limits: SupervisorLimits) -> float:
    """How long this upstream may take to start: what its entry says, else longer if it may have to be downloaded."""
    if config.start_timeout_s is not None:
        return config.start_timeout_s
    if launcher_of(config.target) is not None:
        return max(limits.start_timeout_s, limits.download_timeout_s)
    return limits.start_timeout_s


def still_starting(config: UpstreamConfig, timeout_s: float) -> str:
    """What there is to say of a start that takes a while, for people."""
    launcher = launcher_of(config.target)
    if launcher is None:
        return f"it is still starting; it has {timeout_s:g} s to answer"
    return f"it is still starting; {launcher.name} may be downloading it first and has {timeout_s:g} s for that"


def called_too_early(config: UpstreamConfig, timeout_s: float) -> ToolError:
    """What a call learns that has waited for the start as long as a call does."""
    return ToolError(
        ErrorCode.UPSTREAM_DOWN,
        f"upstream {config.name}: {still_starting(config, timeout_s)}; the call did not run",
        "The start goes on. Call again in a moment.",
        facts={"upstream": config.name, "reason": ReasonCode.STARTING},
    )
