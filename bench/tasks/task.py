"""One task: what is asked, a way to solve it, and a check of how the services are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

State = Mapping[str, Mapping[Any, Any]]
"""What the services hold, by what they call it: issues, events, documents, products, orders, alerts."""


@dataclass(frozen=True)
class Task:
    """`script` is what a model that makes no mistake would do: Python of which each call of a tool is one step, and the
    rest happens in the model's head; in code mode all of it runs in the sandbox. It may set `answer`.

    `check` reads the state after the task and the answer. `is_large`: the services answer with some 50 KB.
    """

    name: str
    prompt: str
    script: str
    check: Callable[[State, str], bool]
    is_large: bool = False
