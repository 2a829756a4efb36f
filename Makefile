# The two commands of the README: `make fuzz` and `make test`. Both set up
# everything in .venv first; nothing is installed elsewhere.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
# No pip of ours asks for an index: the machine's own configuration decides.
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start some 500 processes, each of which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Exported, so that the compiler that is asked for here is the one that builds.
export CXX ?= c++

.PHONY: fuzz test nightly releases lint sanitize setup lock clean

# One worker more than there are cores, as below: many tests block, and it takes time to tell that.
fuzz: setup
	@$(VENV)/bin/litmusfuzz run --time 60s --workers $$(($$(nproc) + 1)); code=$$?; \
	  if [ $$code -eq 1 ]; then echo "litmusfuzz: the run ended with findings (exit 1), see ./findings/run-SEED"; fi; \
	  if [ $$code -eq 3 ]; then echo "litmusfuzz: the run ended, and left something undecided (exit 3)"; fi; \
	  [ $$code -eq 0 ] || [ $$code -eq 1 ] || [ $$code -eq 3 ]

# One process more than there are cores: many tests wait for processes and campaigns. Beside other
# work our part of the machine is that of our processes, so that there are more then: one for each
# four that run now, and three for each core at most (each takes up to 1.5 GB).
TEST_PROCESSES = $$(awk -v cores=$$(nproc) '{ split($$4, runs, "/"); n = cores + 1 + int((runs[1] - 1) / 4); \
  print n < 3 * cores ? n : 3 * cores }' /proc/loadavg)

test: setup
	$(VENV)/bin/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

# Too long for each submission: all tests with all of the corpus, where `make test` takes
# a share; ten thousand small random tests on which all oracles
# must agree (a quarter of an hour on two free cores), three thousand under the models of
# front ends alone (--model), with sections and tests that mix all features (--family), which
# an enumerator that shares nothing with the oracles reaches, some of full size, then ten
# thousand graphs of which each permitted clustering must be sound, then every
# known defect put into them, one after another (an hour and a half: each is a build),
# fifty thousand mutated files of every kind, each valid or refused in one line, the
# findings of corpus/findings through the whole pipeline (half an hour) and under control (five
# minutes), all attacks, and 50 campaigns that are killed at a random moment and resumed; and control on other releases of
# TensorFlow (five gigabytes are downloaded and installed).
FRONT_ENDS := acd program sequential one_cluster
MIXED := mixture mixture mixture sections mixture mixed clusterable mixture calls loops
nightly: setup
	LITMUSFUZZ_WHOLE=1 $(VENV)/bin/python -m pytest -n $(TEST_PROCESSES) --dist worksteal
	$(VENV)/bin/python -m tests.oracles.agreement --tests 10000 --orders 40 --workers 2 --seed $${SEED:-1}
	$(VENV)/bin/python -m tests.oracles.agreement --tests 3000 --orders 200 --workers 2 --seed $${SEED:-1} \
	  $(FRONT_ENDS:%=--model %) $(MIXED:%=--family %)
	$(VENV)/bin/python -m tests.oracles.agreement --tests 1600 --workers 2 --seed $${SEED:-1}
	$(VENV)/bin/python -m tests.passes.soundness --tests 10000 --workers 2 --seed $${SEED:-1}
	$(VENV)/bin/python tests/kills/oracle_defects.py
	$(VENV)/bin/python -m tests.mutated_files --mutations 50000 --seed $${SEED:-1}
	$(VENV)/bin/python -m tests.corpus.findings_again
	$(VENV)/bin/python -m tests.corpus.findings_under_control
	$(VENV)/bin/python -m tests.attacks
	$(VENV)/bin/python -m tests.campaign.killed --kills 50 --seed $${SEED:-1}
	$(MAKE) --no-print-directory releases

# Control on the releases of TensorFlow that docs/control.md lists, and on ours. Each gets an
# environment of its own, with about 1.5 GB.
RELEASES := 2.16.2 2.18.1 2.20.0
releases: setup $(RELEASES:%=build/tensorflow/%/.installed)
	$(VENV)/bin/python -m tests.executors.other_releases --python $(VENV)/bin/python \
	  $(RELEASES:%=build/tensorflow/%/bin/python)

build/tensorflow/%/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet tensorflow-cpu==$* msgspec pyyaml
	@touch $@

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The native executor's C++ tests under ThreadSanitizer, then AddressSanitizer; oneTBB
# and OpenMP, whose runtimes are not instrumented, under the latter only, where they
# are. No CMake here: the sanitized programs are few.
SANITIZE := -std=c++20 -g -O1 -Wall -Wextra -Werror -fno-sanitize-recover=all -fPIC -pthread \
  -Ifuzz/native -Ifuzz/native/core -Ifuzz/native/include -Itests/native
