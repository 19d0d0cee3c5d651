# `make demo` and `make test` set up everything they need: a virtual environment in .venv, with python3 and pip
# (or uv, where it is installed).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
comma := ,

.PHONY: test-faults help demo test test-engines fuzz fuzz-readers test-versions coverage dependencies lint types bench clean

help:
	@echo "make demo   the whole story on invented loans; results in demo-out/"
	@echo "make test   the tests (GBFL_FULL=1 make test: with as many random cases as CI runs)"
	@echo "make test-engines   tests on ClickHouse, Spark and MariaDB, where installed"
	@echo "make test-faults    tests with full disks, killed processes and hanging compilers"
	@echo "make test-versions  tests on the oldest supported libraries and on newer Pythons, where installed"
	@echo "make coverage       the tests, and the share of lines and branches they cover"
	@echo "make dependencies   known vulnerabilities of the installed packages, where the index lists them"
	@echo "make fuzz   random broken programs, artifacts and tables (EXECUTIONS=1000000: for an hour or two)"
	@echo "make fuzz-readers   what readers read against what engines and C answer (COUNT=100000: texts per engine)"
	@echo "make lint   ruff"
	@echo "make types  mypy --strict"
	@echo "make bench  the benchmarks (GROUPS=c: one group)"
	@echo "make clean  remove .venv and everything generated"

demo: $(VENV)/.demo
	$(BIN)/gbfl demo --out demo-out
	@echo "(gbfl is $(BIN)/gbfl; to type gbfl alone:  . $(BIN)/activate)"

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 $(PYTEST)

# The packages in which an untested line may mean a wrong answer.
ROOMS := ir passes backends checking
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

# One process: each would start its own Java virtual machine.
test-engines: $(VENV)/.engines .dbt/.installed
	$(BIN)/python -m pytest tests/engines tests/learning/black_box/test_real_tables.py
	PATH="$(CURDIR)/.dbt/bin:$$PATH" $(BIN)/python -m pytest tests/backends/sql/test_sql.py tests/engines/test_audit_dbt.py -k "dbt or mart"

EXECUTIONS ?= 50000
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --total $(EXECUTIONS)
	$(BIN)/python -m tests.fuzz --executions $$(($(EXECUTIONS) / 50)) \
	  --target table --target triplets --target report --target certificate --target log

# One process at a time, engines that are not installed are named and left out.
COUNT ?= 2000
SECONDS_EACH ?= 600
fuzz-readers: $(VENV)/.test
	$(BIN)/python -m tests.fuzz.readers --count $(COUNT) --seconds $(SECONDS_EACH)

# dbt pins some of our libraries to other versions, so it gets its own environment. From 1.12 on, installing it downloads
# a part of it from outside the package index.
.dbt/.installed:
	@$(PYTHON) -m venv .dbt && { .dbt/bin/python -m pip install -q --disable-pip-version-check "dbt-core<1.12" dbt-duckdb dbt-postgres || \
	  echo "dbt cannot be installed; its tests are skipped"; }
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
	  { rm -rf $(VENV); echo "python3 has no venv module: install it (Debian: apt-get install python3-venv) or uv"; exit 1; }; fi

# One stamp file per set of extras: nothing is installed again until pyproject.toml changes.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@$(call install,.[onnx$(comma)sql])
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(call install,.[test])
	@touch $@ $(VENV)/.demo

$(VENV)/.engines: pyproject.toml | $(BIN)/python
	@$(call install,.[test$(comma)engines$(comma)models])
	@touch $@ $(VENV)/.test $(VENV)/.demo

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	@$(call install,.[test$(comma)bench])
	@touch $@ $(VENV)/.test $(VENV)/.demo

define install
if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -e '$(1)'; \
else $(BIN)/python -m pip install -q --disable-pip-version-check -e '$(1)'; fi
endef
