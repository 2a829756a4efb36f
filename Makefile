# The two commands of the README: `make fuzz` and `make test`. Both set up
# everything in .venv first; nothing is installed elsewhere.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
# No pip of ours asks for an index: the machine's own configuration decides.
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Exported, so that the compiler that is asked for here is the one that builds.
export CXX ?= c++

.PHONY: fuzz test nightly lint sanitize setup clean

fuzz: setup
	@$(VENV)/bin/litmusfuzz run --time 60s; code=$$?; \
	  if [ $$code -eq 1 ]; then echo "litmusfuzz: the run ended with findings (exit 1), see ./findings"; fi; \
	  if [ $$code -eq 3 ]; then echo "litmusfuzz: the run ended, some tests unknown or timed out (exit 3)"; fi; \
	  [ $$code -eq 0 ] || [ $$code -eq 1 ] || [ $$code -eq 3 ]

test: setup
	$(VENV)/bin/python -m pytest -n auto

# Too long for each submission: ten thousand small random tests on which all oracles
# must agree (a quarter of an hour on two free cores), some of full size, then every
# known defect put into them, one after another (another quarter).
nightly: setup
	$(VENV)/bin/python -m tests.oracles.agreement --tests 10000 --orders 40 --workers 2 --seed $${SEED:-1}
	$(VENV)/bin/python -m tests.oracles.agreement --tests 1600 --workers 2 --seed $${SEED:-1}
	$(VENV)/bin/python tests/kills/oracle_defects.py

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The native executor's C++ tests under ThreadSanitizer, then AddressSanitizer. No
# CMake here: `setup` brings its own, and drops it.
SANITIZE := -std=c++20 -g -O1 -Wall -Wextra -Werror -fno-sanitize-recover=all -pthread \
  -Ifuzz/native/core -Ifuzz/native/include -Itests/native

sanitize:
	@mkdir -p build/sanitize
	@set -e; for check in thread address,undefined; do \
	  for name in executor_under_sanitizers devices_under_sanitizers engine_conformance; do \
	    echo "$$name: $$check"; \
	    $(CXX) $(SANITIZE) -fsanitize=$$check tests/native/$$name.cpp \
	      fuzz/native/core/*.cpp fuzz/native/core/engines/*.cpp -ldl -o build/sanitize/$$name; \
	  done; \
	  build/sanitize/executor_under_sanitizers; \
	  build/sanitize/devices_under_sanitizers; \
	  for engine in "inline 1" "pool 1" "pool 2" "pool 4" "fifo 1" "fifo 4" "gang 1" "gang 2" "gang 4"; do \
	    build/sanitize/engine_conformance $$engine; \
	  done; \
	done

setup: $(STAMP)

# What the C++ modules are made of: an edit installs, and thus builds, again.
NATIVE := CMakeLists.txt $(wildcard */native/*/*.cpp */native/*/*.h */native/*/*/*.cpp */native/*/*/*.h)

$(STAMP): pyproject.toml constraints.txt $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
	  { echo "litmusfuzz needs Python 3.11 to 3.13 (TensorFlow 2.21 has no other wheels); set PYTHON=..."; exit 2; }
	@command -v $(firstword $(CXX)) >/dev/null || \
	  { echo "litmusfuzz needs a C++20 compiler, and found no '$(CXX)': install g++, or set CXX=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(VENV)/bin/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist findings