thread := -fsanitize=thread
address := -fsanitize=address,undefined
mutants := $(thread) -DLITMUSFUZZ_MUTANTS
SANITIZED := $(foreach part,executor devices gpu control engine_driver pages,$(part)_under_sanitizers) engine_conformance \
  example_engine.so
CONFORM := "inline 1" $(foreach engine,pool fifo stealing gang, \
  $(foreach threads,1 2 4,"$(engine) $(threads)"))

# Those of tbb and openmp that can be built here.
RUNTIMES = $(if $(wildcard $(VENV)/include/tbb/task_arena.h),tbb) \
  $(shell echo 'int main() {}' | $(CXX) -x c++ -fopenmp -o /dev/null - 2>/dev/null && echo openmp)

# oneTBB's threads outlive `main`, and the search for leaks stumbles over them; OpenMP's
# would spin for milliseconds beside others' work.
QUIET_RUNTIME := ASAN_OPTIONS=detect_leaks=$$([ $$runtime = tbb ] && echo 0 || echo 1) GOMP_SPINCOUNT=100

sanitize: setup
	@$(MAKE) --no-print-directory -j2 $(foreach check,thread address, \
	  $(SANITIZED:%=build/sanitize/$(check)/%)) $(RUNTIMES:%=build/sanitize/address/%.so) \
	  build/sanitize/mutants/torn_write
	@set -e; for check in thread address; do \
	  for name in $(filter %_under_sanitizers,$(SANITIZED)); do \
	    echo "$$name: $$check"; \
	    build/sanitize/$$check/$$name; \
	  done; \
	  for engine in $(CONFORM) "build/sanitize/$$check/example_engine.so 1"; do \
	    echo "engine_conformance $$engine: $$check"; \
	    build/sanitize/$$check/engine_conformance $$engine; \
	  done; \
	done; \
	for runtime in $(RUNTIMES); do for threads in 1 2 4; do \
	  echo "engine_conformance $$runtime $$threads: address"; \
	  $(QUIET_RUNTIME) build/sanitize/address/engine_conformance \
	    build/sanitize/address/$$runtime.so $$threads; \
	done; done
	@echo "torn_write: thread, which must report it"
	@! build/sanitize/mutants/torn_write 2>build/sanitize/torn_write.log
	@grep -q "ThreadSanitizer: data race" build/sanitize/torn_write.log

NATIVE_CORE := $(wildcard fuzz/native/core/*.cpp fuzz/native/core/*/*.cpp fuzz/native/control/*.cpp)
NATIVE_HEADERS := $(wildcard fuzz/native/*/*.h fuzz/native/*/*/*.h tests/native/*.h)

define sanitized
build/sanitize/$(1)/%.o: %.cpp $(NATIVE_HEADERS)
	@mkdir -p $$(@D)
	$(CXX) $(SANITIZE) $($(1)) -c $$< -o $$@
build/sanitize/$(1)/%.so: build/sanitize/$(1)/tests/native/%.o
	$(CXX) $(SANITIZE) $($(1)) -shared $$^ -o $$@
build/sanitize/$(1)/%: build/sanitize/$(1)/tests/native/%.o $(NATIVE_CORE:%.cpp=build/sanitize/$(1)/%.o)
	$(CXX) $(SANITIZE) $($(1)) $$^ -ldl -o $$@
endef
$(eval $(call sanitized,thread))
$(eval $(call sanitized,address))
$(eval $(call sanitized,mutants))
build/sanitize/address/openmp.so: WITH := -fopenmp
build/sanitize/address/tbb.so: WITH := -isystem $(VENV)/include -L$(VENV)/lib \
  -Wl,-rpath,$(CURDIR)/$(VENV)/lib -ltbb
build/sanitize/address/%.so: fuzz/native/plugins/%.cpp $(NATIVE_HEADERS)
	$(CXX) $(SANITIZE) $(address) -shared $< $(WITH) -o $@

setup: $(STAMP)

# What the C++ modules are made of: an edit installs, and thus builds, again.
NATIVE := CMakeLists.txt $(wildcard */native/*/*.cpp */native/*/*.cu */native/*/*.h */native/*/*/*.cpp */native/*/*/*.cl */native/*/*/*.h*)

$(STAMP): pyproject.toml requirements.lock $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || \
	  { echo "litmusfuzz needs Python 3.11 to 3.13 (TensorFlow 2.21 has no other wheels); set PYTHON=..."; exit 2; }
	@command -v $(firstword $(CXX)) >/dev/null || \
	  { echo "litmusfuzz needs a C++20 compiler, and found no '$(CXX)': install g++, or set CXX=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Writes requirements.lock anew after a change in pyproject.toml; versions that still fit stay.
# `make lock UPGRADE=--upgrade` takes the newest.
lock:
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install --quiet uv==0.13.9
	build/uv/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header $(UPGRADE) \
	  --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist findings
