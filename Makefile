# Every target creates what it needs: the first one creates .venv from requirements.lock.
#
#   make demo        a v2 and a V4 table by Spark SQL: inserts, a stream, MERGE, time travel; about a minute
#   make fast        the tests that need neither Spark nor a server, without the slow ones
#   make test        the tests for every change: the same, slow ones, Spark and servers, for format versions 2 and 4, in
#                    three processes (WORKERS=... for another number); docs/development.md lists what it leaves out
#   make thorough    what make test leaves out: versions 1 and 3, all cases of slow tests, hypothesis with more examples,
#                    300 histories of rows on Spark, 200 operations with faults on a cluster, streams that are killed
#                    20 times, 2,000 histories whose changes are compared, 2,000 statements in one session
#                    (HISTORIES=... OPERATIONS=... KILLS=... CHANGES=... STATEMENTS=... for other numbers; SHARE=1/2 for
#                    the second of each two test files)
#   make lint        ruff, and mypy on the library, the helpers of tests and the conformance kit
#   make interop     the tests that run other programs (Maven fetches Apache Iceberg's jar on first use)
#   make versions    the short page of Spark SQL on Spark 4.1, 4.2 and 4.3 (VERSIONS=4.3 for that one alone), which pip
#                    installs into .cache on first use (900 MB each, with its wheel)
#   make spark-s3    tables in S3 on a Spark with hadoop-aws, which Maven fetches on first use (17 MB)
#   make property    the property tests, with many more examples
#   make fuzz        the decoders, each fed 200,000 damaged files (FUZZ=... for another number)
#   make long        the tests of many processes on one table, with 250 commits of each (APPENDS=... for another number),
#                    of crashes at every call of every operation, of all orders of all pairs of operations, of hostile
#                    locations in every place, and 2,000 lives of tables (LIVES=... for another number, LIFE_PART=3/10
#                    for the fourth of ten parts of them)
#   make lives       only the 2,000 lives of tables
#   make conformance writes the conformance kit of version 4 and compares it with conformance/kit; FLAGS=--write
#                    replaces conformance/kit
#   make docs        the examples in docstrings, in README.md and in docs/
#   make bench       the measurements of bench/
#   make lock        requirements.lock again, from pyproject.toml and requirements.in (needs uv)
#   make clean       removes everything that make created

PYTHON ?= $(shell command -v python3.11 || command -v python3)
UV ?= uv
FLAGS ?=
FUZZ ?= 200000
APPENDS ?= 250
LIVES ?= 2000
LIFE_PART ?= 0/1
HISTORIES ?= 300
CHANGES ?= 2000
OPERATIONS ?= 200
KILLS ?= 20
STATEMENTS ?= 2000
SHARE ?= 0/1
VERSIONS ?= 4.1 4.2 4.3
WORKERS ?= 3
VENV := .venv
READY := $(VENV)/.ready
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check
PYTEST := $(PY) -m pytest
# Spark's tests come first, since they take longest; xdist would order files by their number of tests.
SIDE_BY_SIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

# Tests write many small files and sync each of them, which takes no time in memory.
ROOMY := $(shell test "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)" -gt 4000000 2>/dev/null && echo /dev/shm)
ifneq ($(ROOMY),)
fast test thorough versions spark-s3: export TMPDIR := $(ROOMY)
endif

# Python and pytest keep compiled modules: without them, every process that tests start compiles all of icefloe again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := test
.PHONY: demo fast test thorough lint bench interop versions spark-s3 property fuzz long lives docs conformance lock clean

demo: $(READY)
	@$(PY) demo/orders.py

fast: $(READY)
	@ICEFLOE_TESTS=fast $(PYTEST) $(SIDE_BY_SIDE) -m 'not interop and not s3a' tests

test: $(READY)
	@ICEFLOE_TESTS=test $(PYTEST) $(SIDE_BY_SIDE) -m 'not interop and not s3a' tests src

thorough: $(READY)
	@ICEFLOE_TESTS=thorough ICEFLOE_HISTORIES=$(HISTORIES) ICEFLOE_CLUSTER_OPERATIONS=$(OPERATIONS) \
		ICEFLOE_STREAM_KILLS=$(KILLS) ICEFLOE_CHANGE_HISTORIES=$(CHANGES) ICEFLOE_STATEMENTS=$(STATEMENTS) \
		ICEFLOE_SHARE=$(SHARE) $(PYTEST) $(SIDE_BY_SIDE) -m 'not interop and not s3a' tests

lint: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

bench: $(READY)
	@$(PY) bench/run.py

interop: $(READY)
	@$(PYTEST) $(SIDE_BY_SIDE) -m interop tests

versions: $(READY)
	@$(PY) tests/support/spark_versions.py $(VERSIONS)

spark-s3: $(READY)
	@$(PYTEST) -m s3a --timeout 900 tests/spark_s3

# hypothesis marks its tests itself, so those that live beside unit tests get the larger sizes too.
property: $(READY)
	@ICEFLOE_PROFILE=property $(PYTEST) -m 'hypothesis and not interop' --timeout 3600 tests/property tests/unit

fuzz: $(READY)
	@ICEFLOE_PROFILE=property ICEFLOE_FUZZ=$(FUZZ) $(PYTEST) --timeout 7200 tests/fuzz

long: lives
	@ICEFLOE_LONG=1 ICEFLOE_APPENDS=$(APPENDS) $(PYTEST) --timeout 7200 --durations 20 tests/e2e/test_many_processes.py \
		tests/e2e/test_crashes.py tests/e2e/test_cleanup_crashes.py tests/e2e/test_interleavings.py \
		tests/e2e/test_compaction_races.py tests/e2e/test_hostile_locations.py

lives: $(READY)
	@ICEFLOE_LONG=1 ICEFLOE_LIVES=$(LIVES) ICEFLOE_LIFE_PART=$(LIFE_PART) $(PYTEST) tests/property/test_lifecycle.py

conformance: $(READY)
	@$(PY) conformance/make_kit.py $(FLAGS)

docs: $(READY)
	@$(PYTEST) tests/docs src

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "python3.11 or python3 is needed on the PATH (or: make PYTHON=...)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "icefloe needs Python 3.11 or later; $(PYTHON) is not that (choose with: make PYTHON=...)" >&2; exit 1; }
	@echo "setting up .venv (once, about a minute)"
	@$(PY) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	@$(PIP) install -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# Versions already in the lock are kept unless pyproject.toml or requirements.in rules them out.
lock:
	@$(UV) pip compile --quiet pyproject.toml requirements.in --extra spark --extra s3 --extra postgres --extra cli --extra dev \
		--python-version 3.11 --no-header --no-annotate --output-file requirements.lock $(FLAGS)

clean:
	@rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build spark-warehouse metastore_db derby.log
	@find src tests bench demo conformance -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
