"""Rules with patterns: what they match, what they leave, and what is no rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.calls.permissions.decide import decide
from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.patterns import exact_path_pattern, parse_path_pattern
from goat_mcp.calls.permissions.rule import BrokenRule, Call, parse_rule
from goat_mcp.calls.permissions.rule_set import FileRules, RuleSet
from goat_mcp.core.side_effect import SideEffect
from tests.tool_doubles import spec

ROOTS = ("/ws", "/other")
ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY


def on_file(tool: str, *paths: str, asked: str = "") -> Call:
    effect = SideEffect.NONE if tool == "Read" else SideEffect.MUTATING
    asked_paths = (asked,) if asked else paths
    return Call(spec(tool, effect), {}, asked_paths, paths if tool == "Read" else (), paths, ROOTS)


def with_arguments(tool: str, **arguments: Any) -> Call:
    return Call(spec(tool, SideEffect.NETWORK), arguments, roots=ROOTS)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (
            "./secrets/**",
            ["/ws/secrets/a", "/other/secrets/b/c"],
            ["/ws/x/secrets/a", "/ws/secretsx", "/etc/secrets/a"],
        ),
        ("secrets", ["/ws/secrets", "/ws/a/secrets/b"], ["/ws/secrets2"]),
        (".env", ["/ws/.env", "/ws/a/b/.env"], ["/ws/.envrc", "/ws/x.env"]),
        ("*.pem", ["/ws/k.pem", "/ws/a/k.pem"], ["/ws/k.pem.txt"]),
        ("src/*.py", ["/ws/src/a.py"], ["/ws/src/b/a.py", "/ws/a/src/a.py"]),
        ("src/**", ["/ws/src/a.py", "/ws/src/b/a.py"], ["/ws/srcs/a.py"]),
        ("/src/a.py", ["/ws/src/a.py", "/other/src/a.py"], ["/ws/b/src/a.py"]),
        ("//etc/**", ["/etc/passwd", "/etc/ssl/x"], ["/ws/etc/passwd"]),
        ("//ws/a[1].py", ["/ws/a1.py"], ["/ws/a[1].py"]),
        ("**", ["/ws/a", "/other/b/c"], ["/etc/passwd"]),
        ("{a,b}.txt", ["/ws/a.txt", "/ws/x/b.txt"], ["/ws/c.txt"]),
    ],
)
def test_a_path_pattern_reads_like_a_line_of_an_ignore_file(
    pattern: str, matching: list[str], other: list[str]
) -> None:
    parsed = parse_path_pattern(pattern)

    assert [path for path in (*matching, *other) if parsed.matches(path, ROOTS)] == matching


def test_a_pattern_below_the_home_directory() -> None:
    assert parse_path_pattern("~/.ssh/**").matches(f"{Path.home()}/.ssh/id", ROOTS)


def test_a_slash_first_is_below_the_folder_of_the_file_that_holds_the_rule() -> None:
    parsed = parse_path_pattern("/src/**", "/project")

    assert parsed.matches("/project/src/a", ROOTS) and not parsed.matches("/ws/src/a", ROOTS)


def test_what_holds_for_a_file_holds_for_its_copy_in_an_agents_worktree() -> None:
    assert parse_path_pattern("./secrets/**").matches("/ws/.worktrees/fix/secrets/key", ROOTS)
    assert not parse_path_pattern("./secrets/**").matches("/ws/.worktrees/secrets/key", ROOTS)


@given(
    st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1).filter(
        lambda name: name not in (".", "..")
    )
)
def test_an_exact_pattern_means_its_path_whatever_is_in_the_name(name: str) -> None:
    pattern = parse_path_pattern(exact_path_pattern(f"/ws/{name}"))

    assert pattern.is_exact and pattern.is_path(f"/ws/{name}", ROOTS) and pattern.matches(f"/ws/{name}", ROOTS)
    assert not pattern.matches(f"/ws/{name}x", ROOTS)


@pytest.mark.parametrize("tool", ["Edit", "Write", "NotebookEdit"])
def test_an_edit_rule_is_about_every_tool_that_changes_files(tool: str) -> None:
    call = on_file(tool, "/ws/src/a.py")

    assert decide(call, RuleSet.parse(allow=["Edit(src/**)"]), Mode.DONT_ASK).effect is ALLOW
    assert decide(call, RuleSet.parse(deny=["Edit(src/**)"]), Mode.BYPASS).effect is DENY
    assert decide(call, RuleSet.parse(ask=["Edit(src/**)"]), Mode.BYPASS).effect is ASK


@pytest.mark.parametrize("rule", ["Edit", "Edit(*)", "Edit(**)"])
@pytest.mark.parametrize("tool", ["Edit", "Write", "NotebookEdit", "file-system__write"])
def test_edit_alone_is_about_every_tool_that_changes_files(tool: str, rule: str) -> None:
    call = on_file(tool, "/ws/src/a.py")

    assert decide(call, RuleSet.parse(deny=[rule]), Mode.BYPASS).effect is DENY
    assert decide(call, RuleSet.parse(ask=[rule]), Mode.BYPASS).effect is ASK
    assert decide(call, RuleSet.parse(allow=[rule]), Mode.DONT_ASK).effect is ALLOW


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "file-system__read", "Write", "NotebookEdit"])
def test_read_alone_is_about_every_tool_that_reads_and_what_may_not_be_read_is_not_written(tool: str) -> None:
    call = on_file(tool, "/ws/src/a.py")

    assert decide(call, RuleSet.parse(deny=["Read"]), Mode.BYPASS).effect is DENY
    assert decide(call, RuleSet.parse(ask=["Read"]), Mode.BYPASS).effect is ASK


def test_to_read_is_not_to_write_and_one_writer_is_not_all() -> None:
    write, edit = on_file("Write", "/ws/a"), on_file("Edit", "/ws/a")

    assert decide(write, RuleSet.parse(allow=["Read"]), Mode.DONT_ASK).effect is DENY
    assert decide(edit, RuleSet.parse(allow=["Write"]), Mode.DONT_ASK).effect is DENY
    assert decide(edit, RuleSet.parse(deny=["Write"]), Mode.BYPASS).effect is ALLOW
    assert decide(on_file("Read", "/ws/a"), RuleSet.parse(deny=["Edit"]), Mode.BYPASS).effect is ALLOW


@pytest.mark.parametrize("rule", ["Edit", "Write", "Edit(a)", "Write(a)", "Read(a)"])
def test_a_declared_tool_is_bound_by_what_denies_or_asks_about_the_file_that_it_changes(rule: str) -> None:
    tool = spec("notes__save", SideEffect.MUTATING, toolset="manifests")
    writing = Call(tool, {}, ("/ws/a",), (), ("/ws/a",), ROOTS)
    reading = Call(tool, {}, ("/ws/a",), ("/ws/a",), (), ROOTS)
    other = Call(tool, {}, roots=ROOTS)

    assert decide(writing, RuleSet.parse(deny=[rule]), Mode.BYPASS).effect is DENY
    assert decide(writing, RuleSet.parse(ask=[rule]), Mode.BYPASS).effect is ASK
    assert decide(writing, RuleSet.parse(allow=[rule]), Mode.DONT_ASK).effect is DENY
    assert decide(reading, RuleSet.parse(deny=[rule]), Mode.BYPASS).effect is (DENY if rule == "Read(a)" else ALLOW)
    assert decide(other, RuleSet.parse(deny=[rule]), Mode.BYPASS).effect is ALLOW


@pytest.mark.parametrize(
    ("rule", "denied"),
    [
        ("Edit", {"Edit", "Write", "NotebookEdit", "file-system__write"}),
        ("Write", {"Write", "file-system__write"}),
        ("Edit(src/**)", set[str]()),
    ],
)
def test_what_is_denied_wholly_is_known_before_any_call(rule: str, denied: set[str]) -> None:
    rules = RuleSet.parse(deny=[rule])
    tools = ("Read", "Grep", "Edit", "Write", "NotebookEdit", "Bash", "file-system__write")

    assert {tool for tool in tools if rules.denies_tool(spec(tool, SideEffect.MUTATING))} == denied


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write", "NotebookEdit"])
def test_what_may_not_be_read_may_not_be_written_either(tool: str) -> None:
    call = on_file(tool, "/ws/.env")

    assert decide(call, RuleSet.parse(deny=["Read(./.env)"]), Mode.BYPASS).effect is DENY


def test_a_deny_rule_holds_for_the_name_asked_for_and_for_the_file_it_leads_to() -> None:
    rules = RuleSet.parse(deny=["Read(./secret.txt)"])

    assert decide(on_file("Read", "/ws/secret.txt", asked="/ws/alias"), rules, Mode.BYPASS).effect is DENY
    assert decide(on_file("Read", "/ws/plain.txt", asked="/ws/secret.txt"), rules, Mode.BYPASS).effect is DENY
    assert decide(on_file("Read", "/ws/plain.txt", asked="/ws/alias"), rules, Mode.BYPASS).effect is ALLOW


def test_an_allow_rule_wants_both() -> None:
    rules = RuleSet.parse(allow=["Edit(src/**)"])

    assert decide(on_file("Edit", "/ws/lib/a.py", asked="/ws/src/a.py"), rules, Mode.DONT_ASK).effect is DENY
    assert decide(on_file("Edit", "/ws/src/a.py", asked="/ws/src/b.py"), rules, Mode.DONT_ASK).effect is ALLOW


@pytest.mark.parametrize(
    ("rule", "url", "is_meant"),
    [
        ("domain:example.org", "https://example.org/x", True),
        ("domain:example.org", "https://docs.example.org/", True),
        ("domain:example.org", "https://notexample.org/", False),
        ("domain:example.org", "https://example.org.evil.test/", False),
        ("domain:example.org", "https://example.org@evil.test/", False),
        ("domain:*.example.org", "https://docs.example.org/", True),
        ("domain:*.example.org", "https://example.org/", False),
        ("domain:EXAMPLE.org", "https://Example.ORG./", True),
        ("domain:bücher.example", "https://xn--bcher-kva.example/", True),
    ],
)
def test_a_domain_rule_ends_at_a_label(rule: str, url: str, is_meant: bool) -> None:
    call = with_arguments("WebFetch", url=url)

    decision = decide(call, RuleSet.parse(allow=[f"WebFetch({rule})"]), Mode.DONT_ASK)

    assert (decision.effect is ALLOW) == is_meant


@pytest.mark.parametrize(
    ("rule", "arguments", "is_meant"),
    [
        ("repo:org/*", {"repo": "org/site"}, True),
        ("repo:org/*", {"repo": "organic/site"}, False),
        ("repo:org/*", {}, False),
        ("repo:org/*", {"repo": ["org/a", "evil/b"]}, False),
        ("repo:org/*", {"repo": ["org/a", "org/b"]}, True),
        ("issue.labels:*bug*", {"issue": {"labels": ["a bug", "bug 2"]}}, True),
        ("draft:true", {"draft": True}, True),
        ("count:3", {"count": 3}, True),
    ],
)
def test_a_rule_may_look_at_an_argument_of_an_upstreams_tool(
    rule: str, arguments: dict[str, Any], is_meant: bool
) -> None:
    call = with_arguments("mcp__github__create_issue", **arguments)

    decision = decide(call, RuleSet.parse(allow=[f"mcp__github__create_issue({rule})"]), Mode.DONT_ASK)

    assert (decision.effect is ALLOW) == is_meant


def test_one_entry_of_a_list_is_enough_to_deny() -> None:
    call = with_arguments("mcp__github__push", repo=["org/a", "evil/b"])

    assert decide(call, RuleSet.parse(deny=["mcp__github__push(repo:evil/*)"]), Mode.BYPASS).effect is DENY


@pytest.mark.parametrize(("arguments", "effect"), [({"subagent_type": "explorer"}, ALLOW), ({}, DENY)])
def test_a_rule_may_name_a_kind_of_agent(arguments: dict[str, Any], effect: Effect) -> None:
    rules = RuleSet.parse(allow=["Agent(explorer)"], deny=["Agent(general-purpose)"])

    assert decide(with_arguments("Agent", **arguments), rules, Mode.DONT_ASK).effect is effect


def test_tools_of_a_server_by_a_part_of_their_names() -> None:
    rules = RuleSet.parse(allow=["mcp__github__get_*"])

    assert decide(with_arguments("mcp__github__get_issue"), rules, Mode.DONT_ASK).effect is ALLOW
    assert decide(with_arguments("mcp__github__delete_issue"), rules, Mode.DONT_ASK).effect is DENY


@pytest.mark.parametrize("rule", ["*", "mcp__*"])
def test_everything_may_be_denied_and_asked_about_but_not_allowed(rule: str) -> None:
    call = with_arguments("mcp__github__get_issue")

    assert decide(call, RuleSet.parse(deny=[rule]), Mode.BYPASS).effect is DENY
    assert decide(call, RuleSet.parse(ask=[rule]), Mode.BYPASS).effect is ASK
    with pytest.raises(BrokenRule):
        RuleSet.parse(allow=[rule])


@pytest.mark.parametrize(
    "text",
    [
        *("Bash(git", "Bash(**)", "", "   ", "Bash)", "Bash()", "(x)", "Read(../x)", "Read(!x)", "Read(@/x)"),
        *("Read(a[b)", "WebFetch(example.org)", "WebFetch(domain:)", "WebFetch(domain:a b)"),
        *(
            "mcp__github(repo:x)",
            "mcp__github__get_*(repo:x)",
            "mcp__github__create(repo)",
            "Agent()",
            "Read(a)(b",
            "mcp__*__x",
        ),
    ],
)
def test_a_broken_rule_is_named_with_its_place(text: str) -> None:
    """PM-07"""
    with pytest.raises(BrokenRule) as caught:
        parse_rule(text, origin="goat-mcp.yaml:7", may_name_all=True)

    assert repr(text) in str(caught.value) and "goat-mcp.yaml:7" in str(caught.value)


def test_a_pattern_that_would_run_away_does_not() -> None:  # PM-07
    rule = parse_rule(f"mcp__a__b(x:{'*a' * 500}b)")

    assert not rule.covers(with_arguments("mcp__a__b", x="a" * 20_000))


PATHS = st.sampled_from(["/ws/a", "/ws/secrets/a", "/ws/src/a.py", "/other/secrets/x", "/ws/.env"])
PATTERNS = st.lists(
    st.sampled_from(["Edit", "Edit(src/**)", "Edit(secrets/**)", "Read(.env)", "Write(//ws/a)", "Write", "Edit(**)"]),
    max_size=5,
)


@given(PATHS, PATTERNS, PATTERNS, PATTERNS, st.sampled_from(list(Mode)))
def test_deny_beats_ask_beats_allow_whatever_the_order_and_how_narrow(
    path: str, allow: list[str], ask: list[str], deny: list[str], mode: Mode
) -> None:
    """PM-01, R-PERM-1"""
    call = on_file("Write", path)
    alone = {text: decide(call, RuleSet.parse(deny=[text]), Mode.BYPASS).effect is DENY for text in (*deny, *ask)}

    forwards = decide(call, RuleSet.parse(allow=allow, ask=ask, deny=deny), mode)
    backwards = decide(call, RuleSet.parse(allow=allow[::-1], ask=ask[::-1], deny=deny[::-1]), mode)

    assert forwards.effect is backwards.effect
    if any(alone[text] for text in deny):
        assert forwards.effect is DENY
    elif any(alone[text] for text in ask):
        assert forwards.effect is ASK
    elif mode is Mode.BYPASS:
        assert forwards.effect is ALLOW


def bash(command: str) -> Call:
    return Call(spec("Bash", SideEffect.NETWORK), {"command": command}, roots=ROOTS)


@pytest.mark.parametrize(
    ("rule", "command", "is_meant"),
    [
        ("ls *", "ls", True),
        ("ls *", "ls -la", True),
        ("ls *", "ls   -la", True),
        ("ls *", "lsof", False),
        ("ls*", "lsof", True),
        ("npm run test:*", "npm run test", True),
        ("npm run test:*", "npm run test -- -x", True),
        ("npm run test:*", "npm run tests", False),
        ("npm run build", "npm run build", True),
        ("npm run build", "npm run build --x", False),
    ],
    ids=lambda value: f"perm-002 {value}" if isinstance(value, str) else "",
)
def test_how_a_rule_about_commands_is_read(rule: str, command: str, is_meant: bool) -> None:
    decision = decide(bash(command), RuleSet.parse(allow=[f"Bash({rule})"]), Mode.DONT_ASK)

    assert (decision.effect is ALLOW) == is_meant


def test_several_rules_let_a_script_pass_together_and_each_command_needs_one() -> None:
    rules = RuleSet.parse(allow=["Bash(git status *)", "Bash(npm test)"])

    assert decide(bash("git status && npm test"), rules, Mode.DONT_ASK).effect is ALLOW
    assert decide(bash("git status && npm publish"), rules, Mode.DONT_ASK).effect is DENY
    assert decide(bash("git status > out"), rules, Mode.DEFAULT).effect is ASK


def test_a_command_with_an_environment_of_its_own_is_none_that_a_rule_means() -> None:
    rules = RuleSet.parse(allow=["Bash(make *)"], deny=["Bash(rm *)"])
    call = Call(spec("Bash", SideEffect.NETWORK), {"command": "make", "env": {"PATH": "/tmp/evil"}})

    assert decide(call, rules, Mode.DONT_ASK).effect is DENY
    assert decide(bash("make"), rules, Mode.DONT_ASK).effect is ALLOW


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("command", ["rm x", "env rm x", "true; /bin/rm x", "$(rm x)", "$cmd x", "'unclosed"])
def test_where_commands_are_denied_what_cannot_be_read_is_refused_in_every_mode(  # R-SHELL-5
    mode: Mode, command: str
) -> None:
    assert decide(bash(command), RuleSet.parse(deny=["Bash(rm *)"], allow=["Bash"]), mode).effect is DENY


def test_where_commands_are_asked_about_what_cannot_be_read_is_asked_about() -> None:
    assert decide(bash("$cmd x"), RuleSet.parse(ask=["Bash(rm *)"], allow=["Bash"]), Mode.BYPASS).effect is ASK


@pytest.mark.parametrize(
    "arguments",
    [
        {"o": {"a": "evil"}, "o.a": "ok"},
        {"o": {"a": "ok"}, "o.a": "evil"},
        {"o": [{"a": "ok"}, {"a": ["ok", "evil"]}]},
        {"o": [[{"a": "evil"}]]},
    ],
)
def test_no_second_spelling_of_an_argument_hides_the_first(arguments: dict[str, Any]) -> None:
    call = with_arguments("mcp__x__y", **arguments)

    assert decide(call, RuleSet.parse(deny=["mcp__x__y(o.a:evil)"]), Mode.BYPASS).effect is DENY
    assert decide(call, RuleSet.parse(allow=["mcp__x__y(o.a:ok)"]), Mode.DONT_ASK).effect is DENY


def test_a_rule_may_use_the_name_that_clients_see() -> None:
    call = Call(spec("al__push", SideEffect.NETWORK, canonical_name="mcp__github__push"))

    assert decide(call, RuleSet.parse(deny=["al__push"]), Mode.BYPASS).effect is DENY
    assert decide(call, RuleSet.parse(deny=["mcp__github__push"]), Mode.BYPASS).effect is DENY


@pytest.mark.parametrize("tool", ["Grep", "Glob"])
def test_a_rule_that_could_not_hold_is_refused(tool: str) -> None:
    with pytest.raises(BrokenRule, match="write Read"):
        parse_rule(f"{tool}(secrets/**)")


def test_an_ask_rule_on_reading_asks_about_writing_too() -> None:
    rules = RuleSet.parse(ask=["Read(./secrets/**)"])

    assert decide(on_file("Write", "/ws/secrets/a"), rules, Mode.BYPASS).effect is ASK
    files = FileRules(rules, lambda: [Path(root) for root in ROOTS])
    assert files.hides("/ws/secrets/a") and not files.hides("/ws/a")


def test_what_is_allowed_of_a_folder_is_not_allowed_of_every_worktree() -> None:
    rules = RuleSet.parse(allow=["Edit(out/**)"])

    assert decide(on_file("Edit", "/ws/.worktrees/a/out/x"), rules, Mode.DONT_ASK).effect is DENY
    assert decide(on_file("Edit", "/ws/out/x"), rules, Mode.DONT_ASK).effect is ALLOW


@pytest.mark.parametrize(
    "command", ["cat secrets/k", "head -n1 ./secrets/k", "grep x --file=secrets/k", "cat /ws/secrets/k"]
)
def test_a_command_that_names_a_file_that_may_not_be_read_is_denied(command: str) -> None:
    call = Call(spec("Bash", SideEffect.NETWORK), {"command": command}, roots=ROOTS, directory="/ws")

    assert decide(call, RuleSet.parse(deny=["Read(./secrets/**)"]), Mode.BYPASS).effect is DENY


def test_no_pattern_of_tool_names_runs_away() -> None:
    rules = RuleSet.parse(deny=["*" * 60 + "z", "mcp__x__" + "*a" * 200 + "z"])

    assert decide(with_arguments("mcp__x__" + "a" * 5_000), rules, Mode.BYPASS).effect is ALLOW


def test_what_is_allowed_by_a_link_is_not_allowed_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    pattern = parse_path_pattern(f"/{tmp_path}/link/**")

    assert pattern.matches(str(tmp_path / "elsewhere" / "x"), ROOTS)
    assert not pattern.matches(str(tmp_path / "elsewhere" / "x"), ROOTS, copies=False)
    assert parse_path_pattern(f"/{tmp_path.resolve()}/plain/**").real is None
    assert parse_path_pattern("//**/.env").real is None
