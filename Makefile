# Two commands for users, each in its own virtual environment in this folder:
#
#   make demo        install, then classify real images in 32 to 4 bits
#   make test        install, then run the plain tests, one process per core (ARGS="-k sum");
#                    3 to 5 minutes on two cores
#
# Commands for developers:
#
#   make exhaustive  run the tests that take longer             (ARGS=...)
#   make docs        build the site in build/docs; a warning is an error
#   make lint        run ruff and mypy, check the wording and spelling of all text, and
#                    compile all C with gcc and clang; a warning is an error
#   make sanitize    run the plain tests under AddressSanitizer and
#                    UndefinedBehaviorSanitizer                 (ARGS=...)
#   make sanitize-threads
#                    run the tests of threads under ThreadSanitizer (ARGS=...)
#   make explorer    build docs/explorer/core.js from its C     (needs clang and lld)
#   make clean       remove builds and environments
#
# PYTHON=/path/to/python3 and CC=compiler choose a Python and a compiler. By default, make
# uses the newest Python on this machine and its compiler.

PYTHON ?=
ARGS ?=
SOURCES := pyproject.toml setup.py $(shell find src tf32dtype -type f \
    ! -name '*.so' ! -name '*.pyc')

# Let Python write bytecode: tests start many short programs, and each of them would compile
# the Python of the package again.
export PYTHONDONTWRITEBYTECODE :=

# Do not let pip compile all Python that it installs. Python compiles the modules that it
# imports.
export PIP_COMPILE := 0

ifeq ($(origin CC),command line)
export CC
endif

.DELETE_ON_ERROR:
.PHONY: help demo test exhaustive docs explorer lint ruff mypy prose warnings \
    sanitize sanitize-threads clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

# The command starts in another folder: in this one, Python would find the
# sources in tf32dtype/ before the installed package.
demo: .venv-demo/installed
	@cd .venv-demo && bin/tf32dtype demo

test: .venv-test/installed
	.venv-test/bin/python -m pytest -n auto --dist worksteal $(ARGS)

exhaustive: .venv-test/installed
	.venv-test/bin/python -m pytest -n auto -m exhaustive $(ARGS)

docs: .venv-docs/installed
	.venv-docs/bin/sphinx-build --quiet --fresh-env --write-all --fail-on-warning \
	    --keep-going -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

lint: ruff mypy prose warnings

ruff: .venv-test/dev
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .

mypy: .venv-test/dev
	.venv-test/bin/mypy

prose: .venv-test/dev
	.venv-test/bin/python tools/prose.py --check
	.venv-test/bin/codespell

warnings: .venv-test/dev
	tools/warnings

sanitize: .venv-test/dev
	tools/sanitize address $(ARGS)

sanitize-threads: .venv-test/dev
	tools/sanitize thread $(ARGS)

explorer: .venv-test/dev
	.venv-test/bin/python -m tools.explorer

clean:
	rm -rf build dist *.egg-info .venv-demo .venv-docs .venv-test
	find tf32dtype -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv-%/pyvenv.cfg:
	@python=$$(tools/find-python $(PYTHON)) && \
	echo "Making .venv-$* with $$python" && \
	"$$python" -m venv .venv-$*

.venv-demo/installed: .venv-demo/pyvenv.cfg $(SOURCES)
	@echo "Building and installing tf32dtype (about a minute)"
	@.venv-demo/bin/python tools/install '.[demo]'
	@touch $@

.venv-docs/installed: .venv-docs/pyvenv.cfg $(SOURCES)
	@echo "Building and installing tf32dtype (about a minute)"
	@.venv-docs/bin/python tools/install --editable '.[docs]'
	@touch $@

.venv-test/installed: .venv-test/pyvenv.cfg $(SOURCES)
	@echo "Building and installing tf32dtype (about a minute)"
	@.venv-test/bin/python tools/install --editable '.[test]'
	@touch $@

.venv-test/dev: .venv-test/installed
	@.venv-test/bin/python tools/install --editable '.[dev]'
	@touch $@
