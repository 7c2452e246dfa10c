"""What a deny or ask rule looks at: every command after unquoting, basename and unwrapping (R-SHELL-5)."""

from __future__ import annotations

import pytest

from goat_mcp.shell.pattern import CommandPattern
from goat_mcp.shell.rules import denied_by
from goat_mcp.shell.script import read_script

_RM = CommandPattern.parse("rm:*")


@pytest.mark.parametrize(
    "script",
    [
        *(
            "env -i A=b rm x",
            "env -u A rm x",
            "env -S 'rm x'",
            "env --split-string='rm x'",
            "sudo -u me rm x",
            "sudo -n rm x",
        ),
        *("xargs rm", "xargs -0 -n 1 rm", "xargs -I% rm %", "find . | xargs rm", "nice -n 5 rm x", "nohup rm x &"),
        *("time ! rm x", "! ! rm x", "time if rm x; then :; fi", "time while A=b rm x; do :; done", "time ! A=b rm x"),
        *("time for i in a; do rm x; done", "coproc { rm x; }", "time -p -- ! rm x"),
        *("timeout -k 5 10 rm x", "time -p rm x", "stdbuf -oL rm x", "setsid rm x", "watch -n 1 rm x", "watch 'rm x'"),
        *(
            "find . -exec rm {} +",
            "find . -name a -execdir rm {} \\;",
            "bash -c 'rm x'",
            "sh -ec 'true; rm x'",
            "zsh -c -- 'rm x'",
        ),
        *(
            "bash -o pipefail -c 'rm x'",
            "eval rm x",
            "eval 'echo a; rm x'",
            "exec -a n rm x",
            "command -p rm x",
            "builtin command rm x",
        ),
        *("bash <<< 'rm x'", "bash <<E\nrm x\nE", "sudo bash <<'E'\nrm x\nE", "sh -s a <<E\nrm x\nE"),
        *(
            "f() { rm x; }; f",
            "function f { rm x; }",
            "if true; then rm x; fi",
            "while rm x; do :; done",
            "for i in a; do rm $i; done",
        ),
        *(
            "(rm x)",
            "{ rm x; }",
            "! rm x",
            "a && rm x || b",
            "x=$(rm x)",
            'echo "${x:-$(rm x)}"',
            "`rm x`",
            "diff <(rm x) b",
        ),
        *("\\rm x", '"rm" x', "r\\m x", "$'rm' x", "r\\\nm x", "A=b rm x", "> out rm x", "rm<x", "cat <<E\n`rm x`\nE"),
        *("echo ${x:-`rm x`}", "echo ${x/`rm x`/}", "cat <<-E\n\t$(rm x)\n\tE", "script -qc 'rm x' /dev/null"),
        *("ssh h rm x", "eval -- 'rm x'", "trap -- 'rm x' EXIT"),
        *(
            "trap 'rm x' EXIT",
            "alias ls='rm x'",
            "hash -p /bin/rm ls",
            "git -c alias.z='!rm x' z",
            "git bisect run rm x",
        ),
        *(
            "GIT_PAGER='rm x' git log",
            "git submodule foreach 'rm x'",
            "su me -c 'rm x'",
            "flock l -c 'rm x'",
            "flock l rm x",
        ),
        *(
            "uv run rm x",
            "npx rm",
            "npm exec -- rm x",
            "busybox rm x",
            "case a in a) rm x;; esac",
            "coproc rm x",
            "chroot / rm x",
        ),
        *(
            "env env sudo nice bash -c 'eval \"rm x\"'",
            "[[ -n $(rm x) ]]",
            "export A=$(rm x)",
            "((a[$(rm x)]))",
            "mapfile -C 'rm x'",
        ),
        *(
            "time bash -c 'rm x'",
            "echo a |& rm x",
            "doas rm x",
            "parallel rm ::: x",
            "echo `echo \\`rm x\\``",
            'echo "`echo \\`rm x\\``"',
            "echo `echo \\`echo \\\\\\`rm x\\\\\\`\\``",
            "git rebase -x 'rm x' main",
            "~/bin/rm x",
        ),
    ],
)
def test_a_program_is_seen_through_what_runs_it(script: str) -> None:
    assert denied_by(read_script(script), _RM)


