"""The view Rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.approvals.record import Kind, Request, Verdict
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.build.working_directories import scope_of
from goat_mcp.processes.process_table import this_process
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.private_file import no_warning
from tests.server.ui.calls_on_record import Working, record_calls
from tests.server.ui.open_page import open_page
from tests.server.ui.test_calls import read, words

pytestmark = pytest.mark.anyio


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings file, in a home of its own; the current directory is another one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    folder = tmp_path / "config" / "goat-mcp"
    folder.mkdir(parents=True)
    return folder / "goat-mcp.yaml"


def working_as_written(tmp_path: Path, own_file: Path, rules: dict[str, list[str]], **more: Any) -> Working:
    """A gateway with the settings that the user's file holds."""
    (tmp_path / "ws").mkdir(exist_ok=True)
    own_file.write_text(json.dumps({"permissions": rules, **more}, indent=1))
    return Working(tmp_path, load_settings({"workspace": [str(tmp_path.resolve() / "ws")]}))


def what_stands_in(file: Path) -> str:
    return file.read_text()


def write(file: Path, text: str) -> None:
    file.write_text(text)


def rows(text: str) -> list[str]:
    """The rows of the tables, as a person reads them."""
    return [words(f"<main>{row}</main>") for row in re.findall(r"<tr>\s*<td.*?</tr>", text, re.DOTALL)]


async def test_each_rule_says_what_it_means_where_it_stands_and_what_it_decided_lately(
    tmp_path: Path, own_file: Path
) -> None:
    written = {"allow": ["Bash(npm run *)"], "ask": ["Edit"], "deny": ["Read(./secrets/**)"]}
    work = working_as_written(tmp_path, own_file, written)
    record_calls(
        work.state,
        {"id": "1", "rule": "rule Bash(npm run *)"},
        {"id": "2", "rule": "rule Bash(npm run *)"},
        {"id": "3", "rule": "rule Bash(npm run *) more"},
        {"id": "4", "rule": "rule Edit, allowed once by the user"},
        {"id": "5", "rule": "mode default"},
    )

    async with open_page(work.state, **work.parts) as page:
        text = await read(page, "/ui/rules")

    lines = enumerate(what_stands_in(own_file).splitlines(), 1)
    line = {rule: number for number, text in lines for rule in text.split('"')}
    deny, ask, allow = rows(text)
    assert deny.startswith("deny Read(./secrets/**) refused in every mode: reading or changing files")
    assert f"{own_file}:{line['Read(./secrets/**)']} not in the last 30 days" in deny
    assert f"{own_file}:{line['Edit']} 1 , last" in ask
    assert allow.startswith("allow Bash(npm run *) allowed without asking: commands like")
    assert f"{own_file}:{line['Bash(npm run *)']} 2 , last" in allow
    assert 'href="/ui/calls?text=Bash%28npm%20run%20%2A%29"' in text or "text=Bash%28npm+run+%2A%29" in text


