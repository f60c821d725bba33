# Shortcuts; each target is one script or one preset that can also be run by hand.
PRESET ?= dev
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help setup configure build test sanitize demo bench format clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PRESET=dev|asan|tsan|release|portable chooses the build (dev), JOBS=n its width ($(JOBS))."

setup:  ## install what is missing (Debian 12, Ubuntu 24.04)
	@scripts/setup

configure: setup
	@cmake --preset $(PRESET) --log-level=STATUS

build: configure  ## build everything into build/$(PRESET)
	@cmake --build --preset $(PRESET) -j $(JOBS)

test: build  ## build, then run every test
	@ctest --preset $(PRESET) -j $(JOBS)

sanitize: setup  ## every test under the address and undefined-behaviour sanitizers, then under the thread sanitizer
	@JOBS=$(JOBS) ci/sanitize asan
	@JOBS=$(JOBS) ci/sanitize tsan

demo: configure  ## build the programs, then watch Stride run its workloads on this machine
	@cmake --build --preset $(PRESET) -j $(JOBS) --target demo-programs
	@scripts/demo build/$(PRESET)

# LIMIT: seconds for the whole run (600). UPDATE_REFERENCE=1: writes bench/reference/MODEL.json, judges nothing.
bench: setup  ## build the release preset, run the benchmarks, print one table (ONLY=part,..., QUICK=1)
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)
	@ci/bench build/release $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(if $(LIMIT),--limit $(LIMIT)) \
	  $(if $(UPDATE_REFERENCE),--update-reference)

format:  ## put every C++ file in the project's format; list lines above 120 columns
	@ci/format fix

clean:  ## remove what was built (.venv and the compiler cache stay)
	rm -rf build dist
