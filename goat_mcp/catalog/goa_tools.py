"""goa's own interface: its names, fields and defaults over the tools of this package. Source: goa, "Tool Reference".

A call of one is a call of the tool it stands for, with that tool's arguments: rules, hooks and the record see nothing
else. It is on with the toolset `goa`; without it goa's names are other names of those tools, with their defaults.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, cast

from pydantic import Field, WithJsonSchema

from goat_mcp.catalog.builtin_contracts import StandIn, builtin_contracts
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.arguments import ArgumentReader, ToolInput
from goat_mcp.core.spec import ToolExample

_PATH = "Relative to the project, or absolute"
_READ_LINES = 500
_MAX_TIMEOUT_S = 300


class GoaInput(ToolInput):
    """Fields as goa has them."""

    @abstractmethod
    def meant(self) -> dict[str, Any]:
        """The arguments of the tool it stands for."""


class GoaRead(GoaInput):
    aliases: ClassVar[Mapping[str, str]] = {"file_path": "path", "offset": "start_line", "limit": "max_lines"}

    path: str = Field(description=_PATH)
    start_line: int | None = Field(None, description="From 1")
    end_line: int | None = Field(None, description="Inclusive")
    max_lines: int = Field(_READ_LINES, gt=0)
    max_bytes: int = Field(50_000, gt=0)

    def meant(self) -> dict[str, Any]:
        # Who names lines gets them. The default is for those who do not: a notice tells them that there are more.
        max_lines = self.max_lines if "max_lines" in self.model_fields_set else None
        lines = {"start_line": self.start_line, "end_line": self.end_line, "max_lines": max_lines}
        return {
            "file_path": _in_project(self.path),
            **_present(lines),
            "max_bytes": self.max_bytes,
            "default_limit": _READ_LINES,
        }


class GoaWrite(GoaInput):
    aliases: ClassVar[Mapping[str, str]] = {"file_path": "path"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"content"})

    path: str = Field(description=_PATH)
    content: str
    create_dirs: bool = Field(True, description="Create parent directories")

    def meant(self) -> dict[str, Any]:
        return {"file_path": _in_project(self.path), "content": self.content, "create_dirs": self.create_dirs}


class GoaEdit(GoaInput):
    aliases: ClassVar[Mapping[str, str]] = {"file_path": "path"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"old_string", "new_string"})

    path: str = Field(description=_PATH)
    old_string: str
    new_string: str = Field(description="Literal; may be empty")
    replace_all: bool = False

    def meant(self) -> dict[str, Any]:
        texts = {"old_string": self.old_string, "new_string": self.new_string}
        return {"file_path": _in_project(self.path), **texts, "replace_all": self.replace_all}


class GoaSearch(GoaInput):
    pattern: str = Field(description="Regular expression")
    path: str | None = Field(None, description="File or directory, default the project")
    glob: str | None = Field(None, description='e.g. "*.go", "**/*.test.js"')
    recursive: bool = Field(True, description="Search subdirectories")
    case_sensitive: bool = False
    max_results: int = Field(30, gt=0, description="Matching lines shown")
    context_lines: int = Field(1, ge=0, description="Lines around each match")
    exclude: Annotated[list[str], WithJsonSchema({"type": "array", "items": {"type": "string"}})] | None = Field(
        None, description="Directories or files to leave out"
    )
    include_ignored: bool = Field(False, description="Search what .gitignore names, too")

    def meant(self) -> dict[str, Any]:
        path = None if self.path is None else _in_project(self.path)
        given = {"path": path, "glob": self.glob, "exclude": self.exclude}
        return {
            "pattern": self.pattern,
            **_present(given),
            "recursive": self.recursive,
            "output_mode": "content",
            "rank": "priority",
            "-i": not self.case_sensitive,
            "context": self.context_lines,
            "head_limit": self.max_results,
            "include_ignored": self.include_ignored,
            "is_goas": True,
        }


class GoaBash(GoaInput):
    text_fields: ClassVar[frozenset[str]] = frozenset({"command"})

    command: str
    timeout: float = Field(60, gt=0, le=_MAX_TIMEOUT_S, description=f"Seconds, at most {_MAX_TIMEOUT_S}")
    workdir: str | None = Field(None, description=f"{_PATH}; for this call only")
    env: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] | None = None

    def meant(self) -> dict[str, Any]:
        given = {"workdir": None if self.workdir is None else _in_project(self.workdir), "env": self.env}
        return {"command": self.command, "timeout_s": self.timeout, **_present(given), "is_goas": True}


class GoaAskUserQuestion(GoaInput):
    questions: Annotated[
        list[Any],
        WithJsonSchema(
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {
                    "type": "object",
                    "properties": {
                        "question": {"type": "string"},
                        "title": {"type": "string", "description": "Short label"},
                        "summary": {"type": "string", "description": "Context"},
                        "options": {"type": "array", "items": {"type": "string"}, "maxItems": 6},
                        "required": {"type": "boolean", "description": "No answer is an error"},
                        "allow_free_text": {"type": "boolean", "default": True},
                    },
                    "required": ["question"],
                },
            }
        ),
    ]

    def meant(self) -> dict[str, Any]:
        return {"questions": [_as_goas(question) for question in self.questions]}


@dataclass(frozen=True)
class GoaTool:
    """One name of goa's: its fields, and `stands_for`, the tool it calls."""

    name: str
    stands_for: str
    description: str
    fields: type[GoaInput]
    examples: tuple[ToolExample, ...]

    def over(self, load: Callable[[str], AnyTool]) -> StandIn:
        """The tool itself. `load` gives the one that it stands for."""
        contract = next(spec for spec in builtin_contracts() if spec.name == self.stands_for)
        reader = ArgumentReader(self.fields)
        spec = replace(
            contract,
            name=self.name,
            canonical_name=self.stands_for,
            title=f"{contract.title} (goa)",
            description=self.description,
            input_schema=reader.schema(),
            toolset="goa",
            examples=self.examples,
        )
        return StandIn(spec, lambda arguments: reader.read(arguments).meant(), load)


