"""A denied program is found wherever its name stands, not only behind the wrappers that somebody listed (R-SHELL-5);
and everyday commands that have such a name in text, files or packages still run."""

from __future__ import annotations

import time

import pytest

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, denied_by, why_denied

_RM = CommandPattern.parse("rm:*")
# The first are programs that run the command behind their options, then options that hold one, then variables.
_DISGUISES = r"""
systemd-run --user --scope -p MemoryMax=1G rm x
bwrap --dev-bind / / --chdir / rm x
made-up-runner -q 1 rm x
nsenter --target 1 --mount /bin/rm x
unshare --map-root-user --fork rm x
proot -b /a:/b -w / rm x
firejail --private=/tmp --net none rm x
strace -e trace=all -o log rm x
perf record -g -o out rm x
gdb -batch -ex run --args rm x
valgrind --tool=none rm x
ltrace -S rm x
catchsegv rm x
cgexec -g cpu:a rm x
setpriv --no-new-privs rm x
landrun --rw / rm x
nsjail -Mo --chroot / -- /bin/rm x
qemu-x86_64 /bin/rm x
wine rm x
rr record rm x
heaptrack rm x
time-it rm x
doit /usr/bin/rm x
entr -n rm x
inotifywait-run rm
caffeinate -i rm x
sandbox-exec -p '(version 1)(allow default)' rm x
xcrun -sdk macosx rm x
arch -x86_64 rm x
foreach x rm
expect -c 'spawn rm x'
pssh -H h -i 'rm x'
docker run --entrypoint rm alpine x
docker compose run --rm web rm x
kubectl debug p --image=i -- rm x
vim -c ':!rm x' -c q
vim -es '+!rm x' f
emacs --batch --eval '(shell-command "rm x")'
ex -c '!rm x' f
awk 'BEGIN{system("rm x")}'
gawk 'BEGIN{"rm x" | getline}'
awk '{print | "/bin/rm x"}' f
sed '1e rm x' f
sed -i '1e rm x' f
sed 's/a/rm x/e' f
find . -exec made-up {} rm \;
make SHELL=/bin/rm
make --eval='x:;rm x'
make -f - <<< 'x:;@rm x' CC=rm
cmake -DCMAKE_C_COMPILER=rm .
rsync -e 'rm x' a h:b
rsync --rsh=rm a h:b
scp -S /bin/rm a h:b
sftp -oProxyCommand='rm x' h
tar xf a --to-command='rm x'
tar cf a b -I 'rm x'
tar --use-compress-program=rm -cf a b
tar cf a -Irm b
zip -T -TT 'rm x' a b
man -P 'rm x' ls
man --pager=rm ls
less '+!rm x' f
split -b1 --filter='rm x' f
git -c core.fsmonitor='rm x' status
git --config-env=core.pager=X -c alias.a='!rm x' a
git grep -nO'rm x' y
git ls-remote --upload-pack='rm x' .
git fetch 'ext::rm x'
git pull --upload-pack rm .
git clone -u 'rm x' .
git config core.editor rm
git rebase --exec='rm x' HEAD~1
git bisect run made-up rm
git submodule foreach rm
git send-email --sendmail-cmd='rm x' p
git difftool --extcmd='rm x'
git archive --exec='rm x' --remote=. HEAD
ssh -oProxyCommand='rm x' h
ssh -o LocalCommand='rm x' h true
ssh -o PermitLocalCommand=yes -oLocalCommand=rm h
prove --exec 'rm x' t
prove --exec=rm t
openssl s_client -proxy 'rm x'
socat - 'SYSTEM:rm x'
nc.traditional -c 'rm x' h 1
tcpdump -z rm -i lo
fzf --preview 'rm {}'
fzf --bind 'enter:execute(rm x)'
python -c 'import os; os.system("rm x")'
python3 -c 'import subprocess as s; s.run(["rm","x"])'
perl -e 'system "rm x"'
perl -e'exec "rm"'
ruby -e '`rm x`'
node -e 'require("child_process").exec("rm x")'
php -r 'system("rm x");'
lua -e 'os.execute("rm x")'
psql -c '\! rm x'
sqlite3 a '.shell rm x'
osascript -e 'do shell script "rm x"'
ansible all -m command -a 'rm x'
xdg-open-with rm x
busctl call a b c d s 'rm x'
made-up '{"run": ["rm", "x"]}'
made-up run=rm
made-up a,rm,b
made-up '"r""m" x'
made-up /usr/bin/r?
made-up "r$@m"
made-up 'a;rm x'
made-up $'r\x6d x'
made-up "a|/bin/rm x"
GIT_SSH_COMMAND='rm x' git fetch
EDITOR=rm git commit
MANPAGER='rm x' man ls
LESSOPEN='|rm %s' less f
BROWSER=rm made-up
TAR_OPTIONS=--to-command=rm tar xf a
RSYNC_RSH='rm x' rsync a h:b
PERL5OPT=-Mx=rm perl a
MAKEFLAGS='--eval=x:;rm' make
export CC=rm; make
declare -x FOO='rm x'; made-up
x=rm; made-up $x f
for p in rm; do made-up $p x; done
read p <<< rm; made-up $p x
set -- rm x; made-up "$@"
f() { made-up "$@"; }; f rm x
PS4='$(rm x)' bash -x a.sh
PS0='$(rm x)'; export PS0; bash -i
a=(rm x); made-up "${a[@]}"
export A=r''m; made-up
go build -toolexec rm .
dpkg -i a --pre-invoke rm
journalctl --pager rm
tar xIf rm a
npm config set script-shell rm
gh config set editor rm
printf -v p rm; made-up $p
less -krm f
""".strip().splitlines()
_EVERYDAY = [
    *r"""
git rm old.py
git commit -m 'rm old file'
git commit -am 'sudo is gone'
git commit --amend -m 'dd: rm x'
git log --grep='rm -rf'
git add docker
git checkout -b curl
git merge dd
git tag -a v1 -m 'git push later'
git stash push -m rm
git clone https://github.com/curl/curl
git clone git@github.com:curl/curl.git
git fetch origin curl
git branch -d docker
git rebase docker
git diff -- docker
git -C docker status
git remote add docker u
podman rm c
kubectl delete pod rm
kubectl logs docker
podman build -t curl .
podman run --rm alpine ls
npm rm left-pad
npm run rm
npm install curl
npm run docker:build
npm test -- --grep x
yarn add docker
pip install curl
python -m pip install docker
uv add docker
apt-get install -y curl
brew install curl
cargo build --bin rm
go build -o curl ./cmd/curl
go test ./docker/...
make rm
make -C docker
make docker
pytest tests/docker -q
pytest -x -k rm tests/rm
ruff check docker
mypy docker
uv run pytest tests/docker
grep -rn 'rm -rf' scripts
grep -rn docker . | head
rg 'rm -rf|sudo' .
find . -name rm
ps aux | grep docker
find . -name docker -type d -exec ls {} +
find . -type f | xargs grep -l docker
sed -n '/rm x/p' f
sed -i 's/docker build/podman build/' f
awk '/rm x/ {print $1}' f
man rm
which curl
command -v docker
test -x /bin/rm
[ -x /usr/bin/docker ]
if [ -f rm ]; then echo rm; fi
jq '.rm' f
cat /usr/bin/rm | wc -l
cp -r docker backup
mv dd de
mkdir -p src/docker
cd docker && ls
tar czf docker.tgz docker
touch rm
rsync -a docker backup/
vim rm
less rm
code docker
chmod +x bin/rm
date +%Y-%m-%d
du -sh docker
[[ $x == docker ]] && make
pip install --upgrade curl
apt-get install --yes curl
gh pr create --title 'rm x' --body 'sudo rm the dd, then git push'
gh issue comment 5 -b 'docker rm'
wget https://curl.se/curl
python rm.py
timeout 60 pytest tests/docker
nice -n 5 ls rm
sh -c 'echo rm'
FOO=1 make test
export PATH=$PATH:/opt/docker
systemctl restart docker
usermod -aG docker me
journalctl -u docker
pkill curl
docker-compose up -d
for f in a b; do echo $f rm; done
msg="docker done"; make; echo "$msg"
d=docker; ls $d
gcc -o dd dd.c
tee x <<< 'rm'
true && echo 'git push is next'
tsc -p docker
""".strip().splitlines(),
    "git commit -m \"$(cat <<'E'\nfix: rm the dd step\n\nrun docker build, then git push\nE\n)\"",
    "gh pr create -t x --body \"$(cat <<'E'\nrm dd with docker\nE\n)\"",
    "cat > Dockerfile <<'E'\nRUN apt-get install curl\nE",
    "git commit -F - <<'E'\nfix: rm the dd step\nE",
    "git apply <<'E'\n+++ b/x.sh\n+rm x\nE",
    "echo 'rm x' | tee -a notes.md | wc -l",
    "kubectl apply -f - <<'E'\ncommand: [rm, x]\nE",
    "bash run.sh <<< 'rm x'",
    "python3 - <<'E'\nprint('done')\nE",
]
_RULES = [CommandPattern.parse(f"{program}:*") for program in ("rm", "curl", "sudo", "git push", "dd", "docker")]
_IN_THE_ISSUE = r"""
bwrap --ro-bind / / rm x
PS1='$(rm x)' bash -i
git clone -c core.sshCommand='rm x' u
git grep -O'rm x' y
git ls-remote 'ext::rm x'
ssh -o 'ProxyCommand rm x' h
prove -e rm t
TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=rm' tar cf a b
""".strip().splitlines()


