"""Which commands a wildcard rule covers (R-SHELL-4): the rule's own program, and no more than its name suggests."""

from __future__ import annotations

import pytest

from goat_mcp.commands.shell.options.unsafe import unsafe_option
from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by

_HARMLESS = {
    "git *": [
        *("git status -sb", "git --no-pager log --oneline -n 5 --graph", "git log -5 --format='%h %s' -- src"),
        *("git diff --stat HEAD~1..HEAD", "git show HEAD:f", "git branch -a", "git tag -l 'v*'", "git remote -v"),
        *(
            "git stash list",
            "git grep -n foo",
            "git cat-file -p HEAD",
            "git blame -L 1,5 f",
            "git rev-parse --short HEAD",
        ),
    ],
    "git commit *": ["git commit -m 'x y'", "git commit"],
    "git push *": ["git push origin main"],
    "git stash *": ["git stash pop"],
    "find *": ["find . -name '*.py' -type f", "find . -name -delete", "find src '(' -name a -o -name b ')' -print0"],
    "sed *": [
        *("sed -n '1,20p' f", "sed 's/a/b/g' f", "sed '1!G;h;$!d' f", "sed '/x/,/y/p;s#a#b#2p' f", "sed -e 's/a/b/' f"),
        *("sed -E -n '/^[a-z]+:/p' f", "sed -n '$=' f", "sed '/a/d' f"),
        *("sed ':a;N;$!ba;s/\\n/ /g' f", "sed 's/[^[:alnum:]_]/x/gI;s|\\|| |' f", "sed 's/\\[x\\]/\\//;p' f"),
    ],
    "sort *": ["sort -k2,2n -t, f", "sort -ru f"],
    "uniq *": ["uniq -c f", "uniq"],
    "rg *": ["rg -n foo src", "rg -uuu x", "rg -e a -e b --type py -g '!x'"],
    "grep *": ["grep -rn --include '*.py' foo .", "grep -A2 x f"],
    "head *": ["head -20 f", "head -n 20 f"],
    "tail *": ["tail -n +5 f", "tail -c 5 f"],
    "date *": ["date", "date +%F", "date -u -d yesterday"],
    "man *": ["man ls", "man 3 printf"],
    "tar *": ["tar tf x.tgz", "tar -tzvf x.tgz", "tar tzf x.tgz dir"],
    "printf *": [r"printf '%s\n' x"],
    "npm run *": ["npm run build", "npm run", "npm run test -- --watch"],
    "npm *": ["npm test -- --watch", "npm test", "npm ls --depth 1"],
    "npm install *": ["npm install -D x"],
    "yarn build *": ["yarn build --x"],
    "make *": ["make -j4 test", "make -j 4 -k"],
    "cargo *": ["cargo test --release -- --nocapture", "cargo clippy -- -D warnings", "cargo build -p x", "cargo test"],
    "go *": ["go test ./... -run X -v", "go build ./...", "go vet ./...", "go list ./..."],
    "pytest *": ["pytest -q -k x tests", "pytest --lf --tb=short -n 4 --ignore=/x", "pytest tests/a.py::b -x"],
    "python -m pytest *": ["python -m pytest -q"],
    "python3 x.py *": ["python3 x.py foo"],
    "python3 x.py --foo *": ["python3 x.py --foo bar"],
    "npx tsc *": ["npx tsc -p x"],
    "uv run pytest *": ["uv run pytest -x"],
    "jq *": ["jq -r .x f"],
    "curl *": ["curl -sS https://example.invalid"],
    "./run.sh *": ["./run.sh a"],
    "rm *": ["rm -rf x"],
    "frobnicate *": ["frobnicate a b/c -", "frobnicate"],
    "frobnicate --any *": ["frobnicate --any y"],
    "frobnicate * --any": ["frobnicate y --any"],
    "frobnicate --to=* *": ["frobnicate --to=x y"],
    "frobnicate run *": ["frobnicate run y"],
    "mkdir *": ["mkdir -p a/b"],
    "cp *": ["cp -r a b"],
    "mv *": ["mv -f a b"],
    "chmod *": ["chmod +x f", "chmod -x f"],
    "ln *": ["ln -sf a b"],
    "echo *": ["echo -n --x @y a=b"],
    "fd *": ["fd -e py foo src", "fd -H -t f"],
    "bat *": ["bat -p f", "bat --style=plain -r 1:5 f"],
    "ps *": ["ps -ef", "ps aux"],
    "tsc *": ["tsc --noEmit", "tsc -p tsconfig.build.json"],
    "eslint *": ["eslint src --ext .ts --max-warnings 0"],
    "prettier *": ["prettier --check src"],
    "jest *": ["jest -t name src/a.test.ts", "jest --coverage"],
    "vitest *": ["vitest run src"],
    "mypy *": ["mypy --strict src"],
    "black *": ["black --check .", "black src"],
    "ruff *": ["ruff check .", "ruff check --diff --select E src", "ruff format --check ."],
    "ruff format *": ["ruff format src"],
    "docker *": ["docker ps -a", "docker --debug images", "docker logs -f x", "docker inspect x", "docker compose ps"],
    "docker build *": ["docker build ."],
    "docker build -t *": ["docker build -t y ."],
    "kubectl *": ["kubectl get pods -n x -o yaml", "kubectl -n x logs -f pod", "kubectl describe pod x"],
    "kubectl -n x get *": ["kubectl -n x get pods -w"],
    "gh *": ["gh pr list --json title --limit 5", "gh pr view 12 --comments", "gh run list", "gh auth status"],
    "pip *": ["pip list --outdated", "pip show x"],
    "uv *": ["uv tree", "uv pip list"],
    "uv sync *": ["uv sync"],
    "uv -q run pytest *": ["uv -q run pytest -x"],
    "uv tool run ruff *": ["uv tool run ruff check ."],
    "deno run main.ts *": ["deno run main.ts a"],
    "yarn workspace x build *": ["yarn workspace x build --y"],
    "pnpm *": ["pnpm run build --x"],
    "gh pr create *": ["gh pr create"],
    "node *": ["node --version"],
    "java -jar x.jar *": ["java -jar x.jar a"],
    "dotnet test *": ["dotnet test y"],
    "wget *": ["wget -qO- https://example.invalid", "wget --spider u", "wget -O - u"],
    "git rebase *": ["git rebase main", "git rebase --continue"],
    "defaults *": ["defaults read com.apple.dock", "defaults domains"],
    "defaults write com.example.x *": ["defaults write com.example.x key value"],
    "security *": ["security list-keychains", "security find-identity -v"],
    "tmutil *": ["tmutil status", "tmutil listbackups"],
    "xattr *": ["xattr f"],
    "git merge *": ["git merge --no-ff topic", "git merge -X ours topic"],
}
_BEYOND = {
    "git *": [
        *("git -C /x status", "git -c core.pager=x status", "git --git-dir=x log", "git --exec-path=/x status"),
        *("git --help status", "git status --help", "git diff --output=x", "git diff --outp=x", "git diff --ext-diff"),
        *("git log --textconv", "git log --show-signature", "git branch new", "git branch -D x", "git tag v1"),
        *("git remote add x y", "git remote update", "git stash pop", "git grep -O./evil x", "git config user.name x"),
        *("git commit -m x", "git push", "git st", "git ls-remote .", "git reflog expire --all", "git bisect run ./e"),
        *("git status --ignore-submodules=none", "git diff --submodule=diff", "git cat-file --filters HEAD:f"),
        *("git submodule foreach ls", "git -p log", "git -calias.z=x z"),
    ],
    "git config *": ["git config core.pager x"],
    "git commit *": ["git commit --template=./x -m a", "git -c x=y commit"],
    "git push *": [
        "git push --receive-pack=./e",
        "git push --receive-p=./e o",
        "git push ext::sh",
        "git push -- ext::sh",
    ],
    "git fetch *": ["git fetch --upload-pack=./e", "git fetch --up=./e"],
    "git ls-remote *": ["git ls-remote --upload-pa='rm x' ."],
    "git rebase *": [
        "git rebase -x ./e main",
        "git rebase --exec=./e",
        "git rebase -ix ./e",
        "git rebase -i main",
        "git rebase --inter x",
    ],
    "git clone *": ["git clone -u ./e x y", "git clone -c core.x=y a b", "git clone --conf x=y a"],
    "git archive *": ["git archive -o f HEAD", "git archive --exec=./e HEAD"],
    "find *": [
        *("find . -newermt 2020 -delete", "find . -fls o", "find . -fprintf o x", "find . -okdir rm ';'"),
        *("find . -execdir rm '{}' +", "find -files0-from x", "find . -name x -o -exec rm x ';'"),
    ],
    "sed *": [
        *("sed 's/a/b/w out' f", "sed 's/a/date/e' f", "sed 's/[/]x/y/e' f", "sed -e '1e id' f", "sed -i s/a/b/ f"),
        *("sed --in-place s/a/b/ f", "sed -ni p f", "sed -n -f x.sed f", "sed 'r /etc/passwd' f", "sed '$w out' f"),
        *("sed 'y/a/b/;w o' f", "sed '{p};e' f", "sed 's,x,y,;}e' f", "sed 's/a/b/\nw x' f", "sed -s -e p -e 'w x' f"),
        *("sed 's/[]/]a/g;s#b/e#c#' f", "sed '/[]/p;s/]x/y/e' f", "sed 's/[^]/]a/;s#b/w o#c#' f", "sed 's/a/b\\' f"),
        *("sed --expression='w x' f", "sed -ne 'w x' f", "sed --expr=p f", "sed 's/x/\\/e/w o/' f", "sed '0~4W o' f"),
    ],
    "sort *": ["sort -o x f", "sort -ro x f", "sort --outp x f", "sort -T /tmp f", "sort f -o f", "sort --comp=./e f"],
    "uniq *": ["uniq a b", "uniq -- a b"],
    "rg *": ["rg --pre x y", "rg --pre=x y", "rg -z x", "rg --hostname-bin=./e x", "rg --search-zip x", "rg -nz x"],
    "date *": ["date -s x", "date --se=x", "date 010203", "date -us x"],
    "man *": ["man ./x", "man -P x ls", "man --pager=x ls", "man -Hx ls", "man -l x"],
    "tar *": [
        *("tar xf x", "tar tf x -I ./e", "tar tf x --to-command=e", "tar -tf host:x", "tar tfF x ./e", "tar cf x y"),
        *("tar -tf x --use-compress-prog=./e", "tar tf x --checkpoint-action=exec=./e", "tar -tf x -F ./e"),
    ],
    "printf *": ["printf -v x y", "printf '%n' 'a[$(id)]'", "printf -- '%5ln' x"],
    "npm *": ["npm install x", "npm exec x", "npm run build --script-shell=./e", "npm --prefix x test", "npm x y"],
    "npm run *": ["npm run build --script-sh=./e", "npm run build -C x"],
    "yarn *": ["yarn build", "yarn exec x", "yarn --cwd x run y", "yarn add x"],
    "make *": [
        *("make -C x", "make -f x", "make SHELL=./e", "make --eval=x", "make -j SHELL=./e", "make -kf x", "make -I x"),
    ],
    "cargo *": [
        *("cargo test --config x", "cargo clippy -- -C linker=x", "cargo +nightly test", "cargo install x"),
        *("cargo build --manifest-path x", "cargo fmt -- --config-path x"),
    ],
    "go *": [
        *("go test -exec ./e ./...", "go build -o x", "go vet -vettool=x", "go test --toolexec=x", "go env -w x"),
        *("go run .", "go install example.invalid/x@latest", "go test /x", "go build ../x"),
    ],
    "pytest *": [
        *("pytest -p evil", "pytest --rootdir=x", "pytest -c x", "pytest @x", "pytest -o x=y", "pytest --basetemp=x"),
        *("pytest /tmp/evil/test_x.py", "pytest tests ../x", "pytest tests/../../x::y"),
    ],
    "python -m pytest *": ["python -m pytest -p evil"],
    "python *": ["python x.py", "python -c x", "python -m http.server", "python"],
    "python3.11 *": ["python3.11 -c x"],
    "node *": ["node -e x", "node x.js"],
    "npx *": ["npx tsc"],
    "uv run *": ["uv run pytest"],
    "uv run sh *": ["uv run sh -c x"],
    "awk *": ["awk '{print}' f"],
    "env *": ["env", "env ls"],
    "xargs *": ["xargs ls"],
    "sudo *": ["sudo ls"],
    "bash *": ["bash x.sh", "bash -c x"],
    "ssh *": ["ssh h"],
    "watch *": ["watch ls"],
    "docker *": [
        *("docker run x", "docker exec x y", "docker --debug run -v /:/h x", "docker -c x exec y sh", "docker rm x"),
        *("docker compose up", "docker -H tcp://x ps", "docker build .", "docker container run x", "docker evil"),
    ],
    "perl5.36 *": ["perl5.36 -e x"],
    "test *": ["test -v 'a[$(id)]'"],
    "frobnicate *": [
        *("frobnicate -v", "frobnicate x --any", "frobnicate A=b", "frobnicate run x", "frobnicate x exec:java"),
        *("frobnicate @file", "frobnicate -- x", "frobnicate --any=x"),
    ],
    "frobnicate --any *": ["frobnicate --any --other"],
    "gh pr *": ["gh pr checkout 1", "gh pr merge 1"],
    "git apply *": ["git apply --unsafe-paths --directory=/x p", "git apply --direc /x p"],
    "git checkout-index *": ["git checkout-index --prefix=/x -a", "git checkout-index --pref=/x -a"],
    "git merge-index *": ["git merge-index ./evil -a"],
    "wget *": ["wget u", "wget -O f u", "wget -O - -O f u", "wget -qO- -O f u", "wget -P x u", "wget u -O -x"],
    "java *": ["java -jar x.jar", "java Evil"],
    "dotnet *": ["dotnet x.dll"],
    "qemu-x86_64 *": ["qemu-x86_64 ls"],
    "Python *": ["Python x.py"],
    "x86_64-linux-gnu-gcc *": ["x86_64-linux-gnu-gcc x.c"],
    "frobnicate --to=*": ["frobnicate --too=x", "frobnicate --to=x --other"],
    "uv *": ["uv -q run python evil.py", "uv tool run x", "uv add x", "uv --directory x tree", "uv pip install x"],
    "uv tool run *": ["uv tool run x"],
    "poetry *": ["poetry -q run sh -c id", "poetry shell", "poetry install"],
    "conda *": ["conda run sh", "conda -v run sh", "conda install -c x y"],
    "mamba *": ["mamba run sh"],
    "mise *": ["mise exec -- sh", "mise x sh"],
    "rye *": ["rye run sh"],
    "pyenv *": ["pyenv exec sh"],
    "direnv *": ["direnv exec . sh"],
    "nvm *": ["nvm exec 18 sh", "nvm run 18 x"],
    "kubectl *": [
        *("kubectl -n x exec pod -- sh", "kubectl --kubeconfig x get pods", "kubectl run x", "kubectl delete pod x"),
        *("kubectl get -f /x", "kubectl -n get exec pod", "kubectl evil", "kubectl get pods --kubeconfig=x"),
    ],
    "kubectl -n x exec *": ["kubectl -n x exec pod -- sh"],
    "podman *": ["podman --log-level debug run x", "podman exec x sh"],
    "gh *": ["gh pr create", "gh api x", "gh extension exec x", "gh alias set x y", "gh pr view --web", "gh evil"],
    "pip *": ["pip install x", "pip --python x list", "pip config set x y"],
    "fd *": ["fd . -x touch p", "fd . -X rm", "fd --exec rm", "fd --exec-batch=rm x"],
    "bat *": ["bat --pager=id f", "bat --pager id f", "bat cache --build"],
    "hg log *": ["hg log --config alias.log=!id", "hg --config x=y log"],
    "svn diff *": ["svn diff --diff-cmd id"],
    "yarn workspace *": ["yarn workspace x exec sh", "yarn workspace x build"],
    "yarn workspace x exec *": ["yarn workspace x exec sh"],
    "yarn node *": ["yarn node x.js"],
    "git merge *": ["git merge -s evil x", "git merge --strategy=evil x", "git merge --strat evil x"],
    "git pull *": ["git pull -s evil", "git pull -qs evil"],
    "ruff *": ["ruff format /", "ruff format .", "ruff check --fix .", "ruff clean"],
    "bun *": ["bun run /tmp/x.ts", "bun x.ts", "bun run x.ts"],
    "bun run *": ["bun run /tmp/x.ts", "bun run ./x"],
    "deno run *": ["deno run https://example.invalid/x.ts", "deno run x.ts"],
    "mypy *": ["mypy /x", "mypy --config-file x .", "mypy @x"],
    "tsc *": ["tsc -p /x", "tsc --project=../x", "tsc --outDir x", "tsc @x"],
    "eslint *": ["eslint -c x .", "eslint --rulesdir x .", "eslint --fix .", "eslint ../x", "eslint --format ./x ."],
    "jest *": ["jest --config x", "jest --rootDir=/x", "jest --setupFiles x"],
    "ipython *": ["ipython x.py"],
    "python3.11-dbg *": ["python3.11-dbg x.py"],
    "vim.tiny *": ["vim.tiny f"],
    "vimdiff *": ["vimdiff a b"],
    "original-awk *": ["original-awk x f"],
    "busybox.static *": ["busybox.static ls"],
    "bash-static *": ["bash-static x"],
    "ruby3.1 *": ["ruby3.1 x.rb"],
    "php8.2 *": ["php8.2 x.php"],
    "mkdir *": ["mkdir -Z x"],
    "mvn *": ["mvn exec:java", "mvn -f /x test"],
    "curl *": [
        "curl -H @/etc/secret u",
        "curl --header=@x u",
        "curl -sH@x u",
        "curl -K x",
        "curl --config x",
        "curl -O y",
        "curl -so x y",
    ],
    "split *": ["split --filter=x f"],
    "defaults *": ["defaults write com.apple.loginwindow LoginHook /x", "defaults delete x", "defaults import x f"],
    "security *": [
        *("security find-generic-password -s x", "security find-generic-password", "security dump-keychain"),
        *("security list-keychains -s x", "security add-trusted-cert x", "security -i"),
    ],
    "tmutil *": ["tmutil delete x", "tmutil restore a b", "tmutil disable"],
    "dscl *": ["dscl . read Users/x", "dscl . -create /Users/x"],
    "networksetup *": ["networksetup -setdnsservers Wi-Fi 192.0.2.1"],
    "xattr *": ["xattr -d com.apple.quarantine f", "xattr -c f"],
    "open *": ["open x.app", "open https://example.invalid"],
    "osascript *": ["osascript x.scpt"],
    "launchctl *": ["launchctl load x.plist", "launchctl submit"],
    "shortcuts *": ["shortcuts run x"],
    "caffeinate *": ["caffeinate ls", "caffeinate -i ls"],
    "sandbox-exec *": ["sandbox-exec ls"],
    "xcrun *": ["xcrun ls"],
    "* --version": ["ls --version"],
}


