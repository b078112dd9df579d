# Short names for the common jobs, over the presets of CMakePresets.json. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

ARGS ?= -p "Once upon a time"
export FUZZ_SECONDS ?= 60
SIMULATE_SECONDS ?= 60

CLANG_FORMAT := $(firstword $(foreach c,clang-format-14 clang-format,$(shell command -v $(c))) clang-format-14)
FORMATTED = find $(wildcard src include examples tests fuzz bench proofs) -path tests/data -prune -o \( -name '*.cpp' -o -name '*.h' \) -print0

run: build/release/build.ninja  ## stream a story from the built-in model (ARGS='-n 20 ...' for other options)
	@cmake --build --preset release --target gimbal >&2
	@./build/release/gimbal run $(ARGS)

build: build/release/build.ninja  ## build the program: build/release/gimbal
	@cmake --build --preset release --target gimbal

PRESET ?= all-backends
package: $(if $(filter release cpu-only,$(PRESET)),,setup-gpu) setup-package build/$(PRESET)/build.ninja  ## gimbal as .deb and .tar.gz, with the plugins (PRESET=release: the CPU alone)
	@cmake --build --preset $(PRESET) --target gimbal gimbal_printed
	@cpack --config build/$(PRESET)/CPackConfig.cmake -B build/$(PRESET)/packages

test: test-release  ## run every test
asan: setup-checks test-asan  ## run every test under AddressSanitizer and UndefinedBehaviorSanitizer
tsan: setup-checks test-tsan  ## run every test under ThreadSanitizer

test-aarch64: setup-arm build/aarch64/build.ninja  ## cross-compile for ARM; run the numeric tests under emulation (AARCH64=quick: the pinned bits alone)
	@scripts/test-aarch64.sh $(AARCH64)

test-gpu: setup-gpu build/gpu/build.ninja  ## run every test with the GPU backends, on the software devices of setup.sh gpu
	@cmake --build --preset gpu
	@scripts/run-tests.py gpu

test-real: setup-checks setup-compare setup-real-models build  ## fetch trained models, compare with llama.cpp on them; write docs/quality.md
	@scripts/oracle/real.py

check-combinations: setup-gpu  ## configure every combination of backends, build each single one (BUILD=none|singles|pairs|all, CONFIGURE=some|all)
	@scripts/check/combinations.py --build $(or $(BUILD),singles) --configure $(or $(CONFIGURE),all)

check-clang: setup-gpu setup-checks build/gpu/build.ninja  ## compile all but the tests with clang++ and -Werror
	@cmake --build --preset gpu
	@scripts/check/clang.py

measure-sizes: setup-gpu  ## build every shape from clean; write sizes and times into docs/sizes.md (half an hour)
	@scripts/measure/sizes.py --write docs/sizes.md

test-%: build/%/build.ninja
	@cmake --build --preset $*
	@scripts/run-tests.py $*

coverage: setup-build  ## fail when tests reach less than 95 % of discovery, selection, planning, first use and recovery, or of one of their files
	@scripts/check/coverage.py

simulate: build/release/build.ninja  ## schedules of faults between a front and its workers, for SIMULATE_SECONDS (60), with new seeds
	@cmake --build --preset release --target simulate
	@build/release/simulate --seconds $(SIMULATE_SECONDS)

prove: setup-prove  ## prove the arithmetic of files, plans and messages with a model checker (docs/security.md)
	@scripts/check/proofs.py

exhaustive: build/release/build.ninja  ## the maps of tensors for all 2^32 floats, FUNCTION alone or all: an hour
	@cmake --build --preset release --target maps_test
	@GIMBAL_EVERY=1 build/release/tests/maps_test --gtest_filter='*OfAllFloats/$(or $(FUNCTION),*)'

fuzz: setup-checks build/asan/build.ninja  ## fuzz for FUZZ_SECONDS (60)
	@cmake --build --preset asan --target $(basename $(notdir $(wildcard fuzz/*_fuzz.cpp)))
	@scripts/fuzz.sh

format: setup-checks  ## lay out every source file with clang-format 14
	@$(FORMATTED) | xargs -0r $(CLANG_FORMAT) -i

check-format: setup-checks  ## fail when `make format` would change a file
	@$(FORMATTED) | xargs -0r $(CLANG_FORMAT) --dry-run --Werror

check-layers: setup-build  ## fail when an include points up the layers, or a file does not include what it uses
	@scripts/check/layers.py
	@scripts/check/includes.py

check-interface: setup-checks  ## fail when include/gimbal lost or changed a declaration without a new minor version
	@scripts/check/interface.py

check-docs: setup-build  ## fail for dead links, long lines, old tables, missing sources, and riddles in comments
	@scripts/check/docs.py
	@scripts/check/prose.py

setup: setup-build setup-checks  ## install what building, testing and checking need

setup-%:
	@scripts/setup.sh $*

# Once configured, Ninja itself notices changes to CMake files, but not to the presets.
build/%/build.ninja: CMakePresets.json | setup-build
	@cmake --preset $* >&2
	@touch $@

clean:  ## remove everything that was built
	rm -rf build

help:  ## this list
	@awk -F ':.*##' '/^[a-z0-9-]+:.*##/ { printf "  make %-20s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run build package test simulate prove exhaustive asan tsan test-aarch64 test-gpu test-real check-combinations check-clang measure-sizes fuzz format check-format check-layers check-interface check-docs setup clean help
# Kept, although make takes it for an intermediate file.
.PRECIOUS: build/%/build.ninja
