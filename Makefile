# Two commands do everything: `make demo` and `make test`. Both set up .venv first. `make test-all` adds what is slow.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE_TESTS := tests/e2e/node
LITELLM := tests/e2e/litellm
SUITE := tests/conformance/node
BENCH_NODE := bench/node

# npm trusts the certificates of this machine, also where a company has added its own.
SYSTEM_CERTIFICATES := /etc/ssl/certs/ca-certificates.crt
ifneq ($(wildcard $(SYSTEM_CERTIFICATES)),)
export NODE_EXTRA_CA_CERTS ?= $(SYSTEM_CERTIFICATES)
endif

# Tests start Python hundreds of times: without this variable, which some machines set, modules are compiled once.
unexport PYTHONDONTWRITEBYTECODE

# How many processes run tests. They wait a lot: four keep two cores busy. `make test WORKERS=2`
WORKERS ?= 4

.PHONY: setup demo test test-all unit compiled-tests surroundings lint types quick-lint macos-simulated windows-under-wine generated dist mcpb bench bench-peers node litellm bubblewrap openssh chromium redis balancers conformance conformance-suite clean

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11) and "goat-mcp needs Python 3.11 or newer; %s is %s. \
  Name another one: make demo PYTHON=python3.12" % (sys.executable, sys.version.split()[0]))

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(BIN)/python -c 'import pip; $(NEW_ENOUGH)' 2>/dev/null || \
	  { $(PYTHON) -c '$(NEW_ENOUGH)' && $(PYTHON) -m venv --clear $(VENV); }
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . --group dev
	@$(BIN)/python -m compileall -q goat_mcp
	@touch $@

demo: setup
	@$(BIN)/goat-mcp demo

# Quick checks run beside the installs, the check of types beside the first tests: one computes while the other waits.
test: setup
	@$(MAKE) --no-print-directory -j3 quick-lint surroundings compiled-tests
	@$(MAKE) --no-print-directory -j2 types unit

# pytest compiles each file of tests with its own assertions. Without this each worker would do it, all at the same time.
# A file that cannot be imported is reported by `unit`.
compiled-tests: setup
	@$(BIN)/python -m pytest --collect-only >/dev/null 2>&1 || true

# What a Mac would run, by a Python on Linux that takes itself for one. tests/simulated/macos.py says what that shows.
MAC_TESTS := tests/tools tests/files tests/processes tests/upstreams tests/state tests/calls tests/cli \
  tests/commands/shell tests/commands/tasks tests/commands/compression tests/commands/test_bash_call.py \
  tests/commands/test_self_kill.py tests/commands/sandbox/test_seatbelt_profile.py \
  tests/commands/sandbox/test_macos_seatbelt.py

macos-simulated: setup
	@$(BIN)/python -m tests.simulated.macos -m pytest -p tests.simulated.mac_tests -n $(WORKERS) --dist loadgroup $(MAC_TESTS)

# What Windows would run, by a Python for Windows below .windows/, under Wine: scripts/windows_python.py says what it is.
# Left out is what needs more than Wine has, such as a bash for Windows.
WINDOWS_TESTS := tests/core tests/files/editing tests/files/documents tests/files/workspace/test_windows_paths.py \
  tests/calls/permissions/test_windows_rules.py tests/processes/test_thread_pipes.py \
  tests/processes/test_windows_job.py tests/processes/test_windows_program.py \
  tests/web/pages/test_download_marks.py tests/windows

windows-under-wine: setup
	@$(BIN)/python -m scripts.windows_python -m pytest -rs -p no:cacheprovider $(WINDOWS_TESTS)

# Every case, as many repetitions as the contract says, and the agents that run through a LiteLLM proxy.
test-all: setup
	@$(MAKE) --no-print-directory -j3 quick-lint surroundings litellm compiled-tests
	@GOAT_TESTS_FULL=1 $(MAKE) --no-print-directory -j2 types unit

# A few that fail run once more, alone: a busy machine can make a test too slow.
unit: setup surroundings
	@$(BIN)/python -m scripts.run_tests -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

surroundings: node conformance-suite bubblewrap openssh chromium redis balancers

# Clients and servers that others wrote, for the end-to-end tests; without Node those tests are skipped, saying so.
NODE_STAMP := $(NODE_TESTS)/node_modules/.ready

node:
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) -s $(NODE_STAMP); \
	else echo "no node and npm here: tests with Node clients will be skipped"; fi

$(NODE_STAMP): $(NODE_TESTS)/package.json
	@echo "installing into $(NODE_TESTS)/node_modules ..."
	@npm install --prefix $(NODE_TESTS) --silent --no-progress
	@touch $@

# A LiteLLM proxy to run agents through. It lives apart: its dependencies are not ours.
LITELLM_STAMP := $(LITELLM)/.venv/.ready

litellm: $(LITELLM_STAMP)

$(LITELLM_STAMP): $(LITELLM)/requirements.txt $(LITELLM)/constraints.txt
	@test -x $(LITELLM)/.venv/bin/python || $(PYTHON) -m venv $(LITELLM)/.venv
	@echo "installing into $(LITELLM)/.venv ..."
	@$(LITELLM)/.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint $(LITELLM)/constraints.txt --requirement $(LITELLM)/requirements.txt
	@touch $@

