# Two commands do all the set-up: `make sync` and `make test`. git, python3 and make are assumed.
# ARGS goes to the command of the target: `make sync ARGS=--dry-run`, `make test ARGS=tests/queue`.

SHELL = /bin/sh
ARGS ?=
export PYTHON
BIN = .venv/bin

.DEFAULT_GOAL = help
.PHONY: help sync test lint format coverage bench soak lock clean venv venv-test

help:
	@echo 'make sync      install patchq in .venv and carry series/ to the newest release'
	@echo 'make test      everything that CI runs: format, lint, types, tests'
	@echo 'make lint      format, lint, types and workflows alone'
	@echo 'make format    format and mend what ruff can mend'
	@echo 'make coverage  the tests with their coverage'
	@echo 'make bench     the benchmarks beside the peers'
	@echo 'make soak      sixty rounds of the probes against a server (ARGS="--url URL")'
	@echo 'make lock      write the locks anew (ARGS=--upgrade for newer versions)'
	@echo 'make clean     remove .venv and all that was built'
	@echo
	@echo 'ARGS=... is passed on; PYTHON=... names the interpreter (3.11 or newer).'

# 4, 5 and 6 are answers, not accidents: the report stands above, and make says that it is one.
sync: venv
	@$(BIN)/patchq sync $(ARGS); status=$$?; case $$status in \
	4) echo 'The report above is the result: a decision is needed, nothing was changed (exit status 4).' >&2 ;; \
	5) echo 'The report above is the result: a proof failed, nothing was changed (exit status 5).' >&2 ;; \
	6) echo 'The report above is the result: something was not reached, the rest is done (exit status 6).' >&2 ;; \
	esac; exit $$status

test: lint
	@$(BIN)/python ci/github-descriptions.py
	@ci/tests.sh $(ARGS)

lint: venv-test
	@$(BIN)/ruff format --check --quiet . || { echo 'Not formatted: run `make format`.' >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@said=$$($(BIN)/zizmor --offline --quiet --persona=auditor .github) || { echo "$$said"; exit 1; }
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml

format: venv-test
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

coverage: venv-test
	@$(BIN)/python ci/github-descriptions.py
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term --cov-report=html $(ARGS)

bench: venv-test
	@ci/install-test-packages.sh --bench
	@$(BIN)/python -m tests.bench $(ARGS)

soak: venv-test
	@$(BIN)/python -m tests.bench.soak $(ARGS)

lock:
	@ci/lock.sh $(ARGS)

clean:
	rm -rf .venv build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

venv:
	@ci/venv.sh requirements.lock

venv-test:
	@ci/install-test-packages.sh
	@ci/venv.sh requirements-test.lock
