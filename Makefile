# Every target sets the environment up first; `make setup` alone does only that.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := test
.ONESHELL:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
SUITE ?= headline
QUICK ?=
# workers of pytest-xdist share the cores, so each runs BLAS on one thread
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	$(BIN)/pytest -q -n $(WORKERS)
INSTALLED := $(VENV)/.installed
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_BENCH := $(VENV)/.installed-bench
VERDICTS := benchmarks/outputs/audit.jsonl

.PHONY: setup demo format lint test test-all mutate audit docs bench clean

setup: $(INSTALLED)

# PYTHON=/path/to/python chooses the interpreter
$(INSTALLED): pyproject.toml Makefile
	@found=
	if $(BIN)/python -m pip --version >/dev/null 2>&1; then found=$(BIN)/python; fi
	for candidate in $${PYTHON:-python3.11 python3 python}; do
	  if [ -n "$$found" ]; then break; fi
	  # trying beats asking: some systems ship Python with half of venv
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	      >/dev/null 2>&1 && "$$candidate" -m venv --clear $(VENV) >/dev/null 2>&1
	  then found=$$candidate; fi
	done
	if [ -z "$$found" ]; then
	  echo "tacit needs Python 3.11 or later with its venv module:" \
	    "install it, or pass PYTHON=/path/to/python to make." >&2
	  exit 1
	fi
	echo "Setting up $(VENV) with $$($(BIN)/python --version)."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[test,lint]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[docs]'
	touch $@

$(INSTALLED_BENCH): $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[bench]'
	touch $@

demo: $(INSTALLED)
	@$(BIN)/python examples/demo.py

lint: $(INSTALLED)
	@$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.words

test: lint
	@$(PYTEST) -m "not slow"

test-all: lint
	@$(PYTEST)

# planted bugs, each of which a fast test must notice; see CONTRIBUTING.md
mutate: $(INSTALLED)
	@$(BIN)/python -m tools.mutate --workers $(WORKERS)

# every attack, and the page that says what it showed; about 40 minutes on one core
audit: $(INSTALLED)
	@mkdir -p benchmarks/outputs
	rm -f $(VERDICTS)
	OMP_NUM_THREADS=1 TACIT_AUDIT_LOG=$(VERDICTS) $(BIN)/pytest -q -m statistical tests/audits
	$(BIN)/python -m benchmarks.selfaudit $(VERDICTS)

docs: $(INSTALLED_DOCS)
	@rm -rf docs/api/generated docs/gallery docs/sg_execution_times.rst docs/_build
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	echo "Open docs/_build/html/index.html."

# SUITE=headline, erm, cd, regression, additive, features, streams, ensemble, recommend,
# fairness, audit-peers; QUICK=1 for minutes instead of hours. A full run resumes where it was
# interrupted
bench: $(INSTALLED_BENCH)
	@WORKERS=$(WORKERS) $(BIN)/python -m benchmarks $(SUITE) $(if $(QUICK),--quick)

format: $(INSTALLED)
	@$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	@rm -rf $(VENV) .peers .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache docs/_build docs/api/generated docs/api/tacit.*.rst \
	  docs/api/index.rst docs/gallery docs/sg_execution_times.rst demo build dist \
	  benchmarks/outputs benchmarks/streams/results benchmarks/ensemble/results \
	  benchmarks/recommend/results benchmarks/audit_peers/results benchmarks/fairness/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
