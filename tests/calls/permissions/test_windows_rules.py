"""Rules about paths on Windows, which need none: drives are directories, and case does not count."""

import pytest

from goat_mcp.calls.permissions.patterns import exact_path_pattern, parse_path_pattern
from goat_mcp.core import platform

ROOTS = (r"C:\Users\ada\project",)
SECRET = r"C:\Users\ada\project\conf\Secret.env"


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")


@pytest.mark.parametrize(
    "rule",
    [
        "//c/Users/ada/project/conf/**",
        "//c/**/*.env",
        "//**/secret.env",
        "C:/Users/ada/project/conf/*.env",
        "C:\\Users\\ada\\project\\conf\\secret.env",
        "/conf/**",
        "./conf/*.env",
        "SECRET.ENV",
        "*.env",
    ],
)
@pytest.mark.parametrize(
    "path", [SECRET, SECRET.lower(), SECRET.replace("\\", "/"), "/c/Users/ada/project/conf/secret.env"]
)
def test_a_rule_means_the_file_in_every_spelling(rule: str, path: str) -> None:
    assert parse_path_pattern(rule).matches(path, ROOTS)


@pytest.mark.parametrize("rule", ["//d/Users/ada/project/conf/**", "//c/Users/ada/other/**", "D:/**", "/secret.env"])
def test_a_rule_about_another_place_does_not(rule: str) -> None:
    assert not parse_path_pattern(rule).matches(SECRET, ROOTS)


def test_a_rule_about_the_home_directory_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):  # Windows asks for the second
        monkeypatch.setenv(variable, r"C:\Users\ada")

    assert parse_path_pattern("~/project/conf/**").matches(SECRET, ())


def test_the_exact_pattern_of_a_path_means_it_and_nothing_else() -> None:
    pattern = parse_path_pattern(exact_path_pattern(SECRET))

    assert pattern.is_path(SECRET, ROOTS)
    assert pattern.matches(SECRET, ROOTS)
    assert not pattern.matches(SECRET + "x", ROOTS)


def test_a_settings_folder_on_a_drive_is_what_its_rules_are_relative_to() -> None:
    pattern = parse_path_pattern("/conf/**", r"C:\Users\ada\project")

    assert pattern.matches(SECRET, ())
    assert not pattern.matches(r"C:\Users\ada\conf\x", ())
