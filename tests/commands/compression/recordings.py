"""The recorded outputs: which command printed each, in which of the sample projects, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Recording:
    name: str
    project: str
    command: str
    exit_code: int = 0
    program: str = "git"

    @property
    def file(self) -> Path:
        return RECORDED / f"{self.name}.txt"

    @property
    def text(self) -> str:
        return self.file.read_text().rstrip("\n")


RECORDINGS = (
    Recording("git-status", "python", "git status"),
    Recording("git-diff", "python", "git diff HEAD"),
    Recording("git-log", "python", "git log"),
    Recording("git-log-stat", "python", "git log --stat -n 6"),
    Recording("git-show", "python", "git show HEAD"),
    Recording("ls-la", "python", "ls -la src/shop/warehouse", program="ls"),
    Recording("ls-lah", "python", "ls -lah src/shop/warehouse", program="ls"),
    Recording("ls-laR", "python", "ls -laR src tests", program="ls"),
    Recording("grep", "python", "grep -rn self.counts src", program="grep"),
    Recording("grep-context", "python", "grep -rn -B1 -A1 'return self.counts' src", program="grep"),
    Recording("rg", "python", "rg -n self.counts src", program="rg"),
    Recording("cat-log", "python", "cat service.log", program="cat"),
    Recording("pytest", "python", "python -m pytest -p no:randomly", exit_code=1, program="python"),
    Recording("pytest-v", "python", "python -m pytest -v --tb=short", exit_code=1, program="python"),
    Recording("pytest-passed", "python", "python -m pytest -v tests/test_prices.py", program="python"),
    Recording("go-test", "go", "go test -v ./...", exit_code=1, program="go"),
    Recording("go-test-packages", "go", "go test ./...", exit_code=1, program="go"),
    Recording("cargo-test", "rust", "cargo test --offline", exit_code=101, program="cargo"),
    Recording("jest", "jest", "node_modules/.bin/jest --verbose", exit_code=1, program="npm"),
)
BY_NAME = {recording.name: recording for recording in RECORDINGS}
