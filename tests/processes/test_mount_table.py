"""The list of mounts, from lines as kernels write them."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.processes.mount_table import MountEntry, mounts_of_kind

LINES = r"""22 27 0:21 / /proc rw,relatime shared:5 master:1 - proc proc rw
36 35 98:0 /sub /mnt/with\040blank\134s rw,noatime - proc none ro,hidepid=2
39 31 0:36 /docker/abc /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids
40 31 0:37 / /data rw - ext4 /dev/proc rw
broken
"""


def test_mounts_of_the_wanted_kinds_are_listed_with_their_paths_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(LINES)

    assert mounts_of_kind({"proc", "cgroup"}, str(file)) == [
        MountEntry("/", "/proc", "proc", ("rw",)),
        MountEntry("/sub", "/mnt/with blank\\s", "proc", ("ro", "hidepid=2")),
        MountEntry("/docker/abc", "/sys/fs/cgroup/pids", "cgroup", ("rw", "pids")),
    ]


def test_a_list_that_cannot_be_read_names_none(tmp_path: Path) -> None:
    assert mounts_of_kind({"proc"}, str(tmp_path / "none")) == []
