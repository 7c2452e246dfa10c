"""Rules about files hold for the commands that name one, through the whole gateway and without a sandbox."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.command_files import FileHit, rule_on_files
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import RuleList
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("ripgrep_on_path")]
SECRET = "CANARY-77aa"
RULE = "Read(./secrets/**)"


class Ground:
    """A gateway without a sandbox over a workspace with a secret, and a source file."""

    def __init__(self, folder: Path, **permissions: list[str]) -> None:
        self.root = folder / "ws"
        for name in ("secrets", "src", "docs"):
            (self.root / name).mkdir(parents=True)
        (self.root / "secrets" / "k.txt").write_text(f"{SECRET}\n")
        (self.root / "src" / "a.py").write_text("x = 1\n")
        (self.root / "docs" / "a.md").write_text(f"not the {SECRET[:6]}\n")
        (self.root / "d.json").write_text("{}\n")
        (self.root / "sd").symlink_to("secrets")
        self._before = self._files()
        tree = {
            "workspace": [str(self.root)],
            "mode": "bypassPermissions",
            "sandbox": "off",
            "permissions": permissions,
            "catalog": {"toolsets": ["core", "tasks", "goa", "base"]},
        }
        self.gateway = Gateway(
            settings_of(tree, "a test"), approval=Approval.ELICIT, state=StateDirectory(folder / "state")
        )

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        given: Mapping[str, Any] = arguments
        return await self.gateway.call(tool, given, ToolContext(call_id="c"))

    def is_untouched(self) -> bool:
        return self._files() == self._before

    def _files(self) -> dict[str, bytes | None]:
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.root.rglob("*"))
        }


NAMES_IT = [
    "cat secrets/k.txt",
    "head secrets/k*",
    "base64 secrets/k.txt",
    'bash -c "cat secrets/k.txt"',
    "cat < secrets/k.txt",
    "tr a b < secrets/k.txt",
    "while read l; do echo $l; done < secrets/k.txt",
    'echo "$(<secrets/k.txt)"',
    "echo `cat <secrets/k.txt`",
    "cat docs/a.md <d.json secrets/k.txt",
    "cat 0<> secrets/k.txt",
    "{ cat; } < secrets/k.txt",
    "exec 3< secrets/k.txt; cat <&3",
    "cat $PWD/secrets/k.txt",
    'cat "${PWD}"/secrets/k.txt',
    "cat sd/k.txt",
    "cat < sd/k.txt",
    "cat src/../sd/k.txt",
    "cat ./se*/*",
    "cat {docs/a.md,secrets/k.txt}",
    "cat 's'ecrets/k.t?t",
    "f=secrets/k.txt; cat $f",
    "for f in secrets/*; do cat $f; done",
    "(cd secrets && cat k.txt)",
    "cd secrets; cat k.txt",
    "cd src; cd ../secrets; cat k.txt",
    "pushd sd && cat k.txt",
    "cd docs && cat ../secrets/k.txt",
    "env -C secrets cat k.txt",
    "git -C secrets diff --no-index /dev/null k.txt",
    "git diff --no-index /dev/null secrets/k.txt",
    "dd if=secrets/k.txt",
    "curl -s file://$PWD/secrets/k.txt",
    "grep -r CANARY secrets",
    "grep -rn CANARY .",
    "grep -A 1 -r CANARY ..",
    "grep -r CANARY",
    "grep -R CANARY sd",
    "grep -d recurse CANARY .",
    "rg CANARY secrets",
    "rg CANARY",
    "rg -g '*.txt' CANARY | head",
    "tar cf - secrets | strings",
    "tar -c . | strings",
    "cp -r secrets copy; cat copy/k.txt",
    "mv secrets open; cat open/k.txt",
    "ln -s secrets open; cat open/k.txt",
    "find . -name 'k*' -exec cat {} +",
    "diff -r secrets docs",
    "echo x > secrets/n.txt",
    "echo x >> sd/n.txt",
    "tee secrets/n.txt < d.json",
    "cp d.json secrets/n.txt",
]


@pytest.mark.parametrize("command", NAMES_IT)
@pytest.mark.parametrize("tool", ["Bash", "bash__exec"])
async def test_r_file_5_a_command_that_names_what_may_not_be_read_is_refused(
    tmp_path: Path, tool: str, command: str
) -> None:
    ground = Ground(tmp_path, deny=[RULE])

    result = await ground.call(tool, command=command)

    assert result.error_code == "E_PERMISSION" and RULE in result.text and str(ground.root) in result.text
    assert SECRET not in result.text
    assert ground.is_untouched()


async def test_the_home_directory_is_meant_by_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ws"))
    ground = Ground(tmp_path, deny=[RULE])

    answers = [await ground.call("Bash", command=f"cat {home}/secrets/k.txt") for home in ("~", "$HOME", '"${HOME}"')]

    assert [answer.error_code for answer in answers] == ["E_PERMISSION"] * 3


async def test_a_script_a_program_and_a_directory_of_a_call_are_held_against_the_rules(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=[RULE])
    (ground.root / "docs" / "run.sh").write_text("cat < secrets/k.txt\n")

    answers = [
        await ground.call("bash__script", path="docs/run.sh"),
        await ground.call("bg_exec__start", command="cat", args=["sd/k.txt"]),
        await ground.call("bg_exec__start", command="sh", stdin="cat < secrets/k.txt"),
        await ground.call("bash__exec", command="cat k.txt", cwd=str(ground.root / "secrets")),
        await ground.call("Bash", command="cat < k.txt", workdir=str(ground.root / "sd")),
    ]

    assert [(answer.error_code, RULE in answer.text) for answer in answers] == [("E_PERMISSION", True)] * 5


@pytest.mark.parametrize(
    "command",
    [
        "cat docs/a.md",
        "cat < docs/a.md",
        "ls -R .",
        "find . -name '*.txt'",
        "grep -r not docs src",
        "grep -r secrets docs || true",
        "grep -r --exclude-dir=secrets not .",
        "rg -g '!secrets' not",
        "echo docs/a.md | rg docs",
        "tar -cf /dev/null --exclude=secrets .",
        "cd docs && cat a.md",
        "echo x > /dev/null 2>&1",
        "cat <<E\nsecrets/k.txt\nE",
        "cp -r docs copy",
    ],
)
async def test_what_names_no_such_file_runs(tmp_path: Path, command: str) -> None:
    ground = Ground(tmp_path, deny=[RULE])

    result = await ground.call("Bash", command=command)

    assert not result.is_error, result.text
    assert SECRET not in result.text


async def test_the_refusal_says_how_to_leave_a_folder_out(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=[RULE])

    result = await ground.call("Bash", command="grep -r CANARY .")

    assert "--exclude-dir=secrets" in result.text and f"{ground.root}/secrets/k.txt" in result.text


@pytest.mark.parametrize(
    "word", ["x" * 5_000, "x/" * 4_000, "$'\\ud800'", "$'a\\0b'", "{a,b}" * 12, "*/" * 2_000, "~nobody/x", "'[z-a]'"]
)
async def test_no_word_is_too_odd_to_be_looked_up(tmp_path: Path, word: str) -> None:
    ground = Ground(tmp_path, deny=[RULE], ask=["Bash(nothing)"])

    result = await ground.call("Bash", command=f"echo {word} >/dev/null; cat < secrets/k.txt")

    assert result.error_code == "E_PERMISSION" and SECRET not in result.text


async def test_an_ask_rule_asks_and_an_allow_rule_allows_no_command(tmp_path: Path) -> None:
    asked = Ground(tmp_path / "a", ask=[RULE])
    both = Ground(tmp_path / "b", allow=["Read", "Read(./secrets/k.txt)"], deny=[RULE])

    answers = [await ground.call("Bash", command="cat < secrets/k.txt") for ground in (asked, both)]

    assert [answer.error_code for answer in answers] == ["E_APPROVAL_PENDING", "E_PERMISSION"]
    assert "waits for the user's approval" in answers[0].text and "denied by" in answers[1].text


async def test_a_file_that_fits_at_any_depth_is_found_below_what_is_read(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Read(.env)"])

    before = await ground.call("Bash", command="grep -r not docs")
    (ground.root / "docs" / ".env").write_text(SECRET)
    after = await ground.call("Bash", command="grep -r not docs")
    by_ripgrep = await ground.call("Bash", command="rg not docs")
    with_hidden = await ground.call("Bash", command="rg --hidden not docs")

    assert [answer.error_code for answer in (before, after, by_ripgrep, with_hidden)] == [
        None,
        "E_PERMISSION",
        None,
        "E_PERMISSION",
    ]


async def test_what_follows_a_redirection_is_part_of_the_command(tmp_path: Path) -> None:
    """bash takes `push` of `git >log push` for an argument."""
    ground = Ground(tmp_path, deny=["Bash(git push *)"])

    answers = [
        await ground.call("Bash", command=command)
        for command in ("git >log push origin", "git push origin", "git <<E push origin\nx\nE")
    ]

    assert [answer.error_code for answer in answers] == ["E_PERMISSION"] * 3
    assert ground.is_untouched()


WRITES = [
    "echo x > src/q.txt",
    "echo x >> src/q.txt",
    "echo x >| src/a.py",
    "echo x &> src/q.txt",
    "echo x >& src/q.txt",
    "echo x 3>src/q.txt",
    "cat 1<> src/q.txt",
    "for i in 1 2; do echo $i; done > src/q.txt",
    "(cd src && echo x > q.txt)",
    "echo x > $PWD/src/q.txt",
    "echo x > link/q.txt",
    "cat <<E > src/q.txt\nx\nE",
    "echo x | tee src/q.txt",
    "echo x | tee -a d.json src/a.py",
    "cp d.json src/q.txt",
    "cp d.json src",
    "cp d.json src/",
    "cp -t src d.json",
    "cp d.json link",
    "install -m 644 d.json src/q.txt",
    "ln -s ../d.json src/q.txt",
    "mv d.json src/q.txt",
    "mv src/a.py b.py",
    "mv src elsewhere",
    "rsync -a docs/ src/",
    "sed -i s/x/y/ src/a.py",
    "sed -ni.bak -e p src/a.py",
    "sed --in-place=.b s/x/y/ src/*.py",
    "perl -pi -e s/x/y/ src/a.py",
    "touch src/q.txt",
    "touch -d yesterday src/a.py",
    "rm src/a.py",
    "rm -rf src",
    "rm -rf ./*",
    "mkdir -p src/new",
    "truncate -s 0 src/a.py",
    "dd if=d.json of=src/q.txt",
    "chmod 600 src/a.py",
    "chmod -R 700 src",
    "sort -o src/q.txt d.json",
    "gzip src/a.py",
    "git restore src/a.py",
    "git checkout HEAD -- src",
    "git rm -f src/a.py",
    "patch -d src < d.json",
    "tar -xf a.tar -C src",
    "tar cf src/a.tar docs",
    "unzip a.zip -d src",
    'bash -c "echo x > src/q.txt"',
    "find docs -name a.md | xargs -I{} cp {} src/q.txt",
    "sudo touch src/q.txt",
]


@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize("rule", ["Edit(./src/**)", "Write(./src/**)", "Edit", "Write"])
async def test_a_command_that_changes_what_may_not_be_changed_is_refused(
    tmp_path: Path, rule: str, command: str
) -> None:
    ground = Ground(tmp_path, deny=[rule])
    (ground.root / "link").symlink_to("src")

    result = await ground.call("Bash", command=command)

    assert result.error_code == "E_PERMISSION" and f"rule {rule} (it" in result.text and str(ground.root) in result.text
    (ground.root / "link").unlink()
    assert ground.is_untouched()


@pytest.mark.parametrize("rule", ["Edit(./src/**)", "Edit", "Write"])
async def test_every_tool_that_runs_commands_is_held_to_what_may_not_be_changed(tmp_path: Path, rule: str) -> None:
    ground = Ground(tmp_path, deny=[rule])
    (ground.root / "docs" / "run.sh").write_text("touch src/q.txt\n")

    answers = [
        await ground.call("bash__exec", command="echo x > src/q.txt"),
        await ground.call("bash__exec", command="echo x > q.txt", cwd=str(ground.root / "src")),
        await ground.call("bash__script", path="docs/run.sh"),
        await ground.call("bg_exec__start", command="touch", args=["src/bg.txt"]),
    ]

    assert [(answer.error_code, f"rule {rule} (" in answer.text) for answer in answers] == [("E_PERMISSION", True)] * 4
    assert sorted(path.name for path in (ground.root / "src").iterdir()) == ["a.py"]


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Edit(./src/**)", "cat src/a.py"),
        ("Edit(./src/**)", "cat < src/a.py"),
        ("Edit(./src/**)", "cp src/a.py docs/b.py"),
        ("Edit(./src/**)", "grep -r x src"),
        ("Edit(./src/**)", "sed s/x/y/ src/a.py"),
        ("Edit(./src/**)", "echo x > docs/new"),
        ("Edit(./src/**)", "rm -r docs"),
        ("Edit", "cat src/a.py 2>/dev/null"),
        ("Edit", "echo x > /dev/null"),
        ("Write", "sed -n p src/a.py"),
        ("Write", 'f=$(mktemp); echo x > "$f"; rm "$f"'),
        ("Edit", "tar -tf missing.tar; true"),
    ],
)
async def test_what_changes_no_such_file_runs(tmp_path: Path, rule: str, command: str) -> None:
    ground = Ground(tmp_path, deny=[rule])

    result = await ground.call("Bash", command=command)

    assert not result.is_error, result.text


async def test_an_ask_rule_about_changes_asks_about_commands_too(tmp_path: Path) -> None:
    ground = Ground(tmp_path, ask=["Edit(./src/**)"])

    result = await ground.call("Bash", command="echo x > src/q.txt")

    assert result.error_code == "E_APPROVAL_PENDING" and "approval (rule Edit(./src/**)" in result.text
    assert ground.is_untouched()


async def test_others_have_their_turns_while_directories_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ISO-1
    had_their_turn = threading.Event()

    def slowly(rules: RuleList, call: Call) -> FileHit | None:
        assert had_their_turn.wait(20), "nobody else had a turn"
        return rule_on_files(rules, call)

    monkeypatch.setattr("goat_mcp.calls.permissions.command_files.rule_on_files", slowly)
    ground = Ground(tmp_path, deny=[RULE])
    answers: list[ToolResult] = []
    async with anyio.create_task_group() as group:

        async def others() -> None:
            had_their_turn.set()

        async def call() -> None:
            answers.append(await ground.call("Bash", command="grep -r x ."))

        group.start_soon(call)
        group.start_soon(others)

    assert "E_PERMISSION" in answers[0].text


@pytest.mark.parametrize(
    "path", ["/System/Volumes/Data/x/k.txt", "/system/volumes/DATA/x/*", "/.vol/1/2", "//.nofollow/x", "/.RESOLVE/1/x"]
)
async def test_a_second_name_that_macos_has_for_a_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    ground = Ground(tmp_path, deny=[RULE])
    monkeypatch.setattr("goat_mcp.core.platform.SYSTEM", "linux")
    on_linux = await ground.call("Bash", command=f"cat {path}")

    monkeypatch.setattr("goat_mcp.core.platform.SYSTEM", "macos")
    on_macos = await ground.call("Bash", command=f"cat {path}")
    another = await ground.call("Bash", command="cat /System/Volumes/Preboot/x")

    assert on_macos.error_code == "E_PERMISSION" and "another name of a file" in on_macos.text
    assert "E_PERMISSION" not in (on_linux.error_code, another.error_code)
