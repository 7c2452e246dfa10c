"""Folders with a SKILL.md as tools: what a model is given, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.directory import StateDirectory
from tests.manifests.declared import call, error_of, gateway_over

pytestmark = pytest.mark.anyio

GOOD = """---
name: release-notes
description: How release notes are written here. Use it before you write any.
---
# Release notes

Begin with what a user can see. A template is in template.md.
"""


def skill(folder: Path, name: str, text: str, **files: str) -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(text)
    for file, content in files.items():
        (place / file.replace("_md", ".md")).write_text(content)
    return place


def over(tmp_path: Path, **settings: Any) -> Gateway:
    return gateway_over(tmp_path, skills=[str(tmp_path / "skills")], **settings)


async def test_a_skill_is_listed_with_its_description_and_gives_its_instructions(tmp_path: Path) -> None:
    place = skill(tmp_path / "skills", "notes", GOOD, template_md="## Added")
    gateway = over(tmp_path)

    async with gateway.running():
        result = await call(gateway, "skill__release-notes")

    entry = gateway.catalog.shown()["skill__release-notes"].entry
    assert entry["description"] == "How release notes are written here. Use it before you write any."
    assert entry["annotations"]["readOnlyHint"] is True
    assert result.text.splitlines() == [
        "# Release notes",
        "",
        "Begin with what a user can see. A template is in template.md.",
        "",
        f"Files of this skill, in {place} (give one as `file`):",
        "  template.md",
    ]


async def test_its_files_are_given_by_name_and_nothing_outside_it(tmp_path: Path) -> None:
    place = skill(tmp_path / "skills", "notes", GOOD, template_md="## Added")
    (tmp_path / "secret.md").write_text("secret")
    (place / ".hidden").write_text("x")
    (place / "link.md").symlink_to(tmp_path / "secret.md")
    gateway = over(tmp_path)

    async with gateway.running():
        template = await call(gateway, "skill__release-notes", file="template.md")
        outside = [
            await call(gateway, "skill__release-notes", file=file)
            for file in (
                "../../secret.md",
                str(tmp_path / "secret.md"),
                "link.md",
                "no.md",
                ".",
                ".hidden",
                "a\0b",
                "x" * 5000,
            )
        ]

    assert template.text == "## Added"
    assert [error_of(result)["code"] for result in outside] == ["E_NOT_FOUND"] * 8


async def test_without_the_setting_there_are_none(tmp_path: Path) -> None:
    skill(tmp_path / "skills", "notes", GOOD)

    assert "skill__release-notes" not in gateway_over(tmp_path).catalog.shown()


BROKEN = {
    "no front matter": ("# Notes", "it does not begin with front matter between two lines of ---"),
    "no description": ("---\nname: notes\n---\n", "`description` is missing: it tells a model when to use the skill"),
    "a name with two lines": (
        "---\nname: a__b\ndescription: x\n---\n",
        "`name` has to be letters, digits and single - or _, at most 43",
    ),
    "a name twice": (GOOD, "another skill is called release-notes already"),
}


@pytest.mark.parametrize(("text", "problem"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_one_is_named_and_the_others_are_there(tmp_path: Path, text: str, problem: str) -> None:
    skill(tmp_path / "skills", "a_good", GOOD)
    place = skill(tmp_path / "skills", "bad", text)
    gateway = over(tmp_path)

    assert "skill__release-notes" in gateway.catalog.shown()
    assert gateway.problems() == [
        {"name": "bad", "reason_code": "broken_skill", "detail": f"{place}/SKILL.md: {problem}"}
    ]


async def test_a_rule_about_files_holds_for_it(tmp_path: Path) -> None:
    skill(tmp_path / "skills", "notes", GOOD, private_md="x")
    gateway = over(tmp_path, permissions={"deny": [f"Read(/{tmp_path}/skills/notes/private.md)"]})

    async with gateway.running():
        denied = await call(gateway, "skill__release-notes", file="private.md")

    assert error_of(denied)["code"] == "E_PERMISSION"


async def test_a_trusted_projects_skill_is_the_one_that_was_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-CONF-1."""
    from goat_mcp.settings.settings import path_keys
    from goat_mcp.state.trust.project import whole_project
    from goat_mcp.state.trust.settings_file import find_project_file
    from goat_mcp.state.trust.store import TrustStore

    project = tmp_path / "project"
    place = skill(project / "skills", "notes", GOOD)
    (project / "goat-mcp.yaml").write_text("skills: [skills]\n")
    state = StateDirectory(tmp_path / "state")
    monkeypatch.chdir(project)
    found = find_project_file(project)
    assert found is not None
    TrustStore(state).trust(found.path, whole_project(found, path_keys()).sha256)
    gateway = Gateway(load_settings({}, state=state), approval=Approval.HOST, state=state)

    async with gateway.running():
        (place / "SKILL.md").write_text(GOOD.replace("Begin", "Lie"))
        (place / "new.md").write_text("x")
        instructions = await call(gateway, "skill__release-notes")
        new = await call(gateway, "skill__release-notes", file="new.md")

    assert "Begin with what a user can see." in instructions.text
    assert error_of(new)["code"] == "E_QUARANTINED"
