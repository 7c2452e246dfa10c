"""`kind: Agent`: a type of agent, for the tool Agent to start. Source: Goondan, "Built-in Tools", on `spec.tools`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from goat_mcp.manifests.entry import is_below
from goat_mcp.manifests.fields import Fields
from goat_mcp.manifests.references import read_references
from goat_mcp.manifests.yaml_document import YamlDocument

if TYPE_CHECKING:  # loaded with the first agent
    from goat_mcp.agents.agent_types import AgentType

PROMPT_KEYS = ("systemPrompt", "systemRef")
WITHOUT_EFFECT = ("modelConfig", "requiredTools", "extensions")
"""What Goondan's agents say of its own runtime."""
AGENT_KEYS = ("tools", "prompts", *WITHOUT_EFFECT)
MAX_PROMPT_BYTES = 256 * 1024


@dataclass(frozen=True)
class AgentDocument:
    """`tools` are selections as in a toolset; None means all that its starter has. An empty `prompt` is that of
    the built-in type for any task."""

    name: str
    document: YamlDocument
    description: str
    prompt: str
    tools: tuple[str, ...] | None

    def agent_type(self, tools: frozenset[str] | None) -> AgentType:
        """With the names of the tools that `self.tools` select now."""
        from goat_mcp.agents.agent_types import BUILT_IN, AgentType

        prompt = self.prompt or BUILT_IN[0].prompt
        return AgentType(name=self.name, description=self.description, prompt=prompt, tools=tools, source="manifest")


def read_agent(name: str, document: YamlDocument, metadata: Fields, spec: Fields) -> AgentDocument:
    """Problems are noted."""
    spec.only(*AGENT_KEYS)
    for key in WITHOUT_EFFECT:
        if key in spec.tree:
            spec.fail(
                f"spec.{key} has no effect here", "see the settings `agent.*`, and `extensions`", key, level="note"
            )
    return AgentDocument(
        name,
        document,
        metadata.text("description", default="") or f"The agent {name} of {document.file.name}.",
        _prompt(spec),
        None if spec.tree.get("tools") is None else () if spec.tree["tools"] == [] else read_references(spec),
    )


def _prompt(spec: Fields) -> str:
    """What `prompts` says, then what the file says that it names; empty without both."""
    prompts = spec.mapping("prompts")
    if prompts is None:
        return ""
    prompts.only(*PROMPT_KEYS)
    text, name = prompts.text("systemPrompt", default=""), prompts.text("systemRef", default="")
    return "\n\n".join(part for part in (text.strip(), _file(prompts, name) if name else "") if part)


def _file(prompts: Fields, name: str) -> str:
    folder = prompts.document.folder
    file = folder / name
    if "\0" in name or not is_below(file, folder):
        prompts.fail(f"{name!r:.80} lies outside the manifest's directory", "move the file there", "systemRef")
        return ""
    try:
        if not file.is_file():  # opening a pipe would wait for whoever writes into it
            raise FileNotFoundError
        with file.open("rb") as opened:
            data = opened.read(MAX_PROMPT_BYTES + 1)
        if len(data) > MAX_PROMPT_BYTES:
            prompts.fail(f"{name} is longer than {MAX_PROMPT_BYTES} bytes", "shorten it", "systemRef")
        return data.decode("utf-8").strip()
    except OSError:
        prompts.fail(f"{name} is not there", "create it beside the manifest, or fix the path", "systemRef")
    except UnicodeDecodeError:
        prompts.fail(f"{name} is not UTF-8 text", "save it as UTF-8", "systemRef")
    return ""