_ON_STANDARD_INPUT = [
    "python3 - <<'E'\nimport os\nos.system('rm x')\nE",
    "python3 <<< 'import os; os.system(\"rm x\")'",
    "env python3 <<< 'import os; os.system(\"rm x\")'",
    "echo 'import os; os.system(\"rm x\")' | python3",
    "{ echo 'import os'; printf 'os.system(\"rm x\")'; } | python3 -",
    "cat <<E | nice perl\nsystem 'rm x'\nE",
    "sqlite3 a <<< '.shell rm x'",
    "psql <<< '\\! rm x'",
    "ed <<< '!rm x'",
    "ftp h <<E\n!rm x\nE",
    "tclsh <<< 'exec rm x'",
    "gdb -batch -x /dev/stdin <<< 'shell rm x'",
    "awk -f - <<< 'BEGIN { system(\"rm x\") }'",
    "made-up <<< rm",
    "echo rm x | made-up",
]


@pytest.mark.parametrize("script", [*_IN_THE_ISSUE, *_DISGUISES, *_ON_STANDARD_INPUT])
def test_f13_10_disguises_a_name_counts_wherever_it_stands(script: str) -> None:
    read = read_script(script)

    assert denied_by(read, _RM) or read.hidden


@pytest.mark.parametrize("script", _EVERYDAY)
def test_f13_10_everyday_commands_run_though_they_name_what_is_denied(script: str) -> None:
    read = read_script(script)

    assert ([rule.text for rule in _RULES if denied_by(read, rule)], read.hidden) == ([], "")


