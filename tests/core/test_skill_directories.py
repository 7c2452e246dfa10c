"""What the list of a skill's files says of its directories."""

from __future__ import annotations

from goat_mcp.core.skill_directories import children_of

ROOT = "skill://refunds"


def test_a_childs_name_is_for_people_and_its_uri_for_the_next_request() -> None:
    children = children_of(
        ROOT, ROOT, [f"{ROOT}/how%20to.md", f"{ROOT}/a%2Fb.md", f"{ROOT}/c%0A.md", f"{ROOT}/d%20e/f"]
    )

    assert children is not None
    assert [(child["name"], child["uri"].removeprefix(ROOT)) for child in children] == [
        ("how to.md", "/how%20to.md"),
        ("a%2Fb.md", "/a%2Fb.md"),
        ("c%0A.md", "/c%0A.md"),
        ("d e", "/d%20e"),
    ]