async def test_what_a_rule_has_really_refused_is_counted_with_it(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(
        tmp_path, own_file, {"deny": ["Bash(curl *)"], "ask": ["Bash(git push *)"]}, approval="deny"
    )
    commands = ("curl https://example.org", "curl -I https://example.org", "git push")
    async with work.gateway.running(), open_page(work.state, **work.parts) as page:
        for number, command in enumerate(commands):
            ctx = ToolContext(call_id=str(number), session_key="stdio")
            assert (await work.gateway.call("Bash", {"command": command}, ctx)).is_error
        work.gateway.audit.close()
        deny, ask = rows(await read(page, "/ui/rules"))

    assert " 2 , last" in deny and " 1 , last" in ask


async def test_without_rules_the_view_says_how_to_write_one(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {})

    async with open_page(work.state, **work.parts) as page:
        text = words(await read(page, "/ui/rules"))

    assert "No rule is written: the mode decides about every call." in text
    assert "goat-mcp rules allow 'Bash(npm run *)'" in text
    assert "Nothing is remembered." in text and "the mode, default" in text


async def test_a_rule_is_added_with_an_end_and_shown_at_once(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {"deny": ["Bash(git push *)"]})

    async with open_page(work.state, **work.parts) as page:
        answer = await page.post("/ui/rules/add", effect="allow", rule="Bash(git *)", expires="1h")
        text = words(await read(page, answer.headers["location"]))

    assert answer.status_code == 303
    assert "Bash(git *) until" in what_stands_in(own_file)
    assert "Stricter, and wins over it: deny Bash(git push *)" in text
    assert re.search(r"allow Bash\(git \*\) until .* allowed without asking: commands like `git \*`, until", text)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"effect": "allow", "rule": "Bsh(ls)"}, "did you mean Bash"),
        ({"effect": "allow", "rule": " "}, "no rule is written there"),
        ({"effect": "bypass", "rule": "Bash(ls)"}, "'bypass' is no effect"),
        ({"effect": "allow", "rule": "Bash(ls)", "expires": "soon"}, "--expires"),
        ({"effect": "allow", "rule": "*"}, "*"),
    ],
)
async def test_what_is_no_rule_is_refused_in_words_and_nothing_is_written(
    tmp_path: Path, own_file: Path, fields: dict[str, Any], said: str
) -> None:
    work = working_as_written(tmp_path, own_file, {"deny": ["Bash(rm *)"]})
    before = what_stands_in(own_file)

    async with open_page(work.state, **work.parts) as page:
        answer = await page.post("/ui/rules/add", **fields)

    assert answer.status_code == 400
    assert said in words(answer.text)
    assert what_stands_in(own_file) == before


async def test_a_rule_of_the_users_own_file_is_removed_and_only_from_that_list(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {"allow": ["Bash(ls)"], "ask": ["Bash(ls)", "Edit"]})

    async with open_page(work.state, **work.parts) as page:
        shown = await read(page, "/ui/rules")
        answer = await page.post("/ui/rules/remove", effect="ask", rule="Bash(ls)")
        after = await read(page, answer.headers["location"])
        again = await page.post("/ui/rules/remove", effect="ask", rule="Bash(ls)")

    assert shown.count('action="/ui/rules/remove"') == 3
    assert [row.partition(" ")[0] for row in rows(after)] == ["ask", "allow"]
    assert "Taken out: ask Bash(ls)" in words(after)
    assert again.status_code == 404 and "no ask rule 'Bash(ls)' stands in" in words(again.text)


async def test_a_rule_that_stands_elsewhere_has_no_button_and_cannot_be_removed(tmp_path: Path, own_file: Path) -> None:
    claude = tmp_path / "claude.json"
    claude.write_text(json.dumps({"permissions": {"deny": ["Bash(curl *)"]}}))
    work = working_as_written(tmp_path, own_file, {}, bash={"blocked": ["shutdown"]}, claude_settings=[str(claude)])

    async with open_page(work.state, **work.parts) as page:
        text = await read(page, "/ui/rules")
        refused = await page.post("/ui/rules/remove", effect="deny", rule="Bash(curl *)")

    shown = rows(text)
    assert any("Bash(curl *)" in row and str(claude) in row for row in shown)
    assert any("bash.blocked: shutdown" in row and str(own_file) in row for row in shown)
    assert 'action="/ui/rules/remove"' not in text
    assert refused.status_code == 404
    assert "curl" in claude.read_text()


async def test_a_remembered_rule_is_shown_with_its_workspace_and_forgotten(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {})
    here, elsewhere = scope_of([work.workspace]), "0123456789abcdef"
    for scope in (here, elsewhere):
        RememberedRules(work.gateway.state, scope, no_warning).add("local", ["Bash(make)"], "/w/<b>")
    record_calls(work.state, {"id": "1", "rule": "rule Bash(make)"})

    async with open_page(work.state, **work.parts) as page:
        text = await read(page, "/ui/rules")
        (id,) = set(re.findall(r'name="id" value="([^"]+)"', text))
        answer = await page.post("/ui/rules/forget", scope=elsewhere, id=id)
        after = await read(page, answer.headers["location"])
        again = await page.post("/ui/rules/forget", scope=elsewhere, id=id)
        outside = await page.post("/ui/rules/forget", scope="../goat-mcp", id=id)

    shown = " ".join(rows(text))
    assert str(work.workspace) in shown and f"workspace {elsewhere}" in shown and "1 , last" in shown
    assert "Forgotten: Bash(make)" in words(after)
    assert f"workspace {elsewhere}" not in words(after) and str(work.workspace) in " ".join(rows(after))
    assert (again.status_code, outside.status_code) == (404, 404)


