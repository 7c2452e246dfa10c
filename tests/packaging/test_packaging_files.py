"""What the MCP registry and desktop hosts are told of the package: true, and in the shape that they take.

What their schemas want is said here in our words (server.json of 2025-12-11, MCPB manifest 0.4), for nothing is
fetched; only what these two files use. The MCPB's own program checks the manifest in `tests/e2e/test_bundle.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from goat_mcp import __version__
from goat_mcp.gateway.build.manifests import shipped, shipped_folder
from goat_mcp.settings.settings import Settings
from scripts.packaging_files import BUNDLE_FILE, REGISTRY_FILE, project
from tests.contract.test_every_tool import TOOLS

ROOT = Path(__file__).parents[2]
PROJECT = project()
SERVER: dict[str, Any] = json.loads(REGISTRY_FILE.read_text())
BUNDLE: dict[str, Any] = json.loads(BUNDLE_FILE.read_text())
VARIABLE = re.compile(r"\$\{([^}]+)\}")


def shaped(given: Mapping[str, Any], required: Collection[str], optional: Collection[str] = ()) -> bool:
    return set(required) <= set(given) <= {*required, *optional}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():  # pyright: ignore[reportUnknownVariableType]  # JSON
            yield from texts(member)
    elif isinstance(value, list):
        for member in value:  # pyright: ignore[reportUnknownVariableType]  # JSON
            yield from texts(member)


# --- the registry


def test_the_readme_that_is_released_claims_the_name_under_which_the_registry_has_the_server() -> None:
    readme = (ROOT / PROJECT["readme"]).read_text()

    assert re.findall(r"<!-- mcp-name: (\S+) -->", readme) == [SERVER["name"]]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert 3 <= len(SERVER["name"]) <= 200
    assert SERVER["name"].split("/")[1] == PROJECT["name"]


def test_the_registry_is_told_the_version_and_the_name_of_the_released_package() -> None:
    (package,) = SERVER["packages"]

    assert SERVER["version"] == package["version"] == __version__
    assert (package["registryType"], package["identifier"]) == ("pypi", PROJECT["name"])
    # So `uvx` needs no other word to start it.
    assert list(PROJECT["scripts"]) == [package["identifier"]]


def test_server_json_has_the_shape_of_its_schema() -> None:
    assert SERVER["$schema"].endswith("/schemas/2025-12-11/server.schema.json")
    assert shaped(SERVER, ["$schema", "name", "description", "version"], ["title", "packages"])
    assert 1 <= len(SERVER["description"]) <= 100
    assert 1 <= len(SERVER["title"]) <= 100
    assert len(SERVER["version"]) <= 255 and re.fullmatch(r"\d+\.\d+\.\d+\S*", SERVER["version"])
    for package in SERVER["packages"]:
        assert shaped(
            package,
            ["registryType", "identifier", "version", "transport"],
            ["runtimeHint", "packageArguments", "environmentVariables"],
        )
        assert package["transport"] == {"type": "stdio"}
        kinds = {"positional": ["type", "value"], "named": ["type", "name"]}
        inputs = ["description", "format", "isRequired", "isRepeated"]
        assert all(shaped(one, kinds[one["type"]], inputs) for one in package["packageArguments"])
        assert all(shaped(one, ["name"], inputs) for one in package["environmentVariables"])


# --- the bundle


def test_the_bundle_is_the_same_package() -> None:
    same = ("name", "version", "description", "license", "keywords")

    assert {key: BUNDLE[key] for key in same} == {key: PROJECT[key] for key in same}
    assert BUNDLE["compatibility"]["runtimes"] == {"python": PROJECT["requires-python"]}


def test_the_manifest_has_the_shape_of_its_schema() -> None:
    assert BUNDLE["manifest_version"] == "0.4"
    assert shaped(
        BUNDLE,
        ["manifest_version", "name", "version", "description", "author", "server"],
        ["display_name", "license", "keywords", "tools", "tools_generated", "compatibility", "user_config"],
    )
    assert shaped(BUNDLE["author"], ["name"], ["email", "url"])
    assert shaped(BUNDLE["server"], ["type", "entry_point"], ["mcp_config"])
    assert BUNDLE["server"]["type"] == "uv" and (ROOT / BUNDLE["server"]["entry_point"]).is_file()
    assert shaped(BUNDLE["server"]["mcp_config"], ["command"], ["args", "env"])
    assert all(shaped(tool, ["name"], ["description"]) for tool in BUNDLE["tools"])
    assert shaped(BUNDLE["compatibility"], [], ["platforms", "runtimes"])
    assert set(BUNDLE["compatibility"]["platforms"]) <= {"darwin", "win32", "linux"}
    for option in BUNDLE["user_config"].values():
        assert shaped(option, ["type", "title", "description"], ["required", "default", "multiple", "sensitive"])
        assert option["type"] in ("string", "number", "boolean", "directory", "file")


def test_the_manifest_lists_the_tools_that_are_there_without_a_setting_and_says_that_there_may_be_more() -> None:
    on = Settings().catalog.toolsets

    assert [tool["name"] for tool in BUNDLE["tools"]] == [tool.spec.name for tool in TOOLS if tool.spec.toolset in on]
    assert BUNDLE["tools_generated"] is True


def test_each_field_of_the_form_is_used_and_each_use_has_its_field() -> None:
    used = {name for text in texts(BUNDLE["server"]) for name in VARIABLE.findall(text)}

    assert used == {"__dirname", *(f"user_config.{name}" for name in BUNDLE["user_config"])}
    # A host puts nothing in the place of what was left empty and has no default.
    assert [name for name, option in BUNDLE["user_config"].items() if not option.get("required", False)] == [
        name for name, option in BUNDLE["user_config"].items() if "default" in option
    ]


def test_a_field_for_a_secret_is_kept_as_one() -> None:
    secret = re.compile("key|token|secret|password", re.IGNORECASE)

    asked = {name: option.get("sensitive", False) for name, option in BUNDLE["user_config"].items()}
    assert [name for name, is_sensitive in asked.items() if bool(secret.search(name)) is not is_sensitive] == []


def test_what_describes_the_package_is_taken_for_no_tool() -> None:
    assert REGISTRY_FILE.parent.parent == shipped_folder()
    assert "packaging" not in {resource.name for resource in shipped().tools}
    assert not shipped().problems
