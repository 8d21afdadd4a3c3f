# Every target sets itself up: a fresh machine needs Python 3.12 or newer and make.
PY = .venv/bin/python
ONCE ?=
PORT ?= 8000
TESTS ?= tests
export PORT

.PHONY: help setup demo run test check format bench lock openapi

help: ## Say what there is to do
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /: /'

setup: ## Make .venv with all that tests and checks need
	@sh scripts/setup.sh dev

demo: ## Load both demo sheets, walk one to its publication, and serve (ONCE=1: walk and end)
	@sh scripts/setup.sh base
	@$(PY) -m scripts.demo $(if $(ONCE),--once)

run: ## Start web, worker, beat and broker on the data as it is
	@sh scripts/setup.sh base
	@$(PY) -m scripts.demo --serve

test: setup ## Run the tests on the embedded defaults (TESTS=tests/flows for a part)
	@$(PY) -m pytest -n 2 --dist loadfile $(TESTS)

check: setup ## Format, lint, types, migrations, locks
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_hex())') $(PY) manage.py makemigrations --check --dry-run
	@sh scripts/lock.sh --check

format: setup ## Format and mend what can be mended
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

bench: setup ## Measure against named baselines; writes docs/benchmarks.md (BENCH_DATA=FOLDER: public questions)
	@$(PY) -m scripts.bench

lock: setup ## Lock the requirements again
	@sh scripts/lock.sh

openapi: setup ## Write docs/openapi.yaml
	@SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_hex())') $(PY) manage.py spectacular --file docs/openapi.yaml --validate --fail-on-warn
