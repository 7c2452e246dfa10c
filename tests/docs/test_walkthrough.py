"""docs/walkthrough.md shows what its client prints: the client runs here, against a real server and a real LiteLLM."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_documents import ROOT, blocks
from tests.e2e.litellm_proxy import LiteLlm, in_one_worker
from tests.e2e.scripted_backend import Calls, Says, ToolCall

pytestmark = [pytest.mark.e2e, in_one_worker, pytest.mark.full]

DOCUMENT = ROOT / "docs" / "walkthrough.md"
RUN_TIMEOUT_S = 120


def test_the_walk_through_goes_as_it_is_recorded(tmp_path: Path, litellm: LiteLlm) -> None:
    workspace = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "walkthrough" / "project", workspace)
    litellm.backend.script(
        Calls((ToolCall("Read", {"file_path": "@/delivery.py"}), ToolCall("Read", {"file_path": "@/terms.pdf"}))),
        Says("Yes: delivery.py makes delivery free from 50, as terms.pdf says.", 812, 21),
    )
    environment = {
        **os.environ,
        "GOAT_MCP_STATE_DIR": str(tmp_path / "state"),
        "GOAT_MCP_AGENT__BASE_URL": litellm.url,
        "GOAT_MCP_AGENT__KEY": litellm.key,
        "GOAT_MCP_AGENT__MODEL": litellm.model,
    }

    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "walkthrough" / "client.py"), str(workspace)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )

    assert done.returncode == 0, done.stderr
    (recorded,) = blocks(DOCUMENT, "text")
    assert told(done.stdout, tmp_path) == told(recorded, tmp_path)
    assert "FREE_FROM = 50" in (workspace / "delivery.py").read_text()
    answers = [message["content"] for message in litellm.backend.asked[1].messages if message["role"] == "tool"]
    assert "FREE_FROM = 50" in answers[0] and "Orders above 50" in answers[1]


def told(text: str, folder: Path) -> str:
    """What is the same in every run: no ids, no times, no names of folders."""
    text = re.sub(r"\[plan file: [^\]]*\]", "[plan file: ...]", text)
    text = re.sub(r"\b[a-z2-7]{32}\b", "AGENT", text)
    text = re.sub(r"\d+(\.\d+)? s\b", "N s", text)
    return "\n".join(line.rstrip() for line in text.replace(str(folder), "").strip().splitlines())
