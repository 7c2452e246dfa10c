"""What a process may do, as far as `/proc` shows it to everybody: so that nobody who is confined gets something from
outside by asking another process of the same user for it.
"""

from __future__ import annotations

_DECIDES = (
    *("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Seccomp", "Seccomp_filters"),
    *("Speculation_Store_Bypass", "SpeculationIndirectBranch"),
)


def why_confined(theirs: str, ours: str = "/proc/self") -> str:
    """What the process whose folder below `/proc` is `theirs` may do otherwise than the one of `ours`, in words; empty
    if nothing shows. Raises `OSError` if one is not seen."""
    status, own = status_of(theirs), status_of(ours)
    if status.get("NoNewPrivs") != "0":
        return "it has no_new_privs, and may be confined in a way that nobody can see"
    if len(status.get("NSpid", "").split()) != len(own.get("NSpid", "").split()):
        return "it has a pid namespace of its own"
    return next((f"its {name} is another" for name in _DECIDES if status.get(name) != own.get(name)), "")


def status_of(process: str) -> dict[str, str]:
    """The lines of its `status`."""
    with open(f"{process}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # a path below /proc
        lines = (line.partition(":") for line in file)
        return {name: value.strip() for name, _, value in lines}