# The sandbox's program, from the system's packages; where it cannot be installed those tests are skipped, saying so.
bubblewrap:
	@if command -v bwrap >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "installing bubblewrap ..."; \
	  { apt-get install -y -qq bubblewrap || { apt-get update -qq && apt-get install -y -qq bubblewrap; }; } >/dev/null; \
	else echo "no bubblewrap here: sandbox tests that need it will be skipped"; fi

# A real SSH server for the tests to start, from the system's packages. Where the package would also start one that
# listens to the network (systemd runs), it is left to you; without it those tests are skipped, saying so.
openssh: | bubblewrap
	@if command -v ssh >/dev/null && test -x /usr/sbin/sshd; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && [ ! -d /run/systemd/system ]; then \
	  echo "installing openssh-server ..."; \
	  { apt-get install -y -qq openssh-server openssh-client || \
	    { apt-get update -qq && apt-get install -y -qq openssh-server openssh-client; }; } >/dev/null; \
	else echo "no openssh-server here: tests of ssh_bash that need it will be skipped"; fi
	@if [ "$$(id -u)" = 0 ] && test -x /usr/sbin/sshd; then mkdir -p /run/sshd; fi

# The shared state of several servers, from the system's packages; without it those tests are skipped, saying so. Where
# the package would also start one that listens (systemd runs), it is left to you.
redis: | chromium
	@if command -v redis-server >/dev/null || command -v valkey-server >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && [ ! -d /run/systemd/system ]; then \
	  echo "installing redis-server ..."; \
	  { apt-get install -y -qq redis-server || { apt-get update -qq && apt-get install -y -qq redis-server; }; } >/dev/null || \
	  echo "redis-server cannot be installed here: tests of the shared state will be skipped"; \
	else echo "no redis-server here: tests of the shared state will be skipped"; fi

# The browser that tests of the page drive, from the system's packages; without it those tests are skipped, saying so.
chromium: | openssh
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "installing chromium ..."; \
	  { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null || \
	  echo "chromium cannot be installed here: tests of the page in a browser will be skipped"; \
	else echo "no chromium here: tests of the page in a browser will be skipped"; fi

# The load balancers that tests put in front of replicas. As with openssh, where the packages would also start servers
# that listen to the network, they are left to you; without them those tests are skipped, saying so.
balancers: | redis
	@if { command -v haproxy || test -x /usr/sbin/haproxy; } >/dev/null && { command -v nginx || test -x /usr/sbin/nginx; } >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && [ ! -d /run/systemd/system ]; then \
	  echo "installing haproxy and nginx ..."; \
	  { apt-get install -y -qq haproxy nginx-light || { apt-get update -qq && apt-get install -y -qq haproxy nginx-light; }; } >/dev/null || \
	  echo "haproxy and nginx cannot be installed here: tests behind a load balancer will be skipped"; \
	else echo "no haproxy and nginx here: tests behind a load balancer will be skipped"; fi

lint: quick-lint types

# What users run is checked for their systems, too. `nice`: tests that run beside it are waited for longer.
types: setup
	@nice $(BIN)/pyright --pythonpath $(BIN)/python
	@for system in darwin win32; do \
	  echo "what $$system has not:"; \
	  nice $(BIN)/ty check --quiet --python $(VENV) --python-platform $$system goat_mcp manifests || exit 1; \
	done

quick-lint: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/generated_files.py --check

generated: setup
	@$(BIN)/python scripts/generated_files.py

# The wheel and the source distribution, and what twine and check-wheel-contents say about them.
dist: setup
	@$(BIN)/python -m scripts.distributions dist
	@$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	@$(BIN)/check-wheel-contents dist/*.whl

# What a desktop host installs with a click.
mcpb: setup
	@$(BIN)/python -m scripts.bundle dist

bench: setup bench-peers
	@$(BIN)/python -m bench.run $(BENCH)

# Proxies of others, to compare with, live apart: their dependencies are not ours. Without them the rest is measured.
BENCH_NODE_STAMP := $(BENCH_NODE)/node_modules/.ready

bench-peers:
	@test -x bench/.venv/bin/python || $(PYTHON) -m venv bench/.venv
	-@bench/.venv/bin/python -c "import fastmcp" 2>/dev/null || { \
	  bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip && \
	  bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group bench; }
	-@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) -s $(BENCH_NODE_STAMP); \
	else echo "no node and npm here: mcp-hub and supergateway will not be measured"; fi

$(BENCH_NODE_STAMP): $(BENCH_NODE)/package.json
	@echo "installing into $(BENCH_NODE)/node_modules ..."
	@npm install --prefix $(BENCH_NODE) --silent --no-progress
	@touch $@

# The official suite with a Node that is new enough; where it cannot be had those tests are skipped, saying so.
SUITE_STAMP := $(SUITE)/node_modules/.ready

conformance-suite:
	@if command -v npm >/dev/null; then $(MAKE) -s $(SUITE_STAMP); \
	else echo "no npm here: the conformance suite will be skipped"; fi

$(SUITE_STAMP): $(SUITE)/package.json
	@echo "installing into $(SUITE)/node_modules ..."
	@npm install --prefix $(SUITE) --silent --no-progress
	@touch $@

# The suite run directly and through goat-mcp; the result goes to docs/conformance.md.
conformance: setup conformance-suite
	@$(BIN)/python -m tests.conformance.run

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
