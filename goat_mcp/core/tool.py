"""A tool: something a model can call."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args, get_origin, runtime_checkable

from goat_mcp.core.arguments import ArgumentReader, ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolExample, Toolset, ToolSpec, risk_and_hints

InputT = TypeVar("InputT")
ModelT = TypeVar("ModelT", bound=ToolInput)


@dataclass(frozen=True, slots=True)
class Access:
    """What a call touches, for the scheduler and for rules.

    Paths are absolute. Two calls of one category (e.g. "shell") in one session take turns. `risk` is this call's own,
    if a tool's calls differ; None means the tool's. `asked` are the paths as the call names them, before links are
    followed. Source: goa `Accessor`.

    `judged_arguments` are the arguments as rules, hooks and the record see them, if a tool that is judged as Bash has
    no `command` of its own. `runs` is further shell text that the call runs, e.g. on another machine: rules about
    commands may deny it or ask about it, and none can allow it. `script_sha256` is the hash of a script file that the
    call runs, `handler` the state of the files that a declared tool consists of, both as they were judged.
    """

    asked: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    category: str = ""
    risk: Risk | None = None
    judged_arguments: Mapping[str, Any] | None = None
    runs: tuple[str, ...] = ()
    script_sha256: str = ""
    handler: str = ""


class Tool(Protocol[InputT]):
    """What registry, catalog and pipeline need to know of a tool, wherever it comes from."""

    @property
    def spec(self) -> ToolSpec: ...

    def validate(self, arguments: Mapping[str, Any]) -> InputT:
        """Canonical input from a client's arguments. Raises `ToolError(INPUT)` naming every problem."""
        ...

    def access(self, input: InputT) -> Access: ...

    async def execute(self, input: InputT, ctx: ToolContext) -> ToolResult: ...


class ChecksInput(ABC):
    """A tool whose input is checked against a schema from others, which may take long: off the event loop."""

    @abstractmethod
    async def checked(self, input: Any) -> Any:
        """Called after `validate`. The input to go on with. Raises `ToolError(INPUT)` naming every problem."""


NO_DIFF = "no diff: "
"""What a preview begins with if it is no diff but the reason why there is none, on one line."""


class PreviewsChanges(ABC):
    """A tool that can say what a call would change in files before it runs."""

    @abstractmethod
    async def preview(self, input: Any, ctx: ToolContext) -> str:
        """A unified diff, visible and bounded, or `NO_DIFF` and why; empty if neither is known. Nothing is written or
        marked as read."""


@runtime_checkable
class HasDefinition(Protocol):
    """A tool that is more than its spec says: what runs can become another while that stays."""

    def definition(self) -> str:
        """Stands for all that a call is judged by and would run. The same in every process where it is the same."""
        ...


class OwnTool:
    """A tool whose code is this package's: if it raises anything but an error for its caller, that is a bug, of which
    callers see nothing (`E_INTERNAL`). Of any other tool they read what its author wrote (`E_TOOL`)."""

    __slots__ = ()


class BuiltinTool(OwnTool, ABC, Generic[ModelT]):
    """A tool of this package: an input model, a docstring that models read, a side effect, `execute`.

    The spec is built when the class is, so a tool without a docstring fails at import. Subclasses are
    frozen dataclasses whose fields are the services they need.
    """

    contract: ClassVar[ToolSpec]
    """The spec, without an instance."""
    examples: ClassVar[tuple[ToolExample, ...]] = ()
    _reader: ClassVar[ArgumentReader[Any]]

    def __init_subclass__(
        cls,
        *,
        side_effect: SideEffect,
        toolset: Toolset,
        name: str = "",
        title: str = "",
        risk: Risk | None = None,
        hints: Hints | None = None,
        always_load: bool = False,
        max_result_chars: int | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init_subclass__()
        if not cls.__doc__:
            raise TypeError(f"{cls.__name__} has no docstring: it is the description a model reads")
        cls._reader = ArgumentReader(_input_model(cls))
        derived_risk, derived_hints = risk_and_hints(side_effect, risk, hints)
        all_meta = dict(meta or {})
        if always_load:
            all_meta["anthropic/alwaysLoad"] = True
        if max_result_chars is not None:
            all_meta["anthropic/maxResultSizeChars"] = max_result_chars
        cls.contract = ToolSpec(
            name=name or cls.__name__,
            title=title or name or cls.__name__,
            description=inspect.cleandoc(cls.__doc__),
            input_schema=cls._reader.schema(),
            side_effect=side_effect,
            toolset=toolset,
            risk=derived_risk,
            hints=derived_hints,
            meta=all_meta,
            examples=cls.examples,
            max_result_chars=max_result_chars,
            is_plain=True,
        )

    @property
    def spec(self) -> ToolSpec:
        return self.contract

    def validate(self, arguments: Mapping[str, Any]) -> ModelT:
        return self._reader.read(arguments)

    def access(self, input: ModelT) -> Access:
        """Touches nothing the scheduler must know of, unless a tool says otherwise."""
        return Access()

    @abstractmethod
    async def execute(self, input: ModelT, ctx: ToolContext) -> ToolResult: ...


def _input_model(cls: type) -> type[ToolInput]:
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) is BuiltinTool:
            (model,) = get_args(base)
            return model
    raise TypeError(f"{cls.__name__} must name its input model: class {cls.__name__}(BuiltinTool[Model])")
