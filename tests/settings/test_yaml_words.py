"""`off`, `on`, `yes` and `no`, which YAML reads as truth values, where a setting or a manifest has them as words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.manifests.folder import ManifestFolders
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import Settings
from tests.manifests.declared import call, gateway_over

pytestmark = pytest.mark.anyio
WORDS = ("off", "on", "yes", "no")


def _settings_with_words() -> Iterator[tuple[str, str]]:
    """Every setting that has such a value, as its JSON Schema says, with the word."""
    schema = Settings.model_json_schema()

    def search(node: Mapping[str, Any], key: str) -> Iterator[tuple[str, str]]:
        if "$ref" in node:
            yield from search(schema["$defs"][node["$ref"].rpartition("/")[2]], key)
        yield from ((key, word) for word in WORDS if word in node.get("enum", ()))
        for other in node.get("anyOf", ()):
            yield from search(other, key)
        for name, child in node.get("properties", {}).items():
            yield from search(child, f"{key}.{name}".lstrip("."))

    yield from search(schema, "")


SETTINGS = sorted(set(_settings_with_words()))


def test_some_settings_have_such_words() -> None:
    assert ("files.read_before_write", "off") in SETTINGS and ("sandbox", "off") in SETTINGS


@pytest.mark.parametrize(("key", "word"), SETTINGS)
def test_a_word_without_quotes_is_understood_in_each_setting_that_has_it(tmp_path: Path, key: str, word: str) -> None:
    *above, last = key.split(".")
    file = tmp_path / "settings.yaml"
    file.write_text("".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(above)))
    with file.open("a") as opened:
        opened.write(f"{'  ' * len(above)}{last}: {word}\n")
    assert isinstance(yaml.safe_load(f"{last}: {word}")[last], bool)

    value: Any = load_settings({}, config_file=file)

    for name in key.split("."):
        value = getattr(value, name)
    assert value == word


UPSTREAM = """\
apiVersion: goat-mcp/v1
kind: Upstream
metadata: {name: notes}
spec: {command: /bin/true, pin: off, input_check: off, output_check: off, sandbox: off}
"""


async def test_a_declared_upstream_takes_them_too(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "notes.yaml").write_text(UPSTREAM)

    gateway: Gateway = gateway_over(tmp_path, folder)

    (config,) = gateway.upstreams.configs
    assert (config.pin, config.input_check, config.output_check) == ("off", "off", "off")
    assert gateway.problems() == []


TOOL = """\
apiVersion: goondan.ai/v1
kind: Tool
metadata: {name: lamp}
spec:
  entry: ./handlers.py
  config:
    type: object
    properties: {night: {type: string, enum: [on, off]}}
  exports:
    - name: turn
      description: Turns the lamp.
      sideEffect: none
      parameters:
        type: object
        properties:
          to: {type: string, enum: [on, off, dim], default: off}
          land: {type: array, items: {type: string, enum: [SE, NO]}}
"""
HANDLERS = "handlers = {'turn': lambda ctx, input: {'input': input, 'night': ctx.config.get('night')}}"


async def test_a_tools_parameters_and_its_settings_have_them_as_texts(tmp_path: Path) -> None:
    folder = tmp_path / "tools" / "lamp"
    folder.mkdir(parents=True)
    (folder / "tool.yaml").write_text(TOOL)
    (folder / "handlers.py").write_text(HANDLERS)
    settings = tmp_path / "settings.yaml"
    settings.write_text("tools:\n  lamp:\n    night: off\n")
    tools = load_settings({}, config_file=settings).tools
    gateway = gateway_over(tmp_path, tmp_path / "tools", tools=tools)

    async with gateway.running():
        result = await call(gateway, "lamp__turn", to="off", land=["NO"])

    assert result.structured == {"input": {"to": "off", "land": ["NO"]}, "night": "off"}
    assert ManifestFolders([tmp_path / "tools"]).read().problems == ()
