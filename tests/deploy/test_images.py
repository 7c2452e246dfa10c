"""The Dockerfile and the compose file: what linters say of them, and what they promise about users and file systems."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import settings_of
from tests.deploy.files import DEPLOY, ROOT

compose_spec: Any = pytest.importorskip("compose_spec", reason="it has no wheel for this system")
ENVIRONMENT = {"GOAT_HOSTS": "localhost:8080", "VALKEY_PASSWORD": "a-password"}
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::([-?])([^}]*))?\}")


def hadolint(text: str) -> str:
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([program, "-"], input=text, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def compose(text: str) -> dict[str, Any]:
    """The file as compose reads it, variables filled in. Raises `ValueError` for what is no compose file."""

    def value(found: re.Match[str]) -> str:
        name, sign, default = found.groups()
        return ENVIRONMENT.get(name, default if sign == "-" else "")

    document = yaml.safe_load(_VARIABLE.sub(value, text))
    compose_spec.PyCompose.from_json(json.dumps(document)).validate()
    return document


def test_hadolint_finds_nothing_and_would_find_something() -> None:
    text = (DEPLOY / "Dockerfile").read_text()

    assert hadolint(text) == ""
    assert "DL3002" in hadolint(text.replace("USER 10001:10001", "USER root"))


def test_what_the_image_is_built_from_is_there_and_let_into_the_build() -> None:
    allowed = [
        line.removeprefix("!")
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    built_from = re.search(r"include = \[(.*?)\]", (ROOT / "pyproject.toml").read_text())
    assert built_from is not None
    sources = {name.strip('"/ ') for name in built_from[1].split(",")}

    assert [name for name in allowed if not (ROOT / name).exists()] == []
    assert sources | {"pyproject.toml", "README.md", "LICENSE", "constraints.txt"} <= set(allowed)


def test_the_images_variables_are_settings() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    values = dict(re.findall(r"GOAT_MCP_(\w+)=(\S+)", text))
    settings = {key.lower().replace("__", "."): value for key, value in values.items()}

    assert settings.pop("state_dir") == "/var/lib/goat-mcp"
    assert settings.pop("resident") == "0"
    loaded = load_settings({}, overrides=[f"{key}={value}" for key, value in settings.items()])
    assert (loaded.sandbox, loaded.ui.enabled) == ("required", False)


def test_the_compose_file_is_one_and_a_broken_one_is_not() -> None:
    text = (DEPLOY / "compose.yaml").read_text()

    assert set(compose(text)["services"]) == {"goat-1", "goat-2", "goat-3", "balancer", "valkey"}
    with pytest.raises(ValueError, match="goat-token"):
        compose(text.replace("secrets:\n  goat-token:", "secrets:\n  other-token:"))
    with pytest.raises(ValueError, match="read_onli"):
        compose(text.replace("read_only: true", "read_onli: true"))


@pytest.mark.parametrize("name", ["goat-1", "goat-2", "goat-3", "balancer", "valkey"])
def test_every_service_is_confined_and_bounded(name: str) -> None:
    service = compose((DEPLOY / "compose.yaml").read_text())["services"][name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "mem_limit" in service
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_replicas_settings_load_and_the_balancer_knows_their_names() -> None:
    services = compose((DEPLOY / "compose.yaml").read_text())["services"]
    balancer = (DEPLOY / "haproxy.cfg").read_text()
    names: list[str] = []
    for service in ("goat-1", "goat-2", "goat-3"):
        tree: dict[str, Any] = {}
        for variable, value in services[service]["environment"].items():
            part, _, key = variable.removeprefix("GOAT_MCP_").lower().partition("__")
            tree.setdefault(part, {})[key] = value
        names.append(settings_of(tree, service).replica.name)

    assert names == ["goat-1", "goat-2", "goat-3"] == re.findall(r"^    server (\S+)", balancer, re.MULTILINE)
    assert [services["balancer"]["environment"][f"GOAT_{n}"] for n in (1, 2, 3)] == [
        f"goat-{n}:8765" for n in (1, 2, 3)
    ]
    options = services["goat-1"]["command"]
    assert load_settings({}, overrides=[options[options.index("--set") + 1]]).catalog.toolsets == ("upstream",)


def test_the_example_of_variables_names_all_of_them() -> None:
    wanted = {name for name, _, _ in _VARIABLE.findall((DEPLOY / "compose.yaml").read_text())}
    given = {line.partition("=")[0] for line in (DEPLOY / "env.example").read_text().splitlines() if "=" in line[:40]}

    assert wanted == given
