"""A real LiteLLM proxy in front of a scripted model, for the tests that put agents and our definitions through it.

Mark such a test (or module) with `in_one_worker`, so that parallel workers do not start a proxy each. What the proxy
is made of is installed by `make litellm`; without it these tests fail, and say so.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import end
from tests.e2e.scripted_backend import BACKEND_KEY, MODEL, ScriptedBackend

PROGRAM = Path(__file__).parent / "litellm" / ".venv" / "bin" / "litellm"
MASTER_KEY = "sk-example-master-key-of-the-proxy"
OTHER_MODEL = "scripted-other"
START_TIMEOUT_S = 180.0
ANSWER_TIMEOUT_S = 60.0
_LISTENS = "Uvicorn running on "

in_one_worker = pytest.mark.xdist_group("litellm")


@dataclass(frozen=True)
class LiteLlm:
    """A running proxy. `backend` is the model behind it; it serves it under the names `MODEL` and `OTHER_MODEL`."""

    url: str
    """What an OpenAI client calls its base URL; ends with `/v1`."""
    backend: ScriptedBackend
    key: str = MASTER_KEY
    model: str = MODEL
    other_model: str = OTHER_MODEL

    def complete(self, messages: Sequence[dict[str, Any]], **more: Any) -> tuple[int, dict[str, Any]]:
        """Send a chat completion as any OpenAI client would; `more` are further members, e.g. `tools`. Status, body."""
        body = json.dumps({"model": self.model, "messages": list(messages), **more}).encode()
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/chat/completions", body, headers)
        # Proxies of the environment have no say on loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=ANSWER_TIMEOUT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)


@contextmanager
def litellm_process(folder: Path, backend: ScriptedBackend) -> Generator[LiteLlm]:
    """Start `litellm` on a free port of this machine; it is told to end afterwards. `folder` holds what it writes."""
    assert PROGRAM.exists(), f"no LiteLLM proxy at {PROGRAM}: run `make litellm`"
    config = folder / "config.yaml"
    config.write_text(json.dumps(_config(backend)))
    # Nothing of the user's: a key of theirs would be used, a proxy of theirs would be asked.
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        # Prices of models are looked up on the internet otherwise.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    process = subprocess.Popen(
        [str(PROGRAM), "--config", str(config), "--host", "127.0.0.1", "--port", "0", "--telemetry", "False"],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield LiteLlm(f"{_wait_for_url(process)}/v1", backend)
    finally:
        end(process)


@pytest.fixture(scope="session")
def litellm_running(tmp_path_factory: pytest.TempPathFactory) -> Generator[LiteLlm]:
    """The one proxy of this worker. Tests ask for `litellm`."""
    with ScriptedBackend().running() as backend, litellm_process(tmp_path_factory.mktemp("litellm"), backend) as proxy:
        yield proxy


@pytest.fixture
def litellm(litellm_running: LiteLlm) -> LiteLlm:
    """The proxy, its model with an empty script."""
    litellm_running.backend.forget()
    return litellm_running


def _config(backend: ScriptedBackend) -> dict[str, Any]:
    def served(name: str) -> dict[str, Any]:
        # `openai/NAME` is how LiteLLM is told to speak OpenAI's format to the address and to name the model NAME.
        parameters = {"model": f"openai/{name}", "api_base": backend.url, "api_key": BACKEND_KEY}
        return {"model_name": name, "litellm_params": parameters}

    return {
        "model_list": [served(MODEL), served(OTHER_MODEL)],
        # One failure of the model is one failure seen; otherwise LiteLLM tries again and rests the model for a while.
        "litellm_settings": {"num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {"master_key": MASTER_KEY},
    }


def _wait_for_url(process: subprocess.Popen[str]) -> str:
    """The address in the line that says that it listens; later lines are read and dropped."""
    lines = queue.Queue[str | None]()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    seen: list[str] = []
    ends_at_s = time.monotonic() + START_TIMEOUT_S
    try:
        while (line := lines.get(timeout=max(0.01, ends_at_s - time.monotonic()))) is not None:
            seen.append(line)
            if _LISTENS in line:
                return line.split(_LISTENS)[1].split()[0]
    except queue.Empty:
        raise AssertionError(f"LiteLLM did not listen within {START_TIMEOUT_S:g} s:\n{''.join(seen)}") from None
    raise AssertionError(f"LiteLLM ended with {process.wait(10)} before it listened:\n{''.join(seen)}")