@pytest.mark.parametrize(
    ("rule", "script"),
    [
        ("git push:*", "made-up git push"),
        ("git push:*", "made-up 'git -C dir push --force'"),
        ("git push:*", "X='git --no-pager push' made-up"),
        ("git push origin *", "prove -e 'git push origin main' t"),
        ("rm -rf *", "made-up 'rm -rf x'"),
        ("rm -rf *", "made-up rm -rf x"),
        ("rm -rf /", "PS1='$(rm -rf /)' bash -i"),
        ("/bin/rm *", "made-up rm x"),
        ("rm*", "made-up rm x"),
        ("kubectl delete *", "ssh -o 'ProxyCommand kubectl delete pod a' h"),
    ],
)
def test_a_rule_of_several_words_means_them_side_by_side(rule: str, script: str) -> None:
    assert denied_by(read_script(script), CommandPattern.parse(rule))


@pytest.mark.parametrize(
    ("rule", "script"),
    [
        ("git push:*", "made-up git pull"),
        ("git push:*", "made-up push git"),
        ("git push:*", "made-up 'git log; push'"),
        ("rm -rf *", "made-up rm x"),
        ("* --force", "made-up --force x"),
        ("rm*", "made-up rmdir x"),
    ],
)
def test_a_rule_of_several_words_means_no_other_order(rule: str, script: str) -> None:
    assert not denied_by(read_script(script), CommandPattern.parse(rule))


def test_the_word_that_names_the_program_is_said() -> None:
    mentioned = why_denied(read_script("prove -e '/bin/rm x' t"), _RM)

    assert mentioned.startswith("`/bin/rm x` names rm")
    assert why_denied(read_script("rm x"), _RM) == ""


@pytest.mark.parametrize("piece", ["rm ", "-rm ", "a=rm ", "$rm ", "'rm' ", "rm,", "(rm ", "/bin/rm?", "git "])
def test_r_shell_6_names_without_end_are_bounded_work(piece: str) -> None:
    script = read_script("made-up " + piece * (16_000 // len(piece)))
    computed_s = time.thread_time()

    for rule in ("rm -rf /x", "git push origin", "rm:*"):
        denied_by(script, CommandPattern.parse(rule))

    assert time.thread_time() - computed_s < 5
