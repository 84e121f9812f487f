# SPDX-License-Identifier: BSD-3-Clause
#
# A thin front: Meson builds, pytest tests, ./onecopy runs. `make help` lists
# the targets.

PREFIX ?= /usr/local
BUILD := build
VENV := .venv
PYTHON := $(VENV)/bin/python
CONFIGURED := $(BUILD)/build.ninja
# Guests in one, all else in the other: they wait more than they work.
TEST_WORKERS ?= 2
TOOLS := cc c++ meson ninja mpicc

export ONECOPY_BUILD := $(abspath $(BUILD))

.PHONY: all build deps demo test check format bench install deb wheel clean help

all: build

## build    the library, the preload libraries, the benchmarks (default)
build: $(CONFIGURED)
	@meson compile -C $(BUILD)

$(CONFIGURED):
	@for tool in $(TOOLS); do \
		command -v $$tool >/dev/null || { \
			echo "make: $$tool is missing; run 'make deps' first" >&2; exit 1; }; \
	done
	@meson setup $(BUILD) --prefix=$(PREFIX)

## deps     what a build, the tests and the demo need: Debian packages (apt-get, with sudo when not root), .venv
deps: $(VENV)/.installed
	@packaging/install-deps build demo
	@$(PYTHON) -c 'import rich' 2>/dev/null || { \
		echo "$(VENV) was made by another Python: making it anew"; \
		rm -rf $(VENV) && $(MAKE) --no-print-directory $(VENV)/.installed; }

$(VENV)/.installed: requirements.txt requirements-demo.txt packaging/python-env
	@packaging/install-deps build demo
	@echo "installing Python packages into $(VENV)"
	@packaging/python-env $(VENV) requirements.txt requirements-demo.txt
	@touch $@

$(VENV)/.installed-check: requirements-check.txt $(VENV)/.installed
	@packaging/python-env $(VENV) requirements-check.txt
	@touch $@

# After deps, not beside it: the compilers come from there.
.PHONY: ready
ready: deps
	@$(MAKE) --no-print-directory build

## demo     hpcc, all-pairs shortest paths and a wave, with and without onecopy; under three minutes once installed
demo: ready
	@$(PYTHON) examples/demo

# Built before all tests: beside them, whose ranks wait busily, they take four times as long. Beside what waits for the
# network or a disk they take no longer.
KERNELS ?= uml-quick
.PHONY: kernels
kernels:
	@env -u MAKEFLAGS vm/build-kernel $(KERNELS) || echo "make: tests that need this kernel say more" >&2

## test     every test but the long ones; PYTEST_ARGS="-k bcast" and the like are passed on; installs what guests need
test:
	@packaging/install-deps build demo test guests || echo "make: tests that need these are skipped" >&2
	@$(MAKE) --no-print-directory -j2 ready $(if $(PYTEST_ARGS),,kernels)
	@$(PYTHON) -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

## test-all the long ones, too: sanitizers in the kernel, stock kernels, other versions' headers, data races; hours
.PHONY: test-all
test-all: export ONECOPY_TEST_ALL := 1
test-all: export KERNELS := uml uml-debug
test-all:
	@packaging/install-deps build demo test guests emulation deb nodes fft dynamics model watch || echo "make: tests that need these are skipped" >&2
	@$(MAKE) --no-print-directory test

## peers    Open MPI 5, MPICH 5 and Intel MPI of PyPI into the user's cache: the tests run on them, too, where they are
.PHONY: peers
peers: deps
	@PYTHONPATH=cli $(PYTHON) -m onecopy.peers

## check    formatting, lint, types, static analysis, licences, man pages
check: ready $(VENV)/.installed-check
	@packaging/install-deps check
	@$(PYTHON) packaging/check.py

## format   brings every file into the form that check wants
format: $(VENV)/.installed-check
	@$(VENV)/bin/clang-format -i $$(git ls-files '*.c' '*.h' '*.cc' '*.hh')
	@$(VENV)/bin/ruff check --quiet --fix
	@$(VENV)/bin/ruff format

## bench    collectives and ping-pong with and without onecopy, as CSV and plots
bench: ready
	@./onecopy bench $(BENCH_ARGS)

## install  into PREFIX (default /usr/local), below DESTDIR if given
install: build
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@meson compile -C $(BUILD)
	@meson install -C $(BUILD) --no-rebuild --quiet
	@packaging/install-command $(PREFIX)

## deb      Debian packages: command, library, kernel module for DKMS; in build/deb
deb:
	@packaging/install-deps deb
	@packaging/make-deb $(BUILD)/deb

$(VENV)/.installed-wheel: requirements-wheel.txt packaging/python-env
	@packaging/install-deps build
	@packaging/python-env $(VENV) requirements-wheel.txt
	@touch $@

## wheel    a Python wheel: command, preload libraries, allocator; in build/wheel
wheel: $(VENV)/.installed-wheel
	@packaging/install-deps build
	@packaging/make-wheel $(BUILD)/wheel $(PYTHON)

## clean    what the build and the tests made; .venv, caches and onecopy-out stay
clean:
	rm -rf $(BUILD) build-asan build-tsan .pytest_cache .mypy_cache .ruff_cache .hypothesis

## help     this list
help:
	@sed -n 's/^## /  make /p' $(MAKEFILE_LIST)