GOA_TOOLS = (
    GoaTool(
        "read",
        "Read",
        "Read a file before you change it, by line numbers: at most 500 lines and 50,000 bytes in one call.",
        GoaRead,
        (ToolExample("The first 50 lines", {"path": "src/main.go", "max_lines": 50}),),
    ),
    GoaTool(
        "write",
        "Write",
        "Create or overwrite a file. Read an existing one first: its content is gone afterwards.",
        GoaWrite,
        (ToolExample("A new file", {"path": "src/hello.go", "content": "package main\n\nfunc main() {}\n"}),),
    ),
    GoaTool(
        "edit",
        "Edit",
        "Replace text in a file that you have read. Blanks, indentation and quotes may differ from the file's.",
        GoaEdit,
        (
            ToolExample(
                "One change",
                {
                    "path": "src/main.go",
                    "old_string": 'fmt.Println("hello")',
                    "new_string": 'fmt.Println("world")',
                },
            ),
        ),
    ),
    GoaTool(
        "search",
        "Grep",
        "Search files with a regular expression, in any case: source code first, then files with most matches, one "
        "line of context. A pattern with | that matches nothing is searched term by term.",
        GoaSearch,
        (ToolExample("Handlers in Go", {"pattern": "func.*Handler", "glob": "*.go", "max_results": 10}),),
    ),
    GoaTool(
        "bash",
        "Bash",
        "Run a bash script. What it deletes or overwrites is gone: look before you rm. Of a long output the end is "
        "shown, and a file has the whole. What runs longer than 45 s becomes a background task.",
        GoaBash,
        (ToolExample("Run the tests", {"command": "make test", "timeout": 60}),),
    ),
    GoaTool(
        "ask_user_question",
        "AskUserQuestion",
        "Ask the user what only they can decide; they may always answer in their own words, unless allow_free_text is "
        "false.",
        GoaAskUserQuestion,
        (
            ToolExample(
                "One question with options",
                {
                    "questions": [
                        {
                            "title": "Target branch",
                            "summary": "Two release branches are active",
                            "question": "Which branch should I target?",
                            "options": ["main", "release-2.x"],
                        }
                    ]
                },
            ),
        ),
    ),
)
"""goa's names for tools of ours, in its order. Its other four are declared: `ssh_bash__exec` and so on."""


def goa_tools(load: Callable[[str], AnyTool]) -> Sequence[StandIn]:
    return [tool.over(load) for tool in GOA_TOOLS]


def _in_project(path: str) -> str:
    """goa's paths begin in the project, with or without its `@`."""
    return path if path.startswith(("/", "@")) else f"@{path}"


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _as_goas(question: Any) -> Any:
    """`title` is what marks a question as goa's."""
    return {"title": "", **cast("dict[str, Any]", question)} if isinstance(question, dict) else question
