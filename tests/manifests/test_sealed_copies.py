"""A model that can write somewhere cannot thereby run code of its own as a declared tool (R-CONF-1)."""

from __future__ import annotations

import py_compile
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import Settings, path_keys
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore
from tests.manifests.declared import call, gateway_over, python, tool, write

pytestmark = pytest.mark.anyio

ONE = "handlers = {'say': lambda ctx, input: 'as it was'}"
EVIL = "handlers = {'say': lambda ctx, input: 'evil'}"


def names(gateway: Gateway) -> list[str]:
    return [tool.spec.name for tool in gateway.catalog.tools()]


def inside(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / "tools"


def by_a_link(tmp_path: Path) -> Path:
    link = tmp_path / "link"
    link.symlink_to(inside(tmp_path), target_is_directory=True)
    return link


def by_dots(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return tmp_path / "other" / ".." / "workspace" / "tools"


def with_a_linked_folder(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "probe").symlink_to(inside(tmp_path) / "probe", target_is_directory=True)
    return outside


def with_a_linked_file(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    shutil.copytree(inside(tmp_path), outside)
    (outside / "probe" / "tool.yaml").unlink()
    (outside / "probe" / "tool.yaml").symlink_to(inside(tmp_path) / "probe" / "tool.yaml")
    return outside


def below_dot_git(tmp_path: Path) -> Path:
    place = tmp_path / "workspace" / ".git" / "tools"
    shutil.copytree(inside(tmp_path), place)
    return place


@pytest.mark.parametrize("named", [inside, by_a_link, by_dots, with_a_linked_folder, with_a_linked_file, below_dot_git])
async def test_what_tools_may_write_to_counts_as_it_was_at_the_start(
    tmp_path: Path, named: Callable[[Path], Path]
) -> None:
    place = python(inside(tmp_path), "probe", ONE, "say")
    folder = named(tmp_path)
    gateway = gateway_over(tmp_path, folder)

    async with gateway.running():
        for written in {place, folder.resolve() / "probe"}:
            (written / "handlers.py").write_text(EVIL)
        python(inside(tmp_path), "evil", EVIL, "say")
        await anyio.sleep(2.5)  # two looks at directories that are watched
        result = await call(gateway, "probe__say")

        assert "evil__say" not in names(gateway)
    assert result.text == "as it was"


async def test_a_workspace_inside_the_directory_is_within_reach_too(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    place = python(folder, "probe", ONE, "say")
    settings = Settings.model_validate({"workspace": [place], "manifests": [folder]})
    gateway = Gateway(settings, approval=Approval.HOST, state=StateDirectory(tmp_path / "state"))

    async with gateway.running():
        (place / "handlers.py").write_text(EVIL)
        assert (await call(gateway, "probe__say")).text == "as it was"


async def test_a_workspace_that_the_client_names_later_is_within_reach_from_then_on(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / "tools"
    place = python(folder, "probe", ONE, "say")
    gateway = Gateway(
        Settings.model_validate({"manifests": [folder]}),
        approval=Approval.HOST,
        ask_client_for_roots=True,
        state=StateDirectory(tmp_path / "state"),
    )

    async with gateway.running():
        before = await call(gateway, "probe__say")
        gateway.adopt_client_roots([tmp_path / "ws"])
        (place / "handlers.py").write_text(EVIL)
        python(folder, "evil", EVIL, "say")
        await anyio.sleep(2.5)  # two looks at directories that are watched
        after = await call(gateway, "probe__say")

        assert "evil__say" not in names(gateway)
    assert (before.text, after.text) == ("as it was", "as it was")


async def test_what_comes_within_reach_and_cannot_be_copied_is_used_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ws" / "tools"
    python(folder, "probe", ONE, "say")
    gateway = Gateway(
        Settings.model_validate({"manifests": [folder]}),
        approval=Approval.HOST,
        ask_client_for_roots=True,
        state=StateDirectory(tmp_path / "state"),
    )
    monkeypatch.setattr("goat_mcp.manifests.sealed_copy.MAX_FILES", 0)

    gateway.adopt_client_roots([tmp_path / "ws"])

    assert "probe__say" not in names(gateway)
    assert any("nothing of it is used" in problem["detail"] for problem in gateway.problems())


@pytest.mark.parametrize("how", ["a file", "a linked folder"])
async def test_a_warm_process_imports_nothing_that_came_later(tmp_path: Path, how: str) -> None:
    source = """
import importlib
def say(ctx, input):
    return getattr(importlib.import_module(input["module"]), "WORD", "the library's") if input else "warm"
handlers = {"say": say}
"""
    place = python(inside(tmp_path), "probe", source, "say")
    gateway = gateway_over(tmp_path, inside(tmp_path))

    async with gateway.running():
        await call(gateway, "probe__say")
        if how == "a file":
            (place / "colorsys.py").write_text("WORD = 'evil'")
        else:
            evil = tmp_path / "workspace" / "evil"
            evil.mkdir()
            (evil / "__init__.py").write_text("WORD = 'evil'")
            (place / "colorsys").symlink_to(evil, target_is_directory=True)
        assert (await call(gateway, "probe__say", module="colorsys")).text == "the library's"


async def test_a_program_beside_another_manifest_counts_as_it_was_as_well(tmp_path: Path) -> None:
    document = tool("probe", {"command": ["sh", "../shared/run.sh"]}, "say")
    write(inside(tmp_path), document)
    shared = inside(tmp_path) / "shared"
    shared.mkdir()
    (shared / "run.sh").write_text("echo '\"as it was\"'")
    gateway = gateway_over(tmp_path, inside(tmp_path))

    async with gateway.running():
        (shared / "run.sh").write_text("echo '\"evil\"'")
        assert (await call(gateway, "probe__say")).text == "as it was"


async def test_a_link_that_leads_back_is_followed_once(tmp_path: Path) -> None:
    place = python(inside(tmp_path), "probe", ONE, "say")
    (place / "again").symlink_to(inside(tmp_path), target_is_directory=True)
    gateway = gateway_over(tmp_path, inside(tmp_path))

    async with gateway.running():
        assert (await call(gateway, "probe__say")).text == "as it was"


def forged(place: Path, module: str, tmp_path: Path) -> None:
    source = tmp_path / "forged.py"
    source.write_text(EVIL if module == "handlers" else "WORD = 'evil'")
    cached = place / "__pycache__" / f"{module}.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(source), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


async def test_compiled_python_beside_a_handler_is_not_taken_for_it(tmp_path: Path) -> None:
    place = python(inside(tmp_path), "probe", ONE, "say")
    forged(place, "handlers", tmp_path)
    gateway = gateway_over(tmp_path, inside(tmp_path))

    async with gateway.running():
        assert (await call(gateway, "probe__say")).text == "as it was"


async def test_compiled_python_of_a_trusted_project_is_not_run_by_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    document = tool("probe", {"command": [sys.executable, "main.py"]}, "say")
    main = "import json, sys\nsys.path.insert(0, '.')\nimport words\nprint(json.dumps(words.WORD))"
    place = write(project / "tools", document, main_py=main, words_py="WORD = 'as it was'")
    forged(place, "words", tmp_path)
    (project / "goat-mcp.yaml").write_text("manifests: [tools]\n")
    state = StateDirectory(tmp_path / "state")
    monkeypatch.chdir(project)
    found = find_project_file(project)
    assert found is not None
    TrustStore(state).trust(found.path, whole_project(found, path_keys()).sha256)
    gateway = Gateway(load_settings({}, state=state), approval=Approval.HOST, state=state)

    async with gateway.running():
        (place / "words.py").write_text("WORD = 'changed'")
        assert (await call(gateway, "probe__say")).text == "as it was"


async def test_a_handler_that_comes_after_its_manifest_is_found(tmp_path: Path) -> None:
    place = python(tmp_path / "tools", "probe", ONE, "say")
    (place / "handlers.py").rename(tmp_path / "handlers.py")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        assert "probe__say" not in names(gateway)
        (tmp_path / "handlers.py").rename(place / "handlers.py")
        with anyio.fail_after(60):
            while "probe__say" not in names(gateway):  # noqa: ASYNC110  # the watcher looks by itself
                await anyio.sleep(0.05)
        assert (await call(gateway, "probe__say")).text == "as it was"
