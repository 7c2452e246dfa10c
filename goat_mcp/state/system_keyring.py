"""The system's keyring: asked in threads that nobody has to wait for, since a locked one asks its owner first.

The library is loaded with the first question. What is kept there, and under which names, is for the callers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from goat_mcp.core import platform
from goat_mcp.core.json_values import items

WAIT_S = 20.0
"""A keyring that is locked asks its owner, who may be away."""

T = TypeVar("T")
_NONE = ("keyring.backends.fail.", "keyring.backends.null.")
_PLAIN = ("keyrings.alt.file.PlaintextKeyring",)
_NEXT = {
    "linux": "`keyring diagnose` tells more",
    "macos": "unlock it in Keychain Access and allow the access if macOS asks (over SSH: security unlock-keychain)",
    "windows": "`keyring diagnose` tells more; Credential Manager takes 2,560 bytes at most",
}


class KeyringTrouble(Exception):
    """The keyring cannot be used now. The text goes on after `the keyring`."""


class SystemKeyring:
    """What the library `keyring` finds on this machine. `backend` is another one of its kind."""

    def __init__(self, backend: Any = None) -> None:
        self._backend = backend

    def is_there(self) -> bool:
        """Whether anything could be kept: many servers and containers have none."""
        try:
            backend: Any = self._found()
            # A property of the class; some raise instead of answering.
            return self._answer(lambda: float(backend.__class__.priority) > 0)
        except KeyringTrouble:
            return False

    def get(self, service: str, user: str) -> str | None:
        """Raises `KeyringTrouble`, as all of these do."""
        return self._answer(lambda: self._found().get_password(service, user))

    def set(self, service: str, user: str, secret: str) -> None:
        """Keep it, and see that it was kept: some backends cut what is long."""

        def keep() -> bool:
            backend = self._found()
            backend.set_password(service, user, secret)
            return backend.get_password(service, user) == secret

        if not self._answer(keep):
            raise KeyringTrouble("did not keep what it was given")

    def delete(self, service: str, user: str) -> None:
        """Nothing happens if there is none."""

        def drop() -> None:
            backend = self._found()
            if backend.get_password(service, user) is not None:
                backend.delete_password(service, user)

        self._answer(drop)

    def _found(self) -> Any:
        if self._backend is not None:
            return _checked(self._backend)
        try:
            import keyring

            return _checked(keyring.get_keyring())
        except ImportError:
            raise KeyringTrouble("needs the package keyring; install goat-mcp[keyring]") from None
        except OSError as problem:  # its settings lie in a home that may not be searched
            raise KeyringTrouble(f"cannot be found: {problem.strerror}") from None

    def _answer(self, ask: Callable[[], T]) -> T:
        answers: list[T] = []
        problems: list[Exception] = []

        def run() -> None:
            try:
                answers.append(ask())
            except Exception as problem:  # a backend raises what it likes
                problems.append(problem)

        # In a thread of its own: nobody can end a backend that waits for somebody to unlock it.
        asking = threading.Thread(target=run, name="keyring", daemon=True)
        asking.start()
        asking.join(WAIT_S)
        if problems:
            if isinstance(problems[0], KeyringTrouble):
                raise problems[0]
            raise KeyringTrouble(f"failed ({type(problems[0]).__name__}); {_NEXT[platform.SYSTEM]}")
        if not answers:
            raise KeyringTrouble(f"did not answer in {WAIT_S:.0f} s; unlock it and try again")
        return answers[0]


def _checked(backend: Any) -> Any:
    """Refuse what keeps nothing, and what keeps secrets for everybody to read. Raises `KeyringTrouble`."""
    # Of several in a chain the first one is asked first, and takes what is stored.
    first = next(iter(items(getattr(backend, "backends", None))), backend)
    name = f"{type(first).__module__}.{type(first).__qualname__}"
    if name.startswith(_NONE):
        raise KeyringTrouble("is not there: no keyring of this system was found, or it was switched off")
    if name in _PLAIN:
        raise KeyringTrouble(f"would be a file in plain text ({name}); uninstall keyrings.alt")
    return backend
