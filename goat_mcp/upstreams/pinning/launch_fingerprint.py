"""How an upstream is launched, as one hash for `goat.lock`, and whether its launch names one version (PIN-1, PIN-2).

Values of variables and headers, often secrets, are not part of it; nor are the bytes of the program.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from goat_mcp.processes.program_lookup import program_on
from goat_mcp.upstreams.config.entry import HttpEndpoint, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.config.launchers import launcher_of

_NPM_PIN = re.compile(r"^(?:@[^/@]+/)?[^@/]+@\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$")
_PYTHON_PIN = re.compile(r"==[^,*]+$|@\d[\w.+!-]*$|@[0-9a-f]{40}(?:#.*)?$")
_IMAGE_PIN = re.compile(r"@sha256:[0-9a-f]{64}$")
_IMAGE_TAG = re.compile(r":([\w.-]+)$")
_VALUE_OPTIONS = frozenset(
    {
        *("-p", "--package", "--python", "--from", "--with", "--spec", "--call", "-c"),
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--user", "-u", "-w"),
        *("--workdir", "--entrypoint", "--platform", "-m", "--memory", "--cpus", "--label", "-l", "--add-host"),
    }
)
_PACKAGE_OPTIONS = frozenset({"-p", "--package", "--from", "--spec"})


def launch_fingerprint(target: StdioLaunch | HttpEndpoint) -> str:
    """SHA-256 over the resolved program, its arguments, names of variables and directory, or over the URL."""
    if isinstance(target, StdioLaunch):
        search = target.env.get("PATH", os.environ.get("PATH", os.defpath))
        program = program_on(search, str(Path(target.command).expanduser())) or target.command
        facts: list[Any] = ["stdio", program, list(target.args), sorted(target.env), target.cwd]
    else:
        facts = ["http", target.url, sorted(target.headers)]
    return hashlib.sha256(json.dumps(facts).encode("ascii")).hexdigest()


def unpinned_launch(config: UpstreamConfig) -> str:
    """The package or image of a launch that may be another one tomorrow, and what to write; empty if there is none."""
    launcher = launcher_of(config.target)
    package = _package(list(launcher.words)) if launcher is not None and launcher.kind else ""
    return _advice(launcher.kind, package) if launcher is not None and package else ""


def _advice(kind: str, package: str) -> str:
    if package.startswith((".", "/")):
        return ""
    if kind == "image":
        tag = _IMAGE_TAG.search(package)
        if _IMAGE_PIN.search(package) or (tag is not None and tag[1] != "latest"):
            return ""
        return (
            f"image {package} names no version; write a tag or a digest, e.g. {package.removesuffix(':latest')}:1.2.3"
        )
    pattern, mark = (_NPM_PIN, "@") if kind == "npm" else (_PYTHON_PIN, "==")
    if pattern.search(package):
        return ""
    bare = package[:1] + re.split(r"[@=<>~!\[]", package[1:])[0]
    return f"package {package} names no version; write e.g. {bare}{mark}1.2.3"


def _package(words: list[str]) -> str:
    """What a runner is told to run: the value of an option that names it, else the first word that is no option."""
    at = 0
    while at < len(words):
        word = words[at]
        option, equals, value = word.partition("=")
        if word.startswith("-"):
            takes_next = not equals and option in _VALUE_OPTIONS
            if option in _PACKAGE_OPTIONS:
                return value if equals else next(iter(words[at + 1 : at + 2]), "")
            # The value of an option that we do not know shows itself where it is an address.
            takes_next = takes_next or (not equals and "://" in "".join(words[at + 1 : at + 2]))
            at += 2 if takes_next else 1
            continue
        return word
    return ""
