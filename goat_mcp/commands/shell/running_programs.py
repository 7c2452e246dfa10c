"""Which programs run another program or a text that their arguments, options or environment name: tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.shell.words import Word, names

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish", "busybox-sh", "csh", "tcsh", "lksh", "pdksh"}
    | {"yash", "posh", "oksh", "osh", "sash", "hush", "rksh", "rzsh", "nu", "xonsh", "elvish", "pwsh"}
)

# Options that take the next word, and after "|" how many words precede the command; "?" where there may be one.
WRAPPERS = {
    "env": "-u --unset -C --chdir -a --argv0 -P -L -U",
    "xargs": "-a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-args --max-procs --max-chars",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "nohup": "",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p --class --classdata --pid",
    "chrt": "-T -P -D --sched-runtime --sched-period --sched-deadline|1",
    "taskset": "|1",
    "timeout": "-k -s --kill-after --signal|1",
    "time": "-f -o --format --output",
    "stdbuf": "-i -o -e --input --output --error",
    "setsid": "",
    "sudo": "-C -D -g -h -p -R -r -T -t -U -u --user --group --prompt --chdir --host",
    "doas": "-C -u",
    "pkexec": "--user",
    "su": "-s -g -G -w -c --shell --group --supp-group --whitelist-environment --command --session-command|1",
    "runuser": "-u -g -G -s -w -c --user --group --supp-group --shell --whitelist-environment --command "
    "--session-command|?",
    "watch": "-n --interval",
    "coproc": "",
    "strace": "-e -o -p -P -s -u -E",
    "ltrace": "-e -o -p -s -u",
    "flock": "-w -E --timeout --wait --conflict-exit-code|1",
    "chroot": "--userspec --groups|1",
    "unshare": "-R -w -S -G --root --wd --setuid --setgid --map-user --map-group --map-users --map-groups "
    "--propagation --setgroups --monotonic --boottime --kill-child-signal",
    "nsenter": "-t -S -G",
    "setarch": "|?",
    **dict.fromkeys(("i386", "i486", "i586", "i686", "x86_64", "linux32", "linux64", "uname26", "arch"), ""),
    **dict.fromkeys(("aarch64", "armv7l", "ppc", "ppc64", "s390", "s390x", "sparc", "mips", "mips64", "athlon"), ""),
    "choom": "-n -p --adjust --pid",
    "sandbox-exec": "-f -n -p -D",
    "xcrun": "-sdk -toolchain --sdk --toolchain",
    "sg": "|1",
    "logsave": "|1",
    **dict.fromkeys(
        ("setuidgid", "envuidgid", "envdir", "s6-setuidgid", "gosu", "su-exec", "runcon", "faketime"), "|1"
    ),
    **dict.fromkeys(("setlock", "chpst", "softlimit", "sshpass", "aa-exec", "valgrind", "perf", "hyperfine"), "|?"),
    **dict.fromkeys(
        ("chronic", "nocache", "tini", "dumb-init", "proot", "fakechroot", "tsocks", "run-one", "dtach"), ""
    ),
    **dict.fromkeys(("systemd-inhibit", "dbus-launch", "mpirun", "mpiexec", "vglrun", "proxychains4"), ""),
    "numactl": "-N -m -C",
    "prlimit": "-p",
    "systemd-run": "-p -u --unit --property",
    "dbus-run-session": "",
    "xvfb-run": "-n -s -e -f -w",
    "fakeroot": "",
    "firejail": "",
    "bwrap": "",
    "proxychains": "-f",
    "torsocks": "",
    "rlwrap": "",
    "unbuffer": "",
    "caffeinate": "-t -w",
    "catchsegv": "",
    "ssh": "-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w|1",
    **dict.fromkeys(("rsh", "remsh"), "-l -p|1"),
    "sem": "-j --jobs --id",
    "parallel": "-j --jobs -P --max-procs -I -n -N -L -a --arg-file -C --colsep -d --delimiter -S --sshlogin --joblog "
    "--results --timeout --delay --retries --halt --workdir --tagstring",
    "entr": "",
    "busybox": "",
    "toybox": "",
    "npx": "-p --package",
    "bunx": "",
    "pnpx": "",
    "uvx": "--from --with",
    "start-stop-daemon": "-p -x --pidfile --exec",
    "script": "-c -E -I -O -B -T -m -o --command --echo --log-in --log-out --log-io --log-timing --logging-format "
    "--output-limit|?",
    "setpriv": "",
    "daemonize": "",
    "trickle": "-d -u",
    "cpulimit": "-l -p -e",
    "eatmydata": "",
    "ccache": "",
    **dict.fromkeys(("systemd-cat", "watchexec", "ssh-agent", "toolbox"), ""),
    "cgexec": "-g",
    "pdsh": "-w -x -f -l -R -t -u",
    **dict.fromkeys(("login", "newgrp"), "|1"),
    **dict.fromkeys(("schroot", "systemd-nspawn"), ""),
    "git-exec": "",
}
# Programs that run one after a verb of theirs: `uv run pytest`.
RUNNING_VERBS = {
    "uv": {"run"},
    "poetry": {"run"},
    "pipenv": {"run"},
    "pdm": {"run"},
    "hatch": {"run"},
    "rye": {"run"},
    "bundle": {"exec"},
    "npm": {"exec", "x"},
    "pnpm": {"exec", "dlx"},
    "yarn": {"exec", "dlx"},
    "bun": {"x"},
    "mise": {"exec", "x"},
    "asdf": {"exec"},
    "rbenv": {"exec"},
    "pyenv": {"exec"},
    "nvm": {"exec"},
    "direnv": {"exec"},
    "ip": {"exec"},
    **{key: {"run"} for key in ("op", "doppler", "infisical")},
    **{key: {"exec"} for key in ("aws-vault", "chamber")},
    **{key: {"run"} for key in ("conda", "mamba", "micromamba")},
    **{key: {"run", "exec"} for key in ("volta", "nodenv", "goenv")},
}
CONTAINERS = names(
    "docker podman nerdctl kubectl oc lxc incus ctr crictl docker-compose podman-compose apptainer singularity "
    "flatpak distrobox machinectl lxc-attach lxc-execute wsl"
)
CONTAINERS_RUN_BY = frozenset({"run", "exec", "create", "shell", "enter", "-e", "--exec", "--"})
TEXT_OPTIONS = {
    "sg": ("-c", "--command"),
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command", "--session-command"),
    "flock": ("-c", "--command"),
    "script": ("-c", "--command"),
}
# Without a command they run a shell.
OPENS_SHELL = names(
    "su runuser unshare nsenter chroot script ssh rsh remsh sg newgrp login setarch i386 i486 i586 i686 x86_64 "
    "linux32 linux64 uname26 aarch64 fakeroot fakechroot firejail proot pkexec aa-exec schroot systemd-nspawn toolbox "
    "tsocks torsocks systemd-run"
)
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
RUN_BY_VARIABLE = re.compile(
    r"(?:.*(?:PAGER|EDITOR|VISUAL|_COMMAND|_ASKPASS|BROWSER|PROXY_COMMAND|LESSOPEN|LESSCLOSE|EXTERNAL_DIFF|_SSH|SHELL)"
    r"|LD_PRELOAD|BASH_ENV|ENV|PS4|PROMPT_COMMAND)\Z"
)
RUN_BY_GIT_KEY = re.compile(
    r"alias\.|pager|editor|command|external|textconv|fsmonitor|\.cmd|helper|program|hookspath|driver|askpass|proxy"
    r"|filter\.|uploadpack|receivepack|\.tool",
    re.IGNORECASE,
)
# Builtins that evaluate a subscript in their arguments: printf -v 'a[$(rm x)]'.
EVALUATES_SUBSCRIPTS = names(
    "printf test [ let declare typeset local export readonly read unset wait mapfile readarray getopts"
)
BEFORE_COMMANDS = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "{"})
"""Reserved words. After `time` and after another `!` our grammar takes them for a program: time if rm x."""
LOADERS = re.compile(r"ld(?:-[\w-]+)?(?:\.so|64\.so|-.*\.so)(?:\.\d+)?\Z|ld-[\w.-]+\.so(?:\.\d+)?\Z")
"""The dynamic loader, which runs the program that it is given: ld-linux-x86-64.so.2."""
LOADER_OPTIONS = frozenset(
    {"--library-path", "--preload", "--argv0", "--audit", "--inhibit-rpath", "--glibc-hwcaps-mask"}
)


_MIN_ABBREVIATED = len("--x")
_OPTIONS_THAT_RUN = {
    "split": "--filter",
    "tar": "--checkpoint-action --to-command --use-compress-program --info-script --new-volume-script --rsh-command "
    "-I -F",
    "sort": "--compress-program",
    "rg": "--pre --hostname-bin",
    "man": "--pager --html -P -H",
    "zip": "--unzip-command -TT",
    "rsync": "--rsh --rsync-path -e",
    "scp": "-S -o",
    "sftp": "-S -o",
    "svn": "--diff-cmd --diff3-cmd --editor-cmd --merge-cmd --config-option",
    "hg": "--config",
    "bat": "--pager",
    "nc": "--exec --sh-exec --lua-exec -e -c",
    "make": "--eval",
    "npm": "--script-shell --call -c",
    "npx": "--call -c",
    "ssh": "-o",
    "less": "",
    "xterm": "-e",
    "wget": "--use-askpass",
    "hyperfine": "--prepare --setup --cleanup --conclude -p -s -c",
    "gdb": "--eval-command --init-eval-command -ex -iex",
    "vim": "--cmd -c",
    "nodemon": "--exec -x",
    "nix-shell": "--run --command",
    "nix": "--command -c",
    "vagrant": "--command -c",
    # Of bash itself.
    "mapfile": "-C",
    "compgen": "-C",
    "complete": "-C",
}
_SAME_OPTIONS = {
    "gtar": "tar",
    "bsdtar": "tar",
    "gsort": "sort",
    "gsplit": "split",
    "batcat": "bat",
    "ncat": "nc",
    "netcat": "nc",
    "gmake": "make",
    "readarray": "mapfile",
    **dict.fromkeys(("vi", "nvim", "view", "ex", "gvim", "rvim", "vimdiff"), "vim"),
}
_RUNS_SOMETHING = re.compile(r"!|\b(?:shell|pipe|exec|hooks)\b|command[= ]", re.IGNORECASE)
_OWN_LANGUAGE = frozenset({"vim", "gdb", "hg", "ssh", "less"})
"""Their values are in a language of their own, which has words for running something."""
_BEFORE_TEXT = re.compile(r"(?:exec=|[\w.-]+=!?|!|shell |:?!|\|)")
"""Text before the command: tar's `exec=`, hg's `alias.x=!`, `!` of editors and debuggers."""


def texts_of_options(name: str, rest: Sequence[Word]) -> list[Word]:
    """The texts that a program's options make a shell run. Finds abbreviated, attached and clustered options."""
    program = _SAME_OPTIONS.get(name, name)
    options = _OPTIONS_THAT_RUN.get(program, "").split()
    found: list[Word] = []
    for index, word in enumerate(rest):
        if program in ("vim", "less") and word.text.startswith("+"):
            found.append(Word(word.text.partition("!")[2], word.literal))
        for option in options:
            attached = value_attached(option, word.text)
            if attached is None:
                continue
            value = Word(attached, word.literal) if attached else next(iter(rest[index + 1 : index + 2]), None)
            if value is not None and (program not in _OWN_LANGUAGE or _RUNS_SOMETHING.search(value.text)):
                found.append(value)
                # With and without the program's own prefix.
                found.append(Word(_BEFORE_TEXT.sub("", value.text, count=1), value.literal))
            break
    return found


def value_attached(option: str, word: str) -> str | None:
    """The value in the same word, empty if it is the next word; None if the word is not this option."""
    if option.startswith("--"):
        name, _, value = word.partition("=")
        matches = name == option or (len(name) >= _MIN_ABBREVIATED and option.startswith(name))
        return value if matches else None
    if len(option) > 2:
        return "" if word == option else None
    match = re.fullmatch(rf"-[A-Za-z0-9]*?{re.escape(option[1])}(.*)", word, re.DOTALL)
    return match[1] if match else None