def _pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(rule, command) for rule, commands in table.items() for command in commands]


@pytest.mark.parametrize(("rule", "command"), _pairs(_HARMLESS))
def test_a_rule_covers_the_ordinary_use_of_its_program(rule: str, command: str) -> None:
    reason = allowed_by(read_script(command), [CommandPattern.parse(rule)])

    assert reason == ""


@pytest.mark.parametrize(("rule", "command"), _pairs(_BEYOND))
def test_a_rule_with_a_wildcard_does_not_cover_more_than_its_programs_name_says(rule: str, command: str) -> None:
    script = read_script(command)
    pattern = CommandPattern.parse(rule)

    reason = allowed_by(script, [pattern])

    assert script.not_plain == ""
    assert reason


def test_the_reason_names_the_option_and_the_program() -> None:
    assert unsafe_option(("sort", "-o", "x", "f")) == "sort -o is not an option known to be harmless"


def test_a_value_that_could_be_an_option_is_asked_about() -> None:
    assert unsafe_option(("sort", "-k", "-o", "f")) == "sort -o could be an option or the value of -k"


def test_the_reason_for_an_unknown_program_says_which_rule_would_cover_it() -> None:
    reason = allowed_by(read_script("frobnicate a --verbose 'b c'"), [CommandPattern.parse("frobnicate *")])

    assert reason.endswith("a rule that spells it out covers it: Bash(frobnicate a --verbose *)")
    assert allowed_by(read_script("frobnicate a --verbose y"), [CommandPattern.parse("frobnicate a --verbose *")]) == ""


