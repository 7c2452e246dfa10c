"""Rules about files against hundreds of ways to name a file: what the rules let pass, real bash runs (R-SHELL-5b)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Approval, Effect
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

from .evasions import SENDS, changing, showing
from .everyday_commands import EVERYDAY

pytestmark = pytest.mark.anyio
SECRET = "CANARY-77aa\n"


class Ground:
    """A workspace with a denied file that git knows in an older version, and a gateway that asks nobody."""

    def __init__(self, folder: Path, **permissions: Sequence[str]) -> None:
        self.root = folder / "ws"
        self.secret = self.root / "secrets" / "k"
        self._lay_out()
        tree = {
            "workspace": [str(self.root)],
            "mode": "bypassPermissions",
            "sandbox": "off",
            "permissions": {effect: list(rules) for effect, rules in permissions.items()},
        }
        self.gateway = Gateway(
            settings_of(tree, "a test"), approval=Approval.ELICIT, state=StateDirectory(folder / "state")
        )

    def _lay_out(self) -> None:
        for name in ("secrets", "docs", "out", "src", "build", "vendor"):
            (self.root / name).mkdir(parents=True)
        self.secret.write_text("at first\n")
        (self.root / "docs" / "k").write_text("a doc\n")
        for name in ("d.json", "README.md", "data.csv", "src/a.py", "docs/a.md", "vendor/v.py"):
            (self.root / name).write_text("{}\n")
        (self.root / "sd").symlink_to("secrets")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
            subprocess.run(git, cwd=self.root, check=True, capture_output=True)
        self.secret.write_text(SECRET)

    def decision(self, command: str) -> Decision:
        return self.gateway.pipeline.admission.decide("Bash", {"command": command}, ToolContext(call_id="c"))[1]

    def permitted(self, commands: Sequence[str]) -> list[str]:
        return [text for text in commands if self.decision(text).effect is Effect.ALLOW]

    async def output(self, command: str) -> str:
        result = await self.gateway.call("Bash", {"command": command, "timeout": 10_000}, ToolContext(call_id="c"))
        return result.text.replace("\\n", "")

    def is_untouched(self) -> bool:
        folder = self.secret.parent
        return not folder.is_symlink() and self.secret.is_file() and self.secret.read_text() == SECRET


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ws"))


async def test_f13_08_shows_no_text_of_hundreds_shows_a_denied_file(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Read(./secrets/**)"])
    texts = showing()
    shown: list[str] = []

    permitted = ground.permitted(texts)
    for text in permitted:
        if "CANARY" in await ground.output(text):
            shown.append(text)

    assert len(texts) > 700 and len(permitted) < 20
    assert shown == []
    assert ground.is_untouched()


async def test_f13_08_sends_no_denied_file_is_given_to_a_server_or_an_unknown_program(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Read(./secrets/**)"])

    assert ground.permitted(SENDS) == []


@pytest.mark.parametrize("rule", ["Edit(./secrets/**)", "Write(secrets/k)", "Read(./secrets/**)"])
async def test_f13_08_changes_no_text_of_hundreds_changes_a_denied_file(tmp_path: Path, rule: str) -> None:
    ground = Ground(tmp_path, deny=[rule])
    texts = changing()
    changed: list[str] = []

    permitted = ground.permitted(texts)
    for text in permitted:
        await ground.output(text)
        if not ground.is_untouched():
            changed.append(text)
            break

    assert len(texts) > 500 and len(permitted) < 20
    assert changed == []


async def test_the_texts_do_show_and_change_the_file_without_a_rule(tmp_path: Path) -> None:
    """Some of them, run by bash alone: a table whose texts do nothing would show nothing."""
    ground = Ground(tmp_path)
    environment = {"HOME": str(ground.root), "PATH": os.environ["PATH"]}
    showed = 0

    async def run(text: str) -> None:
        nonlocal showed
        command = ["bash", "--noprofile", "--norc", "-c", text]
        with anyio.move_on_after(10):
            done = await anyio.run_process(
                command, cwd=ground.root, env=environment, stdin=subprocess.DEVNULL, check=False
            )
            showed += b"CANARY" in done.stdout

    texts = [text for text in showing()[::5] if text.startswith(("cat", "head", "x=", "cd", "sed -n", "sort"))]
    for text in texts:
        await run(text)

    assert showed > 0.8 * len(texts) > 20


async def test_f13_08_doubt_an_ask_rule_asks_if_a_command_cannot_be_followed(tmp_path: Path) -> None:
    ground = Ground(tmp_path, ask=["Read(./secrets/**)"])

    effects = {ground.decision(text).effect for text in showing()[:200]}

    assert effects <= {Effect.ASK, Effect.ALLOW}
    assert ground.decision('cat "$unknown"').effect is Effect.ASK


async def test_f13_08_doubt_the_refusal_names_the_rule_the_word_and_the_way_out(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Read(./secrets/**)"])

    told = ground.decision('cat "$(ls docs)"').explanation

    assert told.startswith("rule Read(./secrets/**)")
    assert "`$(ls docs)`" in told and "what a command prints is not known" in told
    assert "write each path as it is" in told


@pytest.mark.parametrize(
    "rules",
    [
        ["Read(./secrets/**)", "Read(.env)", "Read(~/.ssh/**)"],
        ["Edit(//etc/**)", "Write(./vendor/**)"],
        ["Read(./secrets/**)", "Read(.env)", "Edit(//etc/**)", "Edit(./vendor/**)"],
    ],
)
async def test_everyday_commands_run_beside_rules_about_files(tmp_path: Path, rules: list[str]) -> None:
    ground = Ground(tmp_path, deny=rules)

    refused = {text: ground.decision(text).explanation for text in EVERYDAY if text not in ground.permitted([text])}

    assert len(EVERYDAY) > 150
    assert refused == {}


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("cat $x", "the value of $x is not known"),
        ("find . -name '*.py' | xargs cat", "names that are not in the script"),
        ("cd docs && cd - && cat k", "only -L and -P"),
        ("cat ~root/k", "of the homes only"),
        ("cat [a-d]ocs/k", "only `*` and `?`"),
        ("shopt -s dotglob; cat docs/*", "changes how bash reads words"),
        ("CDPATH=docs; cat d.json", "CDPATH is set"),
        ("sort --files0-f=docs/k", "not an option known"),
        ("for d in a b; do cd $d; done", "more than once"),
        ("cat /proc/self/cwd/d.json", "what a process has open"),
    ],
)
async def test_what_cannot_be_followed_is_refused_with_its_reason(tmp_path: Path, command: str, reason: str) -> None:
    ground = Ground(tmp_path, deny=["Read(./nothing/here)"])

    decision = ground.decision(command)

    assert decision.effect is Effect.DENY
    assert reason in decision.explanation


async def test_where_only_changes_are_denied_reading_is_not_doubted(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Edit(./vendor/**)"])

    effects = {
        ground.decision(text).effect for text in ("cat $x", "grep -rn x $y", "ls | xargs cat", "cat vendor/v.py")
    }

    assert effects == {Effect.ALLOW}
