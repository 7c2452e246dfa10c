"""For whom a call is made, and what it may do: profiles limit it, and an agent has no more than its starter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX

LOCAL = "local"
"""The user who started this process, and all that has no other principal."""
OPERATOR = "operator"
"""A client with the server's own token."""
ANONYMOUS = "anonymous"
"""A client of a server that needs no token."""
USERS = frozenset({LOCAL, OPERATOR, ANONYMOUS})
"""Those who are the user, not a profile: they see what is the user's own in every workspace."""
OWNERS = frozenset({LOCAL, OPERATOR})
"""Those who run goat-mcp and decide about what serves all its clients."""


def principal_of_user(name: str) -> str:
    """Somebody whom an identity provider knows by this name. No other kind of principal looks like that."""
    return f"user:{name}"


@dataclass(frozen=True, slots=True)
class Rights:
    """Names are rule names, the names of tools that are judged by another one's rules (`bash__exec`), or `mcp__SERVER`
    for all tools of a server; `allowed` None means the whole catalog.

    `modes` are permission modes of which each may only narrow. `depth` counts agents: 0 is a client's own call.
    `client_session` is the session whose permission mode holds, if it is not the call's own. `writes_below` is the
    absolute path that every file written lies below, or empty. `profiles` are those of the settings of which each
    narrows what there is (PRF-1). `shows_apps`: the client renders MCP Apps, so it is offered ours; an agent is not.
    """

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    modes: tuple[str, ...] = ()
    depth: int = 0
    in_script: bool = False
    """Whether a script makes the call: that is one of its depth, and no agent."""
    client_session: str = ""
    writes_below: str = ""
    profiles: tuple[str, ...] = ()
    shows_apps: bool = False
    own_lists: str = ""
    """The session, if it sees lists of its own (`catalog.own_lists`)."""
    is_administrator: bool = False
    """Whether the client may see and decide what waits for all principals. An agent may not."""
    granted: frozenset[str] = frozenset()
    """Tools that come with what this agent is, e.g. writing to its team: nobody is asked again. Deny rules hold."""

    @property
    def is_agents(self) -> bool:
        """Whether an agent makes the call, and not the client or a script of the client's."""
        return self.depth > int(self.in_script)

    def in_a_script(self) -> Rights:
        """The rights of a call that a script makes, which a call with these rights runs."""
        return replace(self.narrowed(allowed=None, granted=self.granted), in_script=True)

    def permits(self, rule_name: str, name: str = "") -> bool:
        """`name` is the tool's own, if it is judged by the rules of another one: either may be listed."""
        if rule_name in self.granted:
            return True
        if _names(self.denied, rule_name) or name in self.denied:
            return False
        return self.allowed is None or _names(self.allowed, rule_name) or name in self.allowed

    def narrowed(
        self,
        *,
        allowed: frozenset[str] | None,
        denied: frozenset[str] = frozenset(),
        modes: tuple[str, ...] = (),
        client_session: str = "",
        writes_below: str = "",
        granted: frozenset[str] = frozenset(),
    ) -> Rights:
        """The rights of an agent that a call with these rights starts. If a limit is there already it stays."""
        return Rights(
            allowed=_both(self.allowed, allowed),
            denied=self.denied | denied,
            modes=(*self.modes, *(mode for mode in modes if mode and mode not in self.modes)),
            depth=self.depth + 1,
            client_session=self.client_session or client_session,
            writes_below=self.writes_below or writes_below,
            profiles=self.profiles,
            own_lists=self.own_lists,
            granted=granted,
        )


NO_LIMITS = Rights()
"""Those of a client's own call."""


def _names(names: frozenset[str], rule_name: str) -> bool:
    return rule_name in names or (rule_name.startswith(UPSTREAM_PREFIX) and _server_of(rule_name) in names)


def _server_of(rule_name: str) -> str:
    """`mcp__server__tool` -> `mcp__server`."""
    return UPSTREAM_PREFIX + rule_name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0]


def _both(one: frozenset[str] | None, two: frozenset[str] | None) -> frozenset[str] | None:
    """The names that both allow: a tool where the other has its server is among them."""
    if one is None or two is None:
        return one if two is None else two
    return frozenset({name for name in one if _names(two, name)} | {name for name in two if _names(one, name)})