@pytest.mark.parametrize(
    "command",
    [
        *("cd sub && git status", "cd x; ./run.sh a", "git status; cd x", "cd x && make", "cd x && npm run build"),
        *("cd x && pytest", "pushd x; frobnicate", "make; cd x", "cd x && /usr/bin/make", "cd x && ./ls"),
        *("command cd x; make", "builtin cd x && make"),
    ],
)
def test_a_changed_directory_is_no_place_for_what_a_rule_meant_here(command: str) -> None:
    programs = ("cd", "pushd", "git", "./run.sh", "make", "npm run", "pytest", "frobnicate", "/usr/bin/make", "./ls")
    texts = [*(f"{program} *" for program in programs), "command cd x", "builtin cd x"]
    rules = [CommandPattern.parse(text) for text in texts]

    assert "changes the directory" in allowed_by(read_script(command), rules)


@pytest.mark.parametrize(
    "command",
    ["cd sub && ls -la", "cd sub && grep -rn x . | head -5", "cd a; cat f; pwd; find . -name x; sed -n 1p f; /bin/ls"],
)
def test_a_changed_directory_is_a_place_to_look_at(command: str) -> None:
    programs = ("cd", "ls", "grep", "head", "cat", "pwd", "find", "sed", "/bin/ls")
    rules = [CommandPattern.parse(f"{program} *") for program in programs]

    assert allowed_by(read_script(command), rules) == ""
