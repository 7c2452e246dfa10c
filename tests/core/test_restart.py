"""How often a server may start itself again."""

from __future__ import annotations

from goat_mcp.core.restart import Restart


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def restarted(clock: Clock, before: Restart) -> Restart:
    """The process after `before` has asked for it."""
    before.request("")
    after = Restart(clock)
    after.times_s = before.times_s
    return after


def test_three_in_a_row_are_free_and_then_each_waits_twice_as_long_up_to_five_minutes() -> None:
    clock = Clock()
    restart, waits = Restart(clock), list[float]()
    for _ in range(12):
        waits.append(restart.wait_s())
        clock.now_s += restart.wait_s()
        restart = restarted(clock, restart)

    assert waits == [0, 0, 0, 10, 20, 40, 80, 160, 300, 300, 300, 300]
    assert restart.in_a_row == 12


def test_after_a_rest_another_row_begins() -> None:
    clock = Clock()
    restart = Restart(clock)
    for _ in range(3):
        restart = restarted(clock, restart)
    clock.now_s += 600
    still = (restart.in_a_row, restart.wait_s())
    clock.now_s += 1
    after = (restart.in_a_row, restart.wait_s())

    assert (still, after) == ((3, 0), (0, 0))


def test_one_process_counts_once_however_often_it_was_asked() -> None:
    restart = Restart(Clock())
    restart.request("a")
    restart.request("b")

    assert (restart.in_a_row, restart.reason) == (1, "b")


def test_times_of_another_boot_of_the_machine_count_for_nothing() -> None:
    restart = Restart(Clock())
    restart.times_s = [5000.0, 5000.0, 5000.0]

    assert (restart.in_a_row, restart.wait_s()) == (0, 0)
