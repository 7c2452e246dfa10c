"""How many words of a command make a prefix that a person is offered."""

from __future__ import annotations

import shlex

import pytest

from goat_mcp.commands.shell.command_prefix import command_prefix, prefix_problem

_OFFERED = """
git commit | -m x
git status |
git push | origin main
git worktree list |
npm run test | -- -k x
npm test |
yarn build |
cargo test | --release
go test | ./...
go run . | -v
go run ./cmd/server |
ruff check | .
pip install | requests
python3 -m pip install | requests
python3 -m pytest | tests/a.py -q
.venv/bin/python -m pytest | -q
python3 -m unittest | tests.a
uv run pytest | -q
uv run python -m pytest |
poetry run pytest | -q
npx eslint | .
make test | -j4
docker compose up | -d web
docker ps | -a
kubectl get | pods
gh pr list | --limit 3
pytest | tests/a.py::test_b
ls | -la
rg | foo src
find | . -name x
node app.js | 3
./run.sh | 3
./gradlew test |
terraform plan |
"""
_NOT_OFFERED = """
bash -c ls
bash build
sh build.sh
python3 -c print
python3 -m timeit pass
python3 -m pdb x.py
python3 -m http.server
python3
node -e 1
node /tmp/x.js
perl x.pl
awk 1 x
eval ls
env make test
env X=1 make
sudo make test
nohup make test
timeout 5 make test
xargs make test
exec make test
command make test
ssh host make
tmux new make
find . -exec rm {} +
docker run alpine sh
docker compose run web sh
docker compose exec web sh
docker compose -f x.yml up
kubectl exec pod -- sh
foo exec bar
uv run bash -c ls
uv run
npx
git -C elsewhere commit
git -c core.pager=x log
git config core.pager x
git rebase --exec make
make
make test SHELL=/tmp/x
rm -rf build
rm build
mv a b
chown root a
curl https://x.example
http get x.example
lynx x.example
go run example.com/x@latest
go run ./x@latest
go run /tmp/x.go
go run -exec sh .
xdotool key Return
goat-mcp approve 0123
cd build
/tmp/program sub
kill 12
"""


@pytest.mark.parametrize("line", _OFFERED.strip().splitlines())
def test_a_prefix_says_what_the_command_does(line: str) -> None:
    prefix, _, rest = line.partition(" |")
    words = tuple(shlex.split(prefix + rest))

    assert words[: command_prefix(words)] == tuple(shlex.split(prefix))


@pytest.mark.parametrize("line", _NOT_OFFERED.strip().splitlines())
def test_what_runs_other_commands_or_changes_any_file_has_no_prefix(line: str) -> None:
    assert command_prefix(tuple(shlex.split(line))) == 0


@pytest.mark.parametrize(
    ("line", "count", "is_covered"),
    [
        ("docker compose up -d", 3, True),
        ("docker compose up -d", 2, False),
        ("docker compose up -f x.yml", 3, False),
        ("docker compose run web sh", 3, False),
        ("docker compose -f x.yml up", 3, False),
        ("docker compose ps -a", 1, True),
    ],
)
def test_a_rule_that_spells_out_a_verb_of_compose_covers_what_the_project_says(
    line: str, count: int, is_covered: bool
) -> None:
    assert (prefix_problem(tuple(shlex.split(line)), count) == "") is is_covered
