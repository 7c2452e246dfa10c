"""A repository that plants a logging program wherever git can be made to run one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class HostileRepository:
    """At `root`. The programs stand in `bin`, by the names of their keys."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.log = folder / "log"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            self._env |= {f"GIT_{who}_NAME": "n", f"GIT_{who}_EMAIL": "n@example.invalid"}
        self._commits()

    def git(self, *arguments: str, at: Path | None = None, data: str = "", check: bool = True) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.root,
            env=self._env,
            input=data,
            capture_output=True,
            text=True,
            check=check,
        )
        return done.stdout.strip()

    def program(self, name: str, *, answers: bool = True) -> str:
        """A program that writes its name to the log, and then is what filters and drivers are expected to be.

        `answers=False`: it ends at once. git waits long for a remote that only repeats what it reads.
        """
        file = self.bin / "".join(letter if letter.isalnum() else "_" for letter in name)
        rest = 'test -f "$1" && exec cat "$1"\ncat\n' if answers else "exit 1\n"
        file.write_text(f'#!/bin/sh\necho "{name}" >> {self.log}\n{rest}')
        file.chmod(0o755)
        return str(file)

    def configure(self, *keys: str) -> None:
        if "filter.evil.clean" in keys:
            self.git("config", "filter.evil.required", "true")
        for key in keys:
            bang = "!" if key.startswith(("alias.", "credential.", "submodule.")) else ""
            self.git("config", key, bang + self.program(key))
        for key, value in {
            "log.showSignature": "true",
            "log.diffMerges": "remerge",
            "diff.submodule": "diff",
            "diff.ignoreSubmodules": "none",
            "status.submoduleSummary": "true",
            "protocol.ext.allow": "always",
            "hook.evil.event": "post-index-change",
            "remote.origin.url": f"ext::{self.program('remote-ext')}",
        }.items():
            self.git("config", key, value)
        for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction"):
            file = self.root / ".git" / "hooks" / hook
            file.parent.mkdir(exist_ok=True)
            shutil.copy(self.program(f"hook-{hook}"), file)
        self.ran()

    def ran(self) -> set[str]:
        """Which programs have run since the last question."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return set(lines)

    def make_dirty(self) -> None:
        """Git has to look into the files again: equal in size, newer in time."""
        self.root.joinpath("f.txt").write_text("six\n")
        for name in ("f.txt", "sub/a"):
            if (file := self.root / name).exists():
                stat = file.stat()
                os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 5_000_000_000))

    def add_submodule(self) -> None:
        """One whose own configuration is hostile, too, and which its .gitmodules alone names."""
        other = self.log.parent / "other"
        other.mkdir()
        self.git("init", "-q", at=other)
        other.joinpath("a").write_text("a\n")
        other.joinpath(".gitattributes").write_text("* filter=inner\n")
        self.git("add", "-A", at=other)
        self.git("commit", "-qm", "a", at=other)
        self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
        self.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
        self.git("commit", "-qam", "sub")
        self.git("config", "--remove-section", "submodule.sub")
        for key in ("filter.inner.clean", "core.fsmonitor"):
            self.git("config", key, self.program(f"submodule {key}"), at=self.root / "sub")

    def _commits(self) -> None:
        self.git("init", "-q", "-b", "main")
        self.root.joinpath(".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n*.b filter=two\n")
        self.root.joinpath("x.b").write_text("x\n")
        self._commit("one")
        self.git("checkout", "-qb", "side")
        self._commit("two")
        self.git("checkout", "-q", "main")
        self._commit("three")
        self.git("merge", "-q", "side", check=False)
        self._commit("four")
        self.git("tag", "merged")
        self._commit("five")
        signed = (
            f"tree {self.git('rev-parse', 'HEAD^{tree}')}\nparent {self.git('rev-parse', 'HEAD')}\n"
            "author n <n@example.invalid> 1700000000 +0000\ncommitter n <n@example.invalid> 1700000000 +0000\n"
            "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
        )
        self.git("update-ref", "HEAD", self.git("hash-object", "-t", "commit", "-w", "--stdin", data=signed))
        self.git("config", "core.logAllRefUpdates", "true")

    def _commit(self, text: str) -> None:
        self.root.joinpath("f.txt").write_text(f"{text}\n")
        self.git("add", "-A")
        self.git("commit", "-qm", text)
