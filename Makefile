.DEFAULT_GOAL := help
.PHONY: help demo test test-console test-openapi sanitize sanitize-mount test-kernel soak soak-mount bench bench-mount bench-server lint build install clean

help: ## Lists these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Shows the main job on real files: from an encrypted file to an approved app
	@Scripts/install-dependencies
	@Scripts/build
	@Scripts/demo

test: ## Installs what Debian lacks, checks the style and the arrows, runs the sanitizers and every test
	@Scripts/test

test-console: ## Goes through the server's console in Chromium, and looks at every page; keeps its pictures
	@Scripts/install-dependencies --console
	@swift build --product coffer-server
	@swift build --product coffer
	@Scripts/test-console

test-openapi: ## Holds the server's answers to the OpenAPI document that it serves, with schemathesis
	@Scripts/install-dependencies --openapi
	@swift build --product coffer-server
	@Scripts/test-openapi

sanitize: ## Runs the engine's tests under AddressSanitizer and ThreadSanitizer
	@Scripts/install-dependencies
	@Scripts/sanitize address
	@Scripts/sanitize thread

sanitize-mount: ## Runs the tests of mounts and the agent against a program under ThreadSanitizer
	@Scripts/install-dependencies
	@Scripts/sanitize-mount

test-kernel: ## Runs the tests of mounts and the agent under Debian's own kernel, in an emulated machine
	@Scripts/install-dependencies --test-kernel
	@Scripts/test-kernel

soak: ## Tries crashes, kills, changed bytes and pages for MINUTES (60), with new seeds
	@Scripts/install-dependencies
	@Scripts/soak $(MINUTES)

soak-mount: ## Works in a mounted vault for MINUTES (60), and watches the agent's memory and descriptors
	@Scripts/install-dependencies
	@Scripts/soak-mount $(MINUTES)

bench: ## Measures put and get beside cp and age, the engine, files by size, and the agent; stores the tables
	@Scripts/install-dependencies --bench
	@Scripts/build
	@Scripts/bench
	@Scripts/bench-engine
	@Scripts/bench-sizes
	@Scripts/bench-agent

bench-mount: ## Measures a mounted vault beside gocryptfs, securefs, CryFS, EncFS and the bare folder, as root
	@Scripts/install-dependencies --bench-mount
	@Scripts/bench-mount

bench-server: ## Measures the policy server: requests beside Node, and ten thousand open streams of events
	@Scripts/install-dependencies --bench-server
	@Scripts/bench-server

lint: ## Checks the style of the sources
	@Scripts/lint

build: ## Builds the programs for release
	@Scripts/install-dependencies
	@Scripts/build

install: build ## Installs the programs, manual pages and completions below PREFIX (/usr/local), or DESTDIR/PREFIX
	@Scripts/install "$(or $(PREFIX),/usr/local)" "$(DESTDIR)"

clean: ## Removes everything that was built
	rm -rf .build .build-asan .build-tsan .build-tsan-mount
