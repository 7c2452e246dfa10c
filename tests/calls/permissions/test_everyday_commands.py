"""Everyday commands, with the rules that people usually write, run unasked.

Each row is checked in a real workspace by the same decision as a call's. Nothing is run: no program has to be there.
A change that makes one of these ask, or refuses it, is felt by everybody; so it needs a reason that is worth that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from goat_mcp.calls.permissions.mode import Approval, Effect
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

_SECRETS = ("Read(./secrets/**)", "Read(.env)")
_NO_RM = ("Bash(rm:*)",)
_CAREFUL = ("Bash(rm:*)", "Bash(sudo:*)", "Bash(git push:*)", "Bash(curl:*)")
_ALL = (*_SECRETS, *_CAREFUL, "Edit(./vendor/**)")

_EVERYDAY: Sequence[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    # allow rules, deny rules, the command
    (("git status:*",), (), "git status"),
    (("git status:*",), _ALL, "git status --short --branch"),
    (("git diff:*",), (), "git diff --stat HEAD~1"),
    (("git diff:*",), _SECRETS, "git diff --cached"),
    (("git log:*",), (), "git log --oneline -n 20"),
    (("git log:*", "head:*"), _ALL, "git log --format='%h %s' --since=2.weeks | head -20"),
    (("git show:*",), (), "git show HEAD --stat"),
    (("git branch:*",), _CAREFUL, "git branch -a"),
    (("git blame:*",), (), "git blame -L 10,20 src/a.py"),
    (("git *",), (), "git rev-parse --abbrev-ref HEAD"),
    (("git add:*", "git commit:*"), (), "git add src/a.py && git commit -m 'Fix the parser'"),
    (("git add:*", "git commit:*"), _CAREFUL, "git add -A && git commit -m 'Fix the parser'"),
    (("git status:*", "git commit:*"), (), "git status; git commit -m x"),
    (("git diff:*", "git add:*", "git commit:*"), _CAREFUL, "git diff --stat && git add . && git commit -m 'a b'"),
    (("git checkout:*",), (), "git checkout -b topic"),
    (("git switch:*",), _CAREFUL, "git switch main"),
    (("git stash:*",), (), "git stash pop"),
    (("git pull:*",), (), "git pull --ff-only"),
    (("git fetch:*",), _CAREFUL, "git fetch origin"),
    (("git push:*",), (), "git push -u origin topic"),
    (("git merge:*",), (), "git merge --no-ff topic"),
    (("npm test:*",), (), "npm test"),
    (("npm run:*",), _ALL, "npm run build"),
    (("npm run:*",), (), "npm run test -- --watch=false"),
    (("npm install:*",), _CAREFUL, "npm install --save-dev typescript"),
    (("npx tsc:*",), (), "npx tsc --noEmit"),
    (("npx eslint:*",), _CAREFUL, "npx eslint src --ext .ts"),
    (("yarn build:*",), (), "yarn build"),
    (("pnpm *",), _NO_RM, "pnpm run lint"),
    (("pytest:*",), (), "pytest -q tests"),
    (("pytest:*",), _CAREFUL, "pytest -x -k 'parser and not slow' tests/test_a.py"),
    (("python -m pytest:*",), (), "python -m pytest -q"),
    (("python -m pytest:*", "tail:*"), _CAREFUL, "python -m pytest tests | tail -n 20"),
    (("uv run pytest:*",), (), "uv run pytest -x"),
    (("ruff check:*", "ruff format:*"), _CAREFUL, "ruff check . && ruff format --check ."),
    (("mypy:*",), (), "mypy --strict src"),
    (("make:*",), (), "make -j4 test"),
    (("make:*",), _CAREFUL, "make lint"),
    (("make test",), _ALL, "make test"),
    (("ls:*",), (), "ls -la"),
    (("ls:*",), _ALL, "ls -la src"),
    (("grep:*",), (), "grep -rn 'TODO' src"),
    (("grep:*",), _ALL, "grep -rn --include='*.py' def src"),
    (("grep:*", "wc:*"), _NO_RM, "grep -c x src/a.py | wc -l"),
    (("rg:*",), (), "rg -n TODO src"),
    (("rg:*",), _SECRETS, "rg -n -C 3 'def main' src"),
    (("cat:*",), (), "cat README.md"),
    (("cat:*",), _ALL, "cat README.md src/a.py"),
    (("cat:*", "grep:*", "sort:*", "uniq:*"), _SECRETS, "cat src/a.py | grep -v '^#' | sort | uniq -c"),
    (("head:*",), _SECRETS, "head -n 40 README.md"),
    (("tail:*",), (), "tail -50 README.md"),
    (("sed:*",), (), "sed -n '1,40p' src/a.py"),
    (("sed -n:*",), _ALL, "sed -n 1,40p src/a.py"),
    (("find:*",), (), "find . -name '*.py' -not -path './node_modules/*'"),
    (("find:*", "head:*"), _ALL, "find src -type f -name '*.py' | head"),
    (("wc:*",), _SECRETS, "wc -l src/a.py"),
    (("tree:*",), (), "tree -L 2 src"),
    (("diff:*",), _SECRETS, "diff -u README.md src/a.py"),
    (("jq:*",), (), "jq -r '.scripts | keys[]' package.json"),
    (("jq:*", "cat:*"), _ALL, "cat package.json | jq .name"),
    (("echo:*",), _ALL, "echo done"),
    (("which:*", "node:*"), _NO_RM, "which node && node --version"),
    (("date:*", "pwd"), _ALL, "date +%F; pwd"),
    (("mkdir:*",), _ALL, "mkdir -p src/new/deep"),
    (("cp:*",), _NO_RM, "cp README.md src/README.md"),
    (("mv:*",), (), "mv README.md docs.md"),
    (("rm:*",), (), "rm -rf build"),
    (("touch:*",), _SECRETS, "touch src/new.py"),
    (("chmod:*",), (), "chmod +x run.sh"),
    (("tar:*",), (), "tar -tzf dist.tgz"),
    (("docker ps:*",), (), "docker ps -a"),
    (("docker:*",), _CAREFUL, "docker logs -f web"),
    (("docker build:*",), (), "docker build ."),
    (("docker compose:*",), _NO_RM, "docker compose ps"),
    (("kubectl get:*",), (), "kubectl get pods -n web"),
    (("gh pr view:*",), _CAREFUL, "gh pr view 12 --comments"),
    (("gh pr list:*",), (), "gh pr list --limit 5"),
    (("curl:*",), (), "curl -sS https://api.example.org/v1/items"),
    (("curl:*", "jq:*"), _NO_RM, "curl -s https://api.example.org/v1/items | jq .count"),
    (("wget:*",), (), "wget -qO- https://example.org/index.html"),
    (("cargo build:*", "cargo test:*"), (), "cargo build --release && cargo test"),
    (("cargo:*",), _CAREFUL, "cargo clippy -- -D warnings"),
    (("go test:*",), (), "go test ./..."),
    (("go:*",), _CAREFUL, "go vet ./... && go build ./..."),
    (("node scripts/build.js:*",), (), "node scripts/build.js"),
    (("python scripts/gen.py:*",), (), "python scripts/gen.py"),
    (("pip list:*", "pip show:*"), _NO_RM, "pip show requests"),
    (("mvn test:*",), (), "mvn test"),
    (("./gradlew test:*",), _NO_RM, "./gradlew test"),
    (("cd:*", "ls:*", "cat:*"), _SECRETS, "cd src && ls && cat a.py"),
    (("ps:*", "grep:*"), _NO_RM, "ps aux | grep node"),
    (("du:*", "sort:*"), _NO_RM, "du -sh src | sort -h"),
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("everyday") / "ws"
    for name in ("secrets", "src", "tests", "scripts", "vendor"):
        (root / name).mkdir(parents=True)
    for name in ("secrets/key", ".env", "README.md", "src/a.py", "package.json", "vendor/x.js", "run.sh", "gradlew"):
        (root / name).write_text("x\n")
    yield root


@pytest.mark.parametrize(("allowed", "denied", "command"), _EVERYDAY)
def test_an_everyday_command_runs_unasked(
    workspace: Path, tmp_path: Path, allowed: tuple[str, ...], denied: tuple[str, ...], command: str
) -> None:
    tree = {
        "workspace": [str(workspace)],
        "sandbox": "off",
        "permissions": {"allow": [f"Bash({rule})" for rule in allowed], "deny": list(denied)},
    }
    gateway = Gateway(settings_of(tree, "a test"), approval=Approval.DENY, state=StateDirectory(tmp_path / "state"))

    _, decision = gateway.pipeline.admission.decide("Bash", {"command": command}, ToolContext(call_id="c"))

    assert decision.effect is Effect.ALLOW, decision.explanation


def test_the_table_holds_enough_to_say_something() -> None:
    assert len({command for _, _, command in _EVERYDAY}) >= 60
    assert sum(bool(denied) for _, denied, _ in _EVERYDAY) >= 15
