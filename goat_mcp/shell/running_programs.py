"""Which programs run another program that their arguments or environment name. Tables only: `unwrapping` reads them."""

from __future__ import annotations

import re

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish", "busybox-sh"})

# Options that take the next word, and after "|" how many words precede the command; "?" where there may be one.
WRAPPERS = {
    "env": "-u --unset -C --chdir -S --split-string",
    "xargs": "-a -d -E -I -i -J -L -n -P -R -S -s --arg-file --delimiter --eof --replace --max-lines --max-args "
    "--max-procs --max-chars",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "nohup": "",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p --class --classdata --pid",
    "chrt": "|1",
    "taskset": "|1",
    "timeout": "-k -s --kill-after --signal|1",
    "time": "-f -o --format --output",
    "stdbuf": "-i -o -e --input --output --error",
    "setsid": "",
    "sudo": "-A -C -D -g -h -p -R -r -T -t -U -u --user --group --prompt --chdir --host",
    "doas": "-C -u",
    "pkexec": "--user",
    "su": "-s -g -G --shell --group|1",
    "runuser": "-u -g -G --user|?",
    "watch": "-n --interval",
    "coproc": "",
    "strace": "-e -o -p -P -s -u -E",
    "ltrace": "-e -o -p -s -u",
    "flock": "-w -E --timeout|1",
    "chroot": "--userspec --groups|1",
    "unshare": "-R -w -S -G",
    "nsenter": "-t -S -G",
    "setarch": "|?",
    **dict.fromkeys(("i386", "i486", "i586", "i686", "x86_64", "linux32", "linux64", "uname26", "arch"), ""),
    **dict.fromkeys(("aarch64", "armv7l", "ppc", "ppc64", "s390", "s390x", "sparc", "mips", "mips64", "athlon"), ""),
    "choom": "-n -p --adjust --pid",
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
    "ssh": "-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w|1",
    "sem": "-j --jobs --id",
    "parallel": "-j --jobs -I -n -N",
    "entr": "",
    "busybox": "",
    "toybox": "",
    "npx": "-p --package",
    "bunx": "",
    "pnpx": "",
    "uvx": "--from --with",
    "start-stop-daemon": "-p -x --pidfile --exec",
    "script": "-c --command",
    "setpriv": "",
    "daemonize": "",
    "trickle": "-d -u",
    "cpulimit": "-l -p -e",
    "eatmydata": "",
    "ccache": "",
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
    **{key: {"run"} for key in ("conda", "mamba", "micromamba")},
    **{key: {"run", "exec"} for key in ("volta", "nodenv", "goenv")},
}
TEXT_OPTIONS = {
    "sg": ("-c", "--command"),
    "su": ("-c", "--command"),
    "runuser": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "script": ("-c", "--command"),
    "env": ("-S", "--split-string"),
}
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
EVALUATES_SUBSCRIPTS = frozenset(
    {
        "printf",
        "test",
        "[",
        "let",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
        "read",
        "unset",
        "wait",
        "mapfile",
        "readarray",
        "getopts",
    }
)
BEFORE_COMMANDS = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "{"})
"""Reserved words. After `time` and after another `!` our grammar takes them for a program: time if rm x."""
LOADERS = re.compile(r"ld(?:-[\w-]+)?(?:\.so|64\.so|-.*\.so)(?:\.\d+)?\Z|ld-[\w.-]+\.so(?:\.\d+)?\Z")
"""The dynamic loader, which runs the program that it is given: ld-linux-x86-64.so.2."""
LOADER_OPTIONS = frozenset(
    {"--library-path", "--preload", "--argv0", "--audit", "--inhibit-rpath", "--glibc-hwcaps-mask"}
)
