"""What a deny or ask rule looks at: every command after unquoting, basename and unwrapping (R-SHELL-5)."""

from __future__ import annotations

import pytest

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, denied_by

_RM = CommandPattern.parse("rm:*")
_FED = [
    # Shells that read the rest of their script on standard input.
    *(
        "env -S sh <<< 'rm x'",
        "env -S 'sh -s' <<E\nrm x\nE",
        "env -S 'sh -s a' <<'E'\nrm x\nE",
        "env -iS bash <<< 'rm x'",
    ),
    *("env -vS sh <<< 'rm x'", "env -vSsh <<< 'rm x'", "env --split-string=sh <<< 'rm x'", "env --sp sh <<< 'rm x'"),
    *("env -u A -C d -S 'nice sh' <<< 'rm x'", "nice env -S sh <<< 'rm x'", "timeout 5 env -S sh <<< 'rm x'"),
    *("command env -S sh <<< 'rm x'", "env -S 'env -iS sh' <<< 'rm x'", "env -S 'A=b sh' <<< 'rm x'"),
    *("bash -c sh <<< 'rm x'", "eval sh <<< 'rm x'", "flock l -c sh <<< 'rm x'", "su me -c sh <<< 'rm x'"),
    *(
        "su me --comm sh <<< 'rm x'",
        "script -qc sh /dev/null <<< 'rm x'",
        "sg g -c sh <<< 'rm x'",
        "watch sh <<< 'rm x'",
    ),
    *("bash <<< 'bash <<< \"rm x\"'", "bash -c 'bash -c sh' <<< 'rm x'", "alias l=sh; l <<< 'rm x'"),
    *("su <<< 'rm x'", "su - me <<< 'rm x'", "unshare -r <<< 'rm x'", "unshare --map-user 0 <<< 'rm x'"),
    *("chroot / <<< 'rm x'", "ssh localhost <<< 'rm x'", "ssh -t h <<E\nrm x\nE", "ssh h 'bash -s' <<E\nrm x\nE"),
    *("sudo -s <<< 'rm x'", "sudo -iu me <<< 'rm x'", "doas -s <<< 'rm x'", "script -q f <<< 'rm x'"),
    *("fakeroot <<< 'rm x'", "setarch -R <<< 'rm x'", "linux64 <<< 'rm x'", "newgrp g <<< 'rm x'"),
    *(
        "sh - <<< 'rm x'",
        "env -S sh - <<< 'rm x'",
        "sh 0<<< 'rm x'",
        "systemd-run -S <<< 'rm x'",
    ),
    *("busybox sh <<< 'rm x'", "setsid sh <<< 'rm x'", "stdbuf -oL sh <<< 'rm x'", "nohup sh <<E\nrm x\nE"),
    *("find . -exec sh \\; <<< 'rm x'", "docker exec -i c sh <<< 'rm x'", "tcsh <<< 'rm x'"),
    *(
        "bash --rcfile /dev/stdin -i <<< 'rm x'",
        "bash <<E\nr\\\\m x\nE",
        "exec <<< 'rm x'; sh",
        "f() { sh; }; f <<< 'rm x'",
    ),
]
_NAMED = [
    *("env -iS 'bash -c \"rm x\"'", "env -vS 'A=b rm x'", "env -Srm x", "env -S 'r\\c' ; env -S '\"rm\" x'"),
    *(
        "env -S 'rm\\_x'",
        "env -S \"'rm' x # y\"",
        "env -S '-u A -S \"rm x\"'",
        "env -i --split-string 'nice -n 5' rm x",
    ),
    *("sudo -A rm x", "setpriv --reuid 0 --regid 0 rm x", "flock --wait 5 l rm x", "timeout -vk 5 10 rm x"),
    *("timeout --kill 5 10 rm x", "xargs --replace rm {}", "xargs -i rm {}", "script -q /dev/null rm x"),
    *("parallel echo ';' rm x ::: a", "docker run --rm -v a:b i rm x"),
    *("kubectl exec p -- rm x", "podman exec -it c sh -c 'rm x'", "csh -c 'rm x'", "fish --command='rm x'"),
    *("cat <<E\n`rm x`${x}\nE", "cat <<E\na `rm ${x}`\nE", "git <<E\n`rm x`${x} "),
    *("socat - EXEC:'rm x'", "su --session-command='rm x' me", "ip netns exec n rm x", "nix-shell --run 'rm x'"),
]
_HIDDEN = [
    *("echo 'rm x' | env -S sh", 'env -S "$x"', "env -S 'sh -c ${X}'", "env -S '${X} y'", "find . | xargs env -S"),
    *("env -$x 'rm y'", "bash -$x 'rm y'", "bash $x 'rm y'", "bash {-c,'rm x'}", 'env -S "\'rm"', "env -S 'rm \\q'"),
    *("coproc bash; echo rm >&${COPROC[1]}", "bash < /dev/tcp/h/1", "exec 3<> /dev/udp/h/1; sh <&3"),
    *("echo 'rm x' | bash -c sh", "echo 'rm x' | ssh h", "echo 'rm x' | su me", "echo rm | script -q f"),
    *("echo 'rm x' | unshare -r", "echo 'rm x' | nice flock l -c sh", "crontab - <<< '* * * * * rm x'"),
    *("xargs -n 1 -I% % x", "xargs -0I % % x", "xargs su me -c", "xargs find . -exec", "echo push | xargs git"),
    *(
        "parallel ::: 'rm x'",
        "parallel -k ::: 'rm x'",
        "parallel sh -c ::: 'rm x'",
        "parallel 'sh -c {}' ::: 'rm x'",
        "parallel -j 2 -I% 'sh -c %' ::: 'rm x'",
    ),
    *("BASH_ENV=/dev/stdin bash -c : <<< 'rm x'", "xargs flock l -c", "echo 'rm x' | docker exec -i c sh"),
    *("bash <<E\n$x\nE", "bash /dev/fd/3 3<<< 'rm x'", "env -S sh 0<<E\nrm x\nE"),
]
_OTHERS = [
    *("env -S 'ls rm'", "env -i ls | head", 'bash "$DIR/run.sh"', "bash run.sh <<< 'rm x'", "ssh h ls rm | head"),
    *("ssh -V | head", "sudo -n ls | head", "docker rm x | head", 'docker run --rm -v "$PWD":/w i ls | head'),
    *("flock -n l make -j$N", "su me -c ls | head", 'timeout --foreground 5 ls "$d" | head', "env | sort"),
    *(
        "find . -name '*.sh' -exec bash {} \\;",
        "git ls-files | xargs git add",
        "xargs -n 1 -I% ls %",
        "crontab -l | head",
    ),
    *("cat <<'E'\n`rm x` $x\nE", "cat <<E\n\\`rm x\\` $x\nE"),
    *("script --version | head", "parallel gzip {} ::: rm", "nice -n 5 ls | wc", "env -u A -C d ls rm | wc"),
]


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
            "./rm.sh",
            "xargs grep rm",
            "find . -name rm",
            "sudo -u rm ls",
        ),
        *(
            "for rm in a; do echo $rm; done",
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


@pytest.mark.parametrize("script", _FED)
def test_a_shell_is_seen_through_what_it_is_fed_whoever_starts_it(script: str) -> None:
    assert denied_by(read_script(script), _RM)


@pytest.mark.parametrize("script", _NAMED)
def test_a_program_is_seen_behind_options_split_texts_and_containers(script: str) -> None:
    assert denied_by(read_script(script), _RM)


@pytest.mark.parametrize("script", _HIDDEN)
def test_what_a_shell_is_fed_and_cannot_be_told_is_said(script: str) -> None:
    assert read_script(script).hidden


@pytest.mark.parametrize("script", _OTHERS)
def test_a_wrapper_that_runs_something_else_is_left_alone(script: str) -> None:
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
    assert set(script.all_commands) >= {("cd", "src"), ("env", "A=b", "make", "all"), ("make", "all"), ("tee", "out")}
