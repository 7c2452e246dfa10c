"""Which tools one step sees: a client's `tools/list`, or one turn of an agent (source: Goondan, "Tool Catalog").

The catalog says what a client may call. A step only hides some of that, or lists tools that the list leaves out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from goat_mcp.core.context import ToolContext
from goat_mcp.core.spec import ToolSpec

MAX_SESSIONS = 10_000


@dataclass
class StepView:
    """What an extension's `step` is given.

    `tools` are those that the step sees so far, by name; `others` those that could be shown: found by search, or hidden
    by an extension before this one. Changing them is what `hide` and `show` are for.
    """

    session_key: str
    principal: str
    is_agent: bool
    tools: dict[str, ToolSpec]
    others: dict[str, ToolSpec]
    hidden: set[str] = field(default_factory=set[str])

    def hide(self, *names: str) -> None:
        """Leave these out: a call of one in this step is refused as not in the catalog."""
        for name in names:
            if name in self.tools:
                self.others[name] = self.tools.pop(name)
            if name in self.others:
                self.hidden.add(name)

    def show(self, *names: str) -> None:
        """List these too. A name that the client's catalog does not have is passed over."""
        for name in names:
            if name in self.others:
                self.tools[name] = self.others.pop(name)
                self.hidden.discard(name)


Step = Callable[[StepView], object]


class Steps:
    """The steps of all extensions, in their order, and what each session's newest one has hidden.

    `on_bug` is told of a step that raises; what it had done by then counts for nothing.
    """

    def __init__(self, steps: Sequence[tuple[str, Step]], on_bug: Callable[[str, Exception], None]) -> None:
        self._steps = steps
        self._on_bug = on_bug
        self._hidden: OrderedDict[str, frozenset[str]] = OrderedDict()

    def begin(
        self, ctx: ToolContext, listed: Mapping[str, ToolSpec], others: Mapping[str, ToolSpec]
    ) -> Mapping[str, ToolSpec]:
        """The tools that a new step of this caller sees, in the order of the list."""
        view = StepView(ctx.session_key, ctx.principal, ctx.rights.depth > 0, dict(listed), dict(others))
        for name, step in self._steps:
            before = (dict(view.tools), dict(view.others), set(view.hidden))
            try:
                step(view)
            except Exception as bug:
                self._on_bug(name, bug)
                view.tools, view.others, view.hidden = before
        self._hidden[ctx.session_key] = frozenset(view.hidden)
        self._hidden.move_to_end(ctx.session_key)
        if len(self._hidden) > MAX_SESSIONS:
            self._hidden.popitem(last=False)
        return view.tools

    def has_begun(self, ctx: ToolContext) -> bool:
        """Whether this caller has had a step."""
        return ctx.session_key in self._hidden

    def hides(self, ctx: ToolContext, name: str) -> bool:
        """Whether the caller's newest step has hidden this tool."""
        return name in self._hidden.get(ctx.session_key, ())