async def test_what_a_running_session_was_granted_is_shown_and_taken_back(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {})
    async with open_page(work.state, **work.parts) as page:
        store = page.parts.queue.store
        asked = Request(Kind.CALL, "s", "Bash: make", "local", f"{this_process()}/s", client="Editor <1>", tool="Bash")
        store.decide(store.add(asked).id, Verdict(True, "session", ("Bash(make)",)), "page")
        text = await read(page, "/ui/rules")
        (id,) = set(re.findall(r'name="id" value="([^"]+)"', text))
        answer = await page.post("/ui/rules/revoke", id=id)
        after = await read(page, answer.headers["location"])
        again = await page.post("/ui/rules/revoke", id=id)

    assert "Granted to running sessions 1" in words(text) and "Bash(make) Editor" in words(text)
    assert "No process answered that it took back Bash(make)" in words(after)
    assert "Granted to running sessions" not in words(after)
    assert again.status_code == 404


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"tool": "Bash", "arguments": '{"command": "git push origin"}'}, "Bash: denied, by rule Bash(git push *)"),
        ({"tool": "Bash", "arguments": '{"command": "git status"}'}, "Bash: asked about, by mode default"),
        ({"tool": "Glob", "arguments": '{"pattern": "*"}'}, "Glob: allowed, by"),
        ({"tool": "Nothing"}, "Nothing: denied"),
        ({"tool": "Glob"}, "pattern"),
        ({"tool": "Glob", "arguments": "{"}, "The arguments are no JSON object"),
        ({"tool": "Glob", "arguments": "[1]"}, "The arguments are no JSON object"),
        ({"tool": "Glob", "arguments": "[" * 5000}, "nested too deeply"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_call_is_tested_with_the_words_of_why(
    tmp_path: Path, own_file: Path, query: dict[str, str], said: str
) -> None:
    work = working_as_written(tmp_path, own_file, {"deny": ["Bash(git push *)"]})

    async with work.gateway.running(), open_page(work.state, **work.parts) as page:
        answer = await page.client.get("/ui/rules", params=query)
        work.gateway.audit.close()

    assert answer.status_code == 200
    assert said in words(answer.text)
    if "push" in query.get("arguments", ""):
        assert f"written in {own_file}:" in words(answer.text)
        assert "to change that: goat-mcp rules remove 'Bash(git push *)'" in words(answer.text)
    assert not (work.state / "calls.db").exists()


async def test_hostile_rules_are_inert(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {"deny": ["Read(./<script>\u202e)", "Read(./'\"><img src=x>)"]})

    async with open_page(work.state, **work.parts) as page:
        text = await read(page, "/ui/rules?tool=%3Cscript%3E&arguments=%3C/textarea%3E%3Cimg%3E")

    assert not re.search(r"<(script>|img)|\u202e", text)
    assert not re.search(r"style=|\son\w+=", text)
    assert "&lt;script&gt;\\u202e" in text


async def test_a_file_that_cannot_be_used_is_named_and_the_rules_in_force_stay(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {"deny": ["Bash(rm *)"]})
    write(own_file, "permissions: [")

    async with open_page(work.state, **work.parts) as page:
        text = await read(page, "/ui/rules")

    assert "the rules from before stay in force" in words(text)
    assert "Bash(rm *)" in words(text)


async def test_without_the_token_no_rule_is_written(tmp_path: Path, own_file: Path) -> None:
    work = working_as_written(tmp_path, own_file, {"deny": ["Bash(rm *)"]})
    before = what_stands_in(own_file)

    async with open_page(work.state, **work.parts) as page:
        for what in ("add", "remove", "forget"):
            answer = await page.post(f"/ui/rules/{what}", effect="deny", rule="Bash(rm *)", csrf="no")
            assert answer.status_code == 403

    assert what_stands_in(own_file) == before
