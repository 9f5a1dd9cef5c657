# Every target sets the environment up first; `make setup` alone does only that.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := test
.ONESHELL:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# workers of pytest-xdist share the cores, so each runs BLAS on one thread
PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	$(BIN)/pytest -q -n $(WORKERS)
INSTALLED := $(VENV)/.installed
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_BENCH := $(VENV)/.installed-bench
VERDICTS := benchmarks/outputs/audit.jsonl

.PHONY: setup demo lint test test-all mutate audit docs bench-quick bench peers \
	bench-erm-quick bench-erm bench-cd-quick bench-cd bench-regression-quick \
	bench-regression bench-streams-quick bench-streams bench-ensemble-quick \
	bench-ensemble bench-recommend-quick bench-recommend \
	bench-fairness-quick bench-fairness bench-audit-peers-quick \
	bench-audit-peers format clean

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

bench-quick: $(INSTALLED)
	@$(BIN)/python benchmarks/run.py --quick

bench: $(INSTALLED)
	@$(BIN)/python benchmarks/run.py

# the other libraries, each in an environment of its own
peers: $(INSTALLED)
	@$(BIN)/python -m benchmarks.peers.install

bench-erm-quick: $(INSTALLED_BENCH) peers
	@$(BIN)/python -m benchmarks.erm.accuracy --quick --workers $(WORKERS)

bench-erm: $(INSTALLED_BENCH) peers
	@$(BIN)/python -m benchmarks.erm.accuracy --full --workers $(WORKERS)
	$(BIN)/python -m benchmarks.erm.report
	$(BIN)/python -m benchmarks.erm.dimension
	$(BIN)/python -m benchmarks.erm.speed
	$(BIN)/python benchmarks/frank_wolfe_speed.py

bench-cd-quick: $(INSTALLED_BENCH)
	@$(BIN)/python -m benchmarks.cd.algorithms
	$(BIN)/python -m benchmarks.cd.sgd
	$(BIN)/python -m benchmarks.cd.run --quick
	$(BIN)/python -m benchmarks.cd.report --quick

# stops and goes on where it stopped; some hours on one core
bench-cd: $(INSTALLED_BENCH) peers
	@$(BIN)/python -m benchmarks.cd.run
	$(BIN)/python -m benchmarks.cd.report
	$(BIN)/python -m benchmarks.cd.speed
	$(BIN)/python -m benchmarks.cd.greedy_speed

bench-regression-quick: $(INSTALLED_BENCH) peers
	@$(BIN)/python -m benchmarks.regression.accuracy --quick
	$(BIN)/python -m benchmarks.regression.support --quick
	$(BIN)/python -m benchmarks.regression.counterexample
	$(BIN)/python -m benchmarks.regression.search --quick
	$(BIN)/python -m benchmarks.regression.report

# stops and goes on where it stopped; about an hour on one core
bench-regression: $(INSTALLED_BENCH) peers
	@$(BIN)/python -m benchmarks.regression.accuracy
	$(BIN)/python -m benchmarks.regression.support
	$(BIN)/python -m benchmarks.regression.counterexample
	$(BIN)/python -m benchmarks.regression.search
	$(BIN)/python -m benchmarks.regression.report --docs

bench-streams-quick: $(INSTALLED_BENCH)
	@for part in prefix regret hedge real incremental kills; do
	  $(BIN)/python -m benchmarks.streams.$$part --quick
	done
	$(BIN)/python -m benchmarks.streams.report

# about an hour on one core
bench-streams: $(INSTALLED_BENCH)
	@for part in prefix regret hedge real incremental kills; do
	  $(BIN)/python -m benchmarks.streams.$$part
	done
	$(BIN)/python -m benchmarks.streams.report --docs

bench-ensemble-quick: $(INSTALLED_BENCH)
	@for part in reference factor accuracy speed kills; do
	  $(BIN)/python -m benchmarks.ensemble.$$part --quick
	done
	$(BIN)/python -m benchmarks.ensemble.report

# about an hour on two cores
bench-ensemble: $(INSTALLED_BENCH)
	@for part in reference factor accuracy speed kills; do
	  $(BIN)/python -m benchmarks.ensemble.$$part
	done
	$(BIN)/python -m benchmarks.ensemble.report --docs

bench-recommend-quick: $(INSTALLED_BENCH)
	@$(BIN)/python -m benchmarks.peers.install implicit
	for part in reference plateau accuracy speed; do
	  $(BIN)/python -m benchmarks.recommend.$$part --quick
	done
	$(BIN)/python -m benchmarks.recommend.report

# accuracy stops and goes on where it stopped; about an hour on one core
bench-recommend: $(INSTALLED_BENCH)
	@$(BIN)/python -m benchmarks.peers.install implicit
	for part in reference plateau accuracy speed; do
	  $(BIN)/python -m benchmarks.recommend.$$part
	done
	$(BIN)/python -m benchmarks.recommend.report --docs

bench-fairness-quick: $(INSTALLED_BENCH)
	@for part in table ladder ridge sweeps; do
	  $(BIN)/python -m benchmarks.fairness.$$part --quick
	done
	$(BIN)/python -m benchmarks.fairness.report

# sweeps stop and go on where they stopped; some minutes on one core
bench-fairness: $(INSTALLED_BENCH)
	@for part in table ladder ridge sweeps; do
	  $(BIN)/python -m benchmarks.fairness.$$part
	done
	$(BIN)/python -m benchmarks.fairness.report --docs

bench-audit-peers-quick: $(INSTALLED_BENCH)
	@$(BIN)/python -m benchmarks.peers.install sklearn
	for part in promises chosen estimators one_run; do
	  $(BIN)/python -m benchmarks.audit_peers.$$part --quick
	done

# goes on where it stopped; about ten minutes on one core
bench-audit-peers: $(INSTALLED_BENCH)
	@$(BIN)/python -m benchmarks.peers.install sklearn
	for part in promises chosen estimators one_run; do
	  $(BIN)/python -m benchmarks.audit_peers.$$part
	done
	$(BIN)/python -m benchmarks.audit_peers.report --docs

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
