# Gatefold's everyday commands; `make help` lists them. Each sets the machine up first, as far as it needs.
#
#   PRESET=debug             another preset of CMakePresets.json for build and test
#   CMAKE_ARGS=-D...         more options for CMake
#   GATEFOLD_CUTLASS_DIR=    your own folder of CUTLASS headers
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo build test format lint sanitize tsan aarch64 fuzz python-test planted-bugs clean

PRESET ?= release
BUILD := build/$(PRESET)
CMAKE_ARGS ?=
ifdef GATEFOLD_CUTLASS_DIR
export GATEFOLD_CUTLASS_DIR
CMAKE_ARGS += -DGATEFOLD_CUTLASS_DIR=$(GATEFOLD_CUTLASS_DIR)
endif
FUZZ_SECONDS ?= 30

help:  ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

demo:  ## write a small checkpoint and run its gated MLP every way
	@scripts/setup demo
	@cmake --preset tool $(CMAKE_ARGS)
	@cmake --build --preset tool
	@rm -rf build/demo
	build/tool/tools/gatefold checkpoint --model smollm2-135m --layers 2 --output build/demo
	build/tool/tools/gatefold run build/demo --layer 0 --tokens 256

build:  ## build everything
	@scripts/setup test
	@cmake --preset $(PRESET) -DGATEFOLD_PYTHON=$(CURDIR)/.venv/bin/python $(CMAKE_ARGS)
	@cmake --build --preset $(PRESET)

test: build  ## build everything and run the tests
	@ctest --preset $(PRESET)

format:  ## format the C++ and CUDA sources
	@scripts/setup test
	@git ls-files -z '*.h' '*.c' '*.hpp' '*.cpp' '*.cu' '*.cuh' | xargs -0 .venv/bin/clang-format -i

lint: build  ## check format, layers, headers, paths and file lengths, and run clang-tidy
	@scripts/lint $(BUILD)

sanitize:  ## run the tests with AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory test PRESET=sanitize

tsan:  ## run the threaded tests with ThreadSanitizer, by Clang
	@scripts/setup ci
	@$(MAKE) --no-print-directory test PRESET=tsan

aarch64:  ## build the library for AArch64 and run its tests there under an emulator
	@scripts/setup ci
	@scripts/test_aarch64

fuzz:  ## fuzz the API and the checkpoint reader, FUZZ_SECONDS each
	@scripts/setup ci
	@cmake --preset fuzz $(CMAKE_ARGS)
	@cmake --build --preset fuzz --target tests/fuzz/all
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

python-test:  ## build the Python package's wheel and run its tests against it
	@scripts/setup test
	@scripts/test_python

planted-bugs: build  ## plant bugs in the kernels one by one, and show which test catches each
	@tests/planted_bugs/run

clean:  ## remove what was built; .venv and .cache stay
	@rm -rf build
