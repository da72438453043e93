# Everything runs in .venv, which the first command makes. Needed: make, Python >= 3.11 with venv, and a package index.
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
PYTEST_ARGS ?= -n auto
# Versions that the tests passed with; empty for the newest ones.
CONSTRAINTS ?= constraints.txt

# Every test that starts a process imports ddlopt once more, and would compile hundreds of modules anew.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-newest test-lowest constraints lint types arrows wheel docs paper bench records submissions bench-all clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/installed-core ## heuristics against the optimum on bundled instances, pictures in demo/ (a minute or two)
	@$(BIN)/python examples/demo.py --out demo

# In a fresh clone every worker would rewrite the assertions of all files, which takes longer than collecting: they stay
# as they are, and what fails runs once more, to say what was compared.
tested = $(BIN)/pytest --assert plain $(1) $(PYTEST_ARGS) || { [ $$? -ne 1 ] || \
    $(BIN)/pytest -q --last-failed --last-failed-no-failures none; exit 1; }

test: $(VENV)/installed-test ## the tests, a handful of every volume
	@$(BIN)/ddlopt warm-up
	@$(call tested,-m "not slow" --dist loadfile)

test-slow: $(VENV)/installed-test ## long proofs, large sizes and the rest of every volume
	@$(call tested,-m slow)

test-all: test test-slow ## all tests

test-newest: ## the tests with the newest versions of everything, in .venv-newest
	@rm -rf .venv-newest && $(MAKE) --no-print-directory test VENV=.venv-newest CONSTRAINTS=

test-lowest: ## the tests with the lowest versions that pyproject.toml allows, in .venv-lowest
	@rm -rf .venv-lowest && $(MAKE) --no-print-directory .venv-lowest/made VENV=.venv-lowest
	@.venv-lowest/bin/python -m pip install -qq uv
	@.venv-lowest/bin/uv pip install -q --python .venv-lowest/bin/python --resolution lowest-direct -e '.[test]'
	@.venv-lowest/bin/pytest -m "not slow" $(PYTEST_ARGS)

constraints: test-newest ## write constraints.txt anew, from the newest versions and after their tests
	@$(MAKE) --no-print-directory .venv-newest/installed-dev .venv-newest/installed-docs VENV=.venv-newest CONSTRAINTS=
	@(sed -n '/^#/p' constraints.txt; .venv-newest/bin/python -m pip freeze --exclude-editable) > constraints.new
	@mv constraints.new constraints.txt

lint: $(VENV)/installed-dev ## style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/installed-dev build/site ## static types of the installed wheel
	@cd build/site && $(BIN)/mypy --config-file $(abspath pyproject.toml) -p ddlopt

arrows: $(VENV)/installed-dev build/site ## who may import whom
	@cd build/site && $(BIN)/lint-imports --config $(abspath pyproject.toml) --no-cache

wheel: $(VENV)/installed-dev dist/built ## sdist and wheel, compared with the tree
	@DDLOPT_DIST=$(abspath dist) $(BIN)/pytest -q tests/test_packaging.py

docs: $(VENV)/installed-docs ## the documentation as a web site in build/docs, every link in it checked
	@$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs && echo build/docs/index.html

paper: $(VENV)/installed-paper ## the page to cite as a PDF, build/paper.pdf
	@$(BIN)/python docs/paper_pdf.py build/paper.pdf

bench: $(VENV)/installed-test ## how fast the suite itself is: start, a report of 100 000 results, the default suite (an hour or two)
	@mkdir -p bench
	@for measured in "suite/startup" "suite/report" "suite/sweep_overhead default --time-limit 60 --keep bench/default.sqlite" \
	    "suite/gaps bench/default.sqlite --into bench/runs"; do \
	    echo "== $$measured"; $(BIN)/python benchmarks $$measured || exit 1; \
	done

records: $(VENV)/installed-test ## challenge the library's records, SECONDS=60 a method; the same command goes on (hours)
	@$(BIN)/python benchmarks suite/records --time-limit $(or $(SECONDS),60)

submissions: $(VENV)/installed-core ## check what was handed in (submissions/*.json), and take what is better into the library
	@for file in $(wildcard submissions/*.json); do $(BIN)/ddlopt check "$$file" && $(BIN)/ddlopt submit --take "$$file" || exit 1; done

bench-all: bench ## every measurement of the documentation, each a table beside the stock path (many hours)
	@$(BIN)/python benchmarks all

clean: ## remove what the commands above made, except .venv
	rm -rf build dist demo bench *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find models certificates solvers frontier -name '*.nb[ic]' -delete

PACKAGED := $(shell find ddlopt models certificates solvers instances analysis frontier -name '*.py' -o -name '*.json*' -o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.npz' -o -name '*.cc' -o -name '*.toml' -o -name py.typed) pyproject.toml README.md

# The wheel is built from the unpacked sdist, so that nothing left over in the tree can slip into it.
dist/built: $(VENV)/installed-dev $(PACKAGED)
	@rm -rf dist build
	@$(BIN)/python -m build --outdir dist . >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; echo "make: the wheel cannot be built; the reason is above" >&2; exit 1; }
	@touch $@; ls dist/*.whl dist/*.tar.gz

build/site: dist/built
	@rm -rf $@ && $(BIN)/python -m pip install -qq --no-deps --target $@ dist/*.whl

# Tried in turn: a python3 of the right age may not be the first one.
$(VENV)/made:
	@for python in $(PYTHONS); do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && found="$$python" && break; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "make: Python 3.11 or newer is needed and none was found; install one, or say where it is: make demo PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if ! "$$found" -m venv $(VENV); then \
	    rm -rf $(VENV); \
	    echo "make: $$found cannot make a virtual environment; on Debian and Ubuntu its venv module is a package of its own: apt-get install python3-venv" >&2; exit 1; \
	fi
	@touch $@

$(VENV)/installed-%: pyproject.toml $(CONSTRAINTS) | $(VENV)/made
	@echo "installing ddlopt$(if $(filter core,$*),,[$*]) into $(VENV) …"
	@$(BIN)/python -m pip install -qq $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e '.$(if $(filter core,$*),,[$*])' || { \
	    echo "make: the installation failed, the reason is above; if no package could be found, pip needs a network or a package index (see: $(BIN)/pip config list)" >&2; exit 1; }
	@touch $@