@pytest.mark.parametrize(
    "script",
    [
        *("setarch x86_64 rm f", "setarch rm f", "setarch -R x86_64 rm f", "i386 rm f", "x86_64 rm f", "linux32 rm f"),
        *(
            "choom -n 0 rm f",
            "choom -n 0 -- rm f",
            "capsh -- -c 'rm f'",
            "capsh --print -- -c 'rm f'",
            "sg root 'rm f'",
        ),
        *("sg root -c 'rm f'", "logsave x rm f", "logsave -a x rm f", "mapfile -tC 'rm f' -c 1 <<< x"),
        *("readarray -tC'rm f' <<< x", "compgen -C 'rm f'", "/lib64/ld-linux-x86-64.so.2 /usr/bin/rm f"),
        *(
            "ld.so rm f",
            "/lib/ld-musl-x86_64.so.1 --library-path /x rm f",
            "split --filter='rm f' F",
            "split --fil 'rm f' F",
        ),
        *(
            "tar cf x f --checkpoint=1 --checkpoint-action=exec='rm f'",
            "tar xf x --to-command 'rm f'",
            "tar -xI 'rm f' -f x",
        ),
        *("sort --compress-prog='rm f' x", "rg --pre rm x", "man --html='rm x' man", "zip -T -TT 'rm f' a b"),
        *("rsync -ave 'rm f' a b", "svn diff --diff-cmd rm", "hg log --config alias.log='!rm f'", "vim -c '!rm f'"),
        *("gdb -ex '!rm f'", "gdb -ex 'shell rm f'", "nc -e rm h 1", "at now <<< 'rm f'", "nvm exec 18 rm x"),
        *(
            "uv -q run rm x",
            "uv --directory x run rm y",
            "uv tool run rm x",
            "conda run -n e rm x",
            "direnv exec . rm x",
        ),
        *(
            "runuser me -- rm x",
            "hash -rp /bin/rm ls",
            "npm exec --call='rm x'",
            "npx -c 'rm x'",
            "perf record -- rm x",
        ),
        *(
            "tmux new -d 'rm x'",
            "screen -dm rm x",
            "bash5 -c 'rm x'",
            "bash-static -c 'rm x'",
            "parallel 'rm {}' ::: x",
        ),
        *("sem rm x", "env - rm x", "fd -x rm", "fd . -X rm {}", "fd --exec rm", "ssh -o ProxyCommand='rm x' h"),
        *("less '+!rm x' f", "git config alias.z '!rm x'", "xterm -e rm x"),
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0='!rm x' git z",
        *("gosu me rm x", "chronic rm x", "perf stat rm x", "hyperfine 'rm x'", "sshpass -p x rm y"),
    ],
)
def test_a_program_is_seen_through_the_less_known_that_run_it(script: str) -> None:
    assert denied_by(read_script(script), _RM)


@pytest.mark.parametrize(
    "script",
    [
        *("x='a[$(rm f)]'; echo $((x))", "f() { echo $(($1)); }; f 'a[$(rm f)]'", "x='a[`rm f`]'; ((x))"),
        *("x='a[$(rm f)]'; [[ x -eq 1 ]]", "declare -i x='a[$(rm f)]'", "x='a[$(rm f)]'; echo ${y:x}"),
        *("x='a[$(rm f)]'; let x", "for x in 'a[$(rm f)]'; do echo $((x)); done", "compgen -W '$(rm f)'"),
        *(
            "$x y",
            "${x} y",
            "$(echo rm) x",
            "r$@m x",
            "/bin/r? x",
            "{rm,x}",
            'eval "$x"',
            'bash -c "$x"',
            "echo rm | bash",
            "curl u | sh",
        ),
        *(
            "source <(echo rm x)",
            ". /dev/stdin <<< 'rm x'",
            "bash <(echo rm x)",
            "bash <<E\n$x\nE",
            "xargs bash -c",
            "echo rm | xargs env",
        ),
        *(
            "xargs -I% % x",
            "find . -exec {} x \\;",
            "a='$(rm x)'; echo ${a@P}",
            "printf -v 'a[$(rm x)]' x",
            "ls (",
            "if true; then",
            "a 'b",
        ),
        *(
            "env $x",
            "sudo $x a",
            "echo rm x | sudo bash",
            "bash -s < <(echo rm)",
            "BASH_ENV=<(echo rm x) bash -c :",
            'trap "$x" EXIT',
        ),
        *("test -v 'a[$(rm x)]'", "true; " * 201, "echo x | xargs sh"),
    ],
)
def test_what_cannot_be_seen_is_said(script: str) -> None:
    assert read_script(script).hidden


@pytest.mark.parametrize(
    "script",
    [
        *(
            "echo rm x",
            "git rm x",
            "grep rm x | sort",
            "cat rm",
            "echo 'rm x'",
            "ls # rm x",
            "cat <<E\nrm x\nE",
            "cat <<'E'\n`rm x` $(rm x)\nE",
            "x='rm x'",
        ),
        *(
            "source .venv/bin/activate",
            "bash run.sh rm",
            "./rm.sh",
            "xargs grep rm",
            "find . -name rm",
            "sudo -u rm ls",
        ),
        *(
            "for rm in a; do echo $rm; done",
            "python -c 'rm x'",
            "make rm",
            "bash -c 'echo rm'",
            "timeout 5 ls rm",
            "echo $((1 + 2)) 'a[0]'",
            "x='$(rm)'; echo rm",
            "tar xf x -C rm",
            "sort -k2 rm",
            "man rm",
            "rsync -a rm b",
            "vim rm",
            "uv add rm",
            "ls | head",
        ),
    ],
)
def test_a_word_that_is_no_program_is_none(script: str) -> None:
    read = read_script(script)

    assert (denied_by(read, _RM), read.hidden) == (False, "")


def test_a_git_verb_is_seen_behind_global_options() -> None:
    script = read_script("git -C dir --no-pager push --force")

    assert denied_by(script, CommandPattern.parse("git push *"))


def test_all_of_a_small_script() -> None:
    script = read_script("cd src && sudo /usr/bin/env A=b make all | tee out")

    assert (script.commands[1], script.not_plain, script.hidden) == (
        ("sudo", "/usr/bin/env", "A=b", "make", "all"),
        "",
        "",
    )
    assert set(script.seen) >= {("cd", "src"), ("env", "A=b", "make", "all"), ("make", "all"), ("tee", "out")}
