"""What one session may do beyond the settings: its mode after a plan was approved, and the rules granted to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from goat_mcp.calls.permissions.mode import Mode, allows_more
from goat_mcp.calls.permissions.rule import Rule

MAX_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class _Decided:
    mode: Mode | None
    """None: that of the settings, whatever they say."""
    granted: tuple[Rule, ...] = ()
    by_plan: bool = False


class SessionModes:
    """`default` is the settings' mode and holds until the user decides otherwise; the oldest decisions are dropped.

    The settings may change it while sessions run.
    """

    def __init__(self, default: Mode = Mode.DEFAULT) -> None:
        self.default = default
        self._decided: OrderedDict[str, _Decided] = OrderedDict()

    def use(self, default: Mode) -> None:
        """The settings say so now. A session that has a mode of its own keeps it, unless that allows more."""
        if default is self.default:
            return
        self.default = default
        for session_key, decided in self._decided.items():
            if decided.mode is not None and allows_more(default, decided.mode):
                self._decided[session_key] = replace(decided, mode=None, by_plan=False)

    def of(self, session_key: str) -> Mode:
        decided = self._decided.get(session_key)
        return self.default if decided is None or decided.mode is None else decided.mode

    def is_by_plan(self, session_key: str) -> bool:
        """Whether its mode is what an approved plan left it in, and nothing was chosen since."""
        decided = self._decided.get(session_key)
        return decided is not None and decided.by_plan

    def granted(self, session_key: str) -> tuple[Rule, ...]:
        """Allow rules the user gave this session."""
        decided = self._decided.get(session_key)
        return () if decided is None else decided.granted

    def grant(self, session_key: str, rules: Sequence[Rule]) -> None:
        """The user allowed such calls for as long as this session lasts."""
        before = self._decided.get(session_key, _Decided(None))
        known = {(rule.text, rule.directory) for rule in before.granted}
        new = [rule for rule in rules if (rule.text, rule.directory) not in known]
        self._put(session_key, replace(before, granted=(*before.granted, *new)))

    def revoke(self, session_key: str, texts: Collection[str]) -> bool:
        """The user takes these rules back. False if the session had none of them."""
        before = self._decided.get(session_key, _Decided(None))
        kept = tuple(rule for rule in before.granted if rule.text not in texts)
        if len(kept) == len(before.granted):
            return False
        self._put(session_key, replace(before, granted=kept))
        return True

    def choose(self, session_key: str, mode: Mode) -> None:
        """The session goes on in this mode: one that allows no more than before, or the user agreed."""
        self._put(session_key, replace(self._decided.get(session_key, _Decided(mode)), mode=mode, by_plan=False))

    def leave_plan(self, session_key: str, granted: tuple[Rule, ...] = ()) -> Mode:
        """The user approved this session's plan. Returns the mode that holds now: `default`, for none came before."""
        self._put(session_key, _Decided(Mode.DEFAULT, granted, by_plan=True))
        return Mode.DEFAULT

    def decided(self) -> Mapping[str, str]:
        """The mode of each session that has one of its own, for a process that goes on in this one's place."""
        return {key: decided.mode.value for key, decided in self._decided.items() if decided.mode is not None}

    def resume(self, decided: Mapping[str, str]) -> None:
        """What `decided` said in the process before. A mode that allows more than the settings do now is left."""
        for session_key, mode in decided.items():
            if not allows_more(self.default, Mode(mode)):
                self.choose(session_key, Mode(mode))

    def _put(self, session_key: str, decided: _Decided) -> None:
        self._decided[session_key] = decided
        self._decided.move_to_end(session_key)
        if len(self._decided) > MAX_SESSIONS:
            self._decided.popitem(last=False)
