# blklab: `make demo` shows a verdict, `make test` runs every check, `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
PYTHON := $(VENV)/bin/python
STAMPS := build/stamps
PIP_INSTALL := $(PYTHON) -m pip install --progress-bar off --disable-pip-version-check
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Debian keeps administrators' tools here, which a user's PATH may lack.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin
# cargo takes rustc from the PATH, so the folder of the cargo that works must come first.
WITH_RUST = PATH="$$(dirname "$$(scripts/find-cargo)"):$$PATH"
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock $(wildcard devices/*.toml)

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- what every other target needs -------------------------------------------------------------------------

$(STAMPS)/system-%: scripts/install-system-packages
	@mkdir -p $(STAMPS)
	@scripts/with-progress system-$* "System packages" scripts/install-system-packages $*
	@touch $@

$(PYTHON): | $(STAMPS)/system-run
	@scripts/with-progress venv "Python environment" "$$(scripts/find-python)" -m venv $(VENV)

$(STAMPS)/python: pyproject.toml | $(PYTHON)
	@mkdir -p $(STAMPS)
	@scripts/with-progress pip "Newest pip" $(PIP_INSTALL) --upgrade pip
	@$(PYTHON) scripts/list-requirements.py dev postgresql site > build/requirements.txt
	@scripts/with-progress requirements "Python packages" $(PIP_INSTALL) --requirement build/requirements.txt
	@touch $@

$(STAMPS)/core: $(RUST_SOURCES) pyproject.toml $(STAMPS)/python
	@export $(WITH_RUST) VIRTUAL_ENV="$(CURDIR)/$(VENV)"; \
	scripts/with-progress core "Compiling the simulator" $(VENV)/bin/maturin develop --release
	@touch $@

$(STAMPS)/guest: $(RUST_SOURCES) scripts/build-guest scripts/cross-compile.bash $(STAMPS)/core
	@scripts/with-progress guest "Compiling the guests' program" scripts/build-guest
	@touch $@

$(STAMPS)/bpf: kernel/bpf/blkrecord.bpf.c scripts/build-bpf | $(STAMPS)/system-run
	@mkdir -p $(STAMPS)
	@scripts/with-progress bpf "Compiling the recorder's BPF programs" scripts/build-bpf
	@touch $@

$(STAMPS)/playground: $(RUST_SOURCES) scripts/build-playground $(STAMPS)/core
	@scripts/with-progress playground "Compiling the playground's program" scripts/build-playground
	@touch $@

.PHONY: build
build: $(STAMPS)/core $(STAMPS)/guest $(STAMPS)/bpf ## Install what is missing and build (V=1 shows all output)

# ---- the two commands of the README ---------------------------------------------------------------

.PHONY: demo
demo: $(STAMPS)/core ## A verdict on this machine's disk (as root) or on a simulated one, with a report
	@scripts/demo

.PHONY: test
test: $(STAMPS)/system-test $(STAMPS)/playground lint types contract rust-test kernel python-test ## Every check that ends within minutes

# Of the docs' commands only the reading of each, which needs no run.
QUICK_TESTS := tests/analysis tests/spec tests/records tests/labs/reanalysis tests/docs tests/cli/test_command_line.py

.PHONY: quick
quick: $(STAMPS)/core ## Lints, types, contract and unit tests: no root, no kernels, within three minutes
	$(VENV)/bin/ruff format --check python tests benches scripts
	$(VENV)/bin/ruff check python tests benches scripts
	$(VENV)/bin/typos
	$(VENV)/bin/lint-imports
	$(VENV)/bin/mypy
	$(PYTHON) -m pytest --quiet --numprocesses auto --dist loadfile --durations 15 \
		-m "not root and not slow and not vm and not browser" -k "not test_it_runs" $(QUICK_TESTS)

.PHONY: test-all
test-all: $(STAMPS)/system-test $(STAMPS)/playground lint types contract rust-test kernel ## The same with the slow suites
	VENV=$(VENV) scripts/python-tests

.PHONY: test-vm
test-vm: $(STAMPS)/system-vm build ## The package in virtual machines with a stock Debian; RELEASE (trixie), or bookworm, trixie-backports
	@MAKE="$(MAKE)" VENV=$(VENV) scripts/test-vm "$(or $(RELEASE),trixie)" $(TESTS)

# ---- single checks ----------------------------------------------------------------------------------

.PHONY: lint
lint: build ## Formatting, lints, spelling, prose and links
	$(VENV)/bin/ruff format --check python tests benches scripts
	$(VENV)/bin/ruff check python tests benches scripts
	$(VENV)/bin/typos
	$(PYTHON) -m pytest --quiet tests/docs
	@export $(WITH_RUST); \
	if cargo fmt --version >/dev/null 2>&1; then cargo fmt --all --check; \
	else echo "skipped: cargo fmt is not installed (rustup component add rustfmt, or Debian's rustfmt)"; fi; \
	if cargo clippy --version >/dev/null 2>&1; then cargo clippy --quiet --workspace --all-targets -- -D warnings; \
	else echo "skipped: cargo clippy is not installed (rustup component add clippy, or Debian's rust-clippy)"; fi

.PHONY: types
types: build ## Static types of Python (mypy strict)
	$(VENV)/bin/mypy

.PHONY: contract
contract: build ## The import contract: one way through
	$(VENV)/bin/lint-imports

.PHONY: rust-test
rust-test: build ## Tests of the Rust crates
	$(WITH_RUST) cargo test --quiet --workspace

.PHONY: python-test
python-test: build $(STAMPS)/playground ## Tests of the Python package
	VENV=$(VENV) scripts/python-tests quick

.PHONY: stress-test
stress-test: $(STAMPS)/system-test $(STAMPS)/playground build kernel ## ROUNDS (10) of the tests beside heavy load and other programs' disks; TESTS narrows
	$(PYTHON) scripts/stress-tests.py --rounds "$(or $(ROUNDS),10)" --nice "$(or $(NICE),0)" -- $(TESTS)

.PHONY: kernel
kernel: build $(STAMPS)/system-test ## Guest kernels, kept between runs: stock, and the patched one that tests use
	@scripts/build-guest-kernels

.PHONY: format
format: build ## Format all sources
	$(VENV)/bin/ruff format python tests benches scripts
	$(VENV)/bin/ruff check --fix python tests benches scripts
	$(WITH_RUST) cargo fmt --all

.PHONY: golden
golden: build ## Refresh golden files and generated documents; look at the diff before committing
	$(PYTHON) -m blklab.cli.reference.schemas docs/reference/schema
	$(PYTHON) -m blklab.cli.reference.experiments docs/reference/experiments.md docs/reference/guests.md
	$(PYTHON) -m blklab.report.pages.reference docs/reference/simulator.md
	$(PYTHON) -m blklab.report.pages.reference docs/reference/job-options.md
	$(PYTHON) -m blklab.report.gallery docs/explanation/schedulers.md
	$(PYTHON) -m blklab.labs.studies.published.page docs/appendix/studies.md
	$(PYTHON) -m blklab.labs.studies.replication.pages docs/appendix/studies
	BLKLAB_REFRESH_GOLDEN=1 $(PYTHON) -m pytest -q -m "not slow" tests/report tests/docs/test_tables.py tests/cli/test_analyse.py
	$(WITH_RUST) BLKSIM_GOLDEN=refresh cargo test --quiet -p blksim --test suite determinism::

.PHONY: playground
playground: $(STAMPS)/system-playground $(STAMPS)/playground ## The playground, one self-contained page, in build/playground.html
	$(PYTHON) -m blklab playground --output build/playground.html

.PHONY: reference
reference: build ## Man pages and shell completion, in packaging/data/share
	$(PYTHON) -m blklab.cli.reference packaging/data/share

.PHONY: wheel
wheel: reference $(STAMPS)/playground ## A package with everything in it, in dist
	$(WITH_RUST) $(VENV)/bin/maturin build --release --quiet --out dist

.PHONY: wheel-arm64
wheel-arm64: $(STAMPS)/system-arm64 reference $(STAMPS)/bpf $(STAMPS)/playground ## The same for Linux on arm64, compiled on this machine, in dist
	@scripts/with-progress wheel-arm64 "Compiling the wheel for arm64" scripts/build-wheel-arm64 dist

.PHONY: try-wheel
try-wheel: wheel ## Install the wheel in fresh environments of every Python from 3.10 here, and with pipx, and run it
	scripts/try-wheel "$$(ls -t dist/*_$$(uname -m).whl | head -n 1)"

.PHONY: try-wheel-arm64
try-wheel-arm64: wheel-arm64 ## Install the wheel for arm64 in a Debian for arm64 under qemu-user, and run it
	scripts/try-wheel-in-debian "$$(ls -t dist/*_aarch64.whl | head -n 1)" trixie arm64

.PHONY: sdist
sdist: reference ## A source distribution, in dist
	$(WITH_RUST) $(VENV)/bin/maturin sdist --quiet --out dist

.PHONY: deb
deb: wheel ## A Debian package for Debian 13 or later, in dist
	scripts/build-deb "$$(ls -t dist/*_$$(uname -m).whl | head -n 1)" dist

.PHONY: site
site: build $(STAMPS)/playground ## The documentation as a site, in site
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet --strict

.PHONY: fuzz
fuzz: build ## Mutated job files and profiles for SECONDS (600) each, from SEED (1)
	$(WITH_RUST) BLKSIM_FUZZ_SECONDS="$(or $(SECONDS),600)" BLKSIM_FUZZ_SEED="$(or $(SEED),1)" \
	cargo test --quiet -p blksim --test suite fuzz:: -- --nocapture

.PHONY: bench
bench: build ## Benchmarks: the engine, guests, and what blklab costs over plain fio (root)
	$(WITH_RUST) cargo bench --workspace
	$(PYTHON) benches/guests.py
	$(PYTHON) benches/host_overhead.py

.PHONY: bench-verdicts
bench-verdicts: build ## How often verdicts are wrong: error rates, power and blocks on simulated experiments
	$(PYTHON) benches/verdicts/measure.py --experiments 1000 --jobs $$(nproc) --write
	$(PYTHON) benches/verdicts/measure_switchback.py --experiments 400 --jobs $$(nproc) --write
	$(PYTHON) benches/verdicts/measure_fleets.py --experiments 1000 --jobs $$(nproc) --write

.PHONY: clean
clean: ## Remove what was built
	rm -rf build dist site target packaging/data/share $(VENV) python/blklab/shipped/blkguest \
		python/blklab/shipped/blkplay.wasm \
		python/blklab/shipped/blkrecord.bpf.o
