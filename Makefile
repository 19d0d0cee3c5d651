# `make demo` and `make test` set up all they need: a virtual environment in .venv, from python3 and pip
# (or uv, where it is installed).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
comma := ,

.PHONY: test-faults help demo test test-engines fuzz test-versions coverage dependencies lint types bench clean

help:
	@echo "make demo   mine, compile and check a model; results in demo-out/"
	@echo "make test   the tests"
	@echo "make test-engines   the tests on ClickHouse, Spark and MariaDB (those that are here)"
	@echo "make test-faults    the tests of full disks, killed processes, compilers that hang"
	@echo "make test-versions  the tests on the oldest libraries and on newer Pythons that are here"
	@echo "make coverage       the tests, and the share of lines and branches they reach"
	@echo "make dependencies   known vulnerabilities of what is installed, where the index knows"
	@echo "make fuzz   broken programs, artifacts, tables: EXECUTIONS=1000000 over loader and readers"
	@echo "make lint   ruff"
	@echo "make types  mypy --strict"
	@echo "make bench  the benchmarks, one table"
	@echo "make clean  remove .venv and what was made"

demo: $(VENV)/.core
	$(BIN)/gbfl demo --out demo-out

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 $(PYTEST)

# The rooms in which a line that no test reaches may be a wrong answer somewhere.
ROOMS := ir passes backends check
coverage:
	@$(MAKE) --no-print-directory test PYTEST="--cov --cov-report="
	@for room in $(ROOMS); do echo "coverage of $$room: $$($(BIN)/python -m coverage report --format=total --include="gbfl_compile/$$room/*") %"; done
	@for room in $(ROOMS); do $(BIN)/python -m coverage report --include="gbfl_compile/$$room/*" --fail-under=90 >/dev/null || \
	  { $(BIN)/python -m coverage report --include="gbfl_compile/$$room/*"; exit 1; }; done

test-versions: $(VENV)/.test
	$(BIN)/python -m tests.supply.versions $(VERSIONS)

dependencies: $(VENV)/.test
	$(BIN)/python -m tests.supply.dependencies

test-faults: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 tests/faults

# One process: each would start a Java machine of its own.
test-engines: $(VENV)/.engines .dbt/.installed
	$(BIN)/python -m pytest tests/engines
	PATH="$(CURDIR)/.dbt/bin:$$PATH" $(BIN)/python -m pytest tests/backends/test_sql.py -k dbt

EXECUTIONS ?= 50000
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --total $(EXECUTIONS)
	$(BIN)/python -m tests.fuzz --executions $$(($(EXECUTIONS) / 50)) \
	  --target table --target triplets --target report --target certificate --target log

# dbt pins libraries of ours to other versions, so it has a place of its own. From 1.12 on it fetches a part of itself
# from outside the package index while it is installed.
.dbt/.installed:
	@$(PYTHON) -m venv .dbt && { .dbt/bin/python -m pip install -q --disable-pip-version-check "dbt-core<1.12" dbt-duckdb || \
	  echo "dbt cannot be installed here, its tests are skipped"; }
	@touch $@

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m tests.bench $(GROUPS)

clean:
	rm -rf $(VENV) .versions .coverage demo-out build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gbfl-compile needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --python "$$(command -v $(PYTHON))" $(VENV); else \
	  $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "python3 has no venv module here: install it (Debian: apt-get install python3-venv) or uv"; exit 1; }; fi

# A stamp a set of extras: what is installed is not installed again until pyproject.toml changes.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	@$(call install,.)
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(call install,.[test])
	@touch $@ $(VENV)/.core

$(VENV)/.engines: pyproject.toml | $(BIN)/python
	@$(call install,.[test$(comma)engines])
	@touch $@ $(VENV)/.test $(VENV)/.core

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@$(call install,.[test$(comma)bench])
	@touch $@ $(VENV)/.test $(VENV)/.core

define install
if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e '$(1)'; \
else $(BIN)/python -m pip install -q --disable-pip-version-check -e '$(1)'; fi
endef
