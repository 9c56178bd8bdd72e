# ZeroDark for Swift. Rules, in the order in which a newcomer needs them:
#
#   make demo       two devices, a real server, a real folder: put, pull, compare, edit, search for cleartext
#   make test       set-up, build, all tests (debug), the README's app, documentation, the independent reader over our vectors
#   make test-postgres  the server's tests over a PostgreSQL that they start; part of make test
#   make test-s3    the server's tests over a real S3 object store, Ceph's RADOS Gateway; two servers behind haproxy, with faults
#   make test-api   a real server against docs/openapi.json: requests of devices, and generated ones from schemathesis; two or three minutes
#   make test-long  200 kills, 2,000 histories of one person and of two to five people, small-scope checks, 100,000 messages to one mailbox, 100,000 pointers of a member, 50 orders of two removals, branches of 100,000 nodes, a list of 1,000 members, 100,000 nodes and a 4 GiB stream with memory figures, a drill of backup and restore; PARTS="nodes stream"
#   make test-tsan  the tests of the framework and its devices under ThreadSanitizer; FILTER=regex for others
#   make build      build everything (debug)
#   make example    build and run Examples/Minimal, the README's app, against a real server; part of make test
#   make todo-test  build Examples/ZeroDarkTodo, the sample app, and run its tests; part of make test
#   make todo       the sample app: a server, two accounts, two pages in your browser, a guided tour
#   make todo-check  start the same, change something on both sides, end
#   make todo-figures  release build; paints, ticks and memory of two of its pages in Chromium, with 50 lists and 5,000 tasks; also writes .build/todo/figures.json
#   make test-browser  drive the sample app's pages in headless Chromium; screenshots in .build/todo
#   make snippets   compile the documentation's code as an app has it, outside of this package; part of make test
#   make api        compare the public API with the baseline in api/; Scripts/check-api --update writes it; part of make test
#   make docs       the framework's documentation, into .build/docs; a warning is an error; part of make test
#   make sentences  write every sentence that a command can print into Tests/CommandTests/Sentences.txt, which a test compares
#   make check-apple  type-check the branches for macOS and iOS on Linux, against stub modules; part of make test
#   make lint       formatting and house rules
#   make format     rewrite the sources in the house format
#   make coverage   tests with line coverage of the protocol and the cryptography; fails below 95 %
#   make fuzz       every decoder under libFuzzer and AddressSanitizer, 60 seconds each
#   make bench      release build, figures beside their yardsticks; also writes .build/bench.json; Scripts/bench --peers adds restic and rclone, Scripts/bench --network measures a long line
#   make install    release build of both programs, manual pages, completions and a systemd unit, below PREFIX (/usr/local); also DESTDIR, BINARIES
#   make uninstall  remove them
#   make release    VERSION=0.1.0: a tag, and an archive for Linux with checksums, from a clean main that .ci/run has passed; DRY_RUN=1
#   make check-container  packaging/Dockerfile by its own steps, and a release's archive on a clean Debian system
#   make setup      install what is missing (Debian and Ubuntu; says what and why); the rules above call it
#   make clean      remove everything that was built
#
# Variables: DEMO_DIR=folder for demo, FILTER=regex for test and test-tsan, LIMIT="timeout 2400" for the pieces of test, FUZZ_SECONDS and FUZZ_TARGET for fuzz, ZDC_VECTORS=folder with published test vectors.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup install uninstall release check-container build test test-postgres test-in-postgres test-in-memory test-other-stores check-reference check-apple-stubs test-sync test-small-scope test-commands check-programs test-sample check-published test-s3 test-api example todo todo-test todo-check test-browser snippets api docs sentences check-apple test-long test-tsan lint format demo fuzz bench coverage clean todo-figures

SWIFT ?= swift
export CC := $(CURDIR)/Scripts/optimizing-clang
FORMATTED := Sources Tests Benchmarks Examples/Minimal/Sources Examples/Minimal/Package.swift \
  Examples/ZeroDarkTodo/Sources Examples/ZeroDarkTodo/Tests Examples/ZeroDarkTodo/Package.swift Examples/Snippets Fuzz Package.swift

help:
	@awk '/^#$$/ {on = 1; next} /^#/ {if (on) {sub(/^# ?/, ""); print}; next} {exit}' Makefile

setup:
	@Scripts/setup

# The package manager writes the traits of a package into its compiler's options in the order of a set. With this
# variable the order is the same in each build, and none compiles Hummingbird again because of it; the scripts set it too
# (programs.py).
build: setup
	SWIFT_DETERMINISTIC_HASHING=1 Scripts/with-optimized-dependencies $(SWIFT) build --build-tests

# One process after another, and few tests at once where each has a server and devices: they keep all cores busy so, and
# hundreds side by side would only wait for each other until connections time out. The unit tests have a limit as well:
# started all at once they crashed inside Foundation's Process.run(). Toolchains that do not know the option start them all.
WIDTH := --experimental-maximum-parallelization-width
KNOWS_WIDTH = $(SWIFT) test --help-hidden | grep -e '$(WIDTH)' >/dev/null
FEW = $(shell $(KNOWS_WIDTH) && echo '$(WIDTH) 8')
SOME = $(shell $(KNOWS_WIDTH) && echo '$(WIDTH) 32')

# LIMIT: a command such as `timeout 3600` in front of each of these. .ci/run sets it, so that a test that hangs is ended and
# the log names it: pieces that run side by side print their output only when they end.
# Tests kill processes and never cut the power, so they need not wait until the disk has written.
UNSYNCED = $(shell command -v eatmydata)
RUN_TESTS = $(LIMIT) $(UNSYNCED) $(SWIFT) test --skip-build

test: build
ifdef FILTER
	$(RUN_TESTS) --filter '$(FILTER)'
else
	$(RUN_TESTS) $(SOME) --skip SyncTests --skip CommandTests
	+@$(MAKE) --jobs 2 --keep-going $(PIECES) test-commands test-other-stores
	+@$(MAKE) --jobs 2 --keep-going test-sync test-small-scope
	+@$(MAKE) --jobs 2 --keep-going $(PIECES) test-sample check-published
endif
	@Scripts/check-vectors

# Most of these leave a core idle, so `test` runs two at a time side by side: one that has tests for both cores, and a row of
# others. The output of each is in one piece where make can do that, except beside test-sync, which takes so long that its
# lines have to be seen as they come.
#
# In each pair, the second `swift test` starts after a check that builds nothing: of two that start at the same moment, one
# finds the database of the build locked. With BUILT=1, a script takes what `build` has just built, and waits for no lock.
PIECES = $(shell $(MAKE) --help | grep -e --output-sync >/dev/null && echo --output-sync=target)

test-commands:
	$(RUN_TESTS) --ignore-lock $(FEW) --filter CommandTests

# These suites open stores of their own, many of them one of each kind, or none. The run over folders has them; over other
# stores they would be the same again. StoreSuiteTests checks that none of them starts a server.
OWN_STORES := ZDCServerTests\.(BlobStoreContract|ContentProof|PartyTurns|PostgresConnection|PostgresStore|S3Client|S3Signature|S3Store|S3Upload|StoreAccount|StoreCommit|StoreContract|StoreInbox|StorePlan|StoreRows|StoreSplit|StoreZone|ZoneDraft|ZoneQueueRounds|ZoneQueue)Tests/

test-other-stores: test-in-memory
	ZDC_TEST_STORE=postgres $(RUN_TESTS) --ignore-lock $(FEW) --filter ZDCServerTests --skip '$(OWN_STORES)'

test-in-memory: check-reference
	ZDC_TEST_STORE=memory $(RUN_TESTS) --ignore-lock $(FEW) --filter ZDCServerTests --skip '$(OWN_STORES)'

check-reference:
	@BUILT=1 $(LIMIT) Scripts/check-api
	@BUILT=1 $(LIMIT) Scripts/docs

test-in-postgres:
	ZDC_TEST_STORE=postgres $(RUN_TESTS) $(FEW) --filter ZDCServerTests

test-sync:
	$(RUN_TESTS) --ignore-lock $(FEW) --filter SyncTests --skip SmallScopeTests

test-small-scope: check-programs check-apple-stubs
	$(RUN_TESTS) --ignore-lock --filter SyncTests.SmallScopeTests

# `test` runs it after check-programs, because it asks the package manager about the package.
check-apple-stubs:
	@BUILT=1 $(LIMIT) Scripts/check-apple

check-programs:
	@$(LIMIT) Scripts/check-install
	@$(LIMIT) Scripts/check-release

test-sample:
	@$(LIMIT) Scripts/todo test

check-published:
	@BUILT=1 $(LIMIT) Scripts/example
	@$(LIMIT) Scripts/check-snippets

test-postgres: build test-in-postgres

example: build
	@Scripts/example

todo-test: build test-sample

todo: setup
	@Scripts/setup --todo
	@Scripts/todo run

todo-figures: setup
	@Scripts/todo figures

todo-check: setup
	@Scripts/todo check

test-browser: setup
	@Scripts/todo browser

snippets: build
	@Scripts/check-snippets

api: setup
	@Scripts/check-api

check-apple: build check-apple-stubs

docs: setup
	@SWIFT=$(SWIFT) Scripts/docs

sentences: build
	ZDC_UPDATE_SENTENCES=1 $(SWIFT) test --skip-build --filter SentenceTests

test-long: build
	@Scripts/test-long

test-s3: build
	@Scripts/setup --s3
	@SWIFT=$(SWIFT) Scripts/test-s3
	@SWIFT=$(SWIFT) Scripts/test-service

test-api: build
	@Scripts/test-api

test-tsan: setup
	@SWIFT=$(SWIFT) FILTER='$(FILTER)' Scripts/test-tsan

lint: setup
	$(SWIFT) format lint --strict --recursive --parallel $(FORMATTED)
	@Scripts/check-house-rules
	@Scripts/check-config

format:
	$(SWIFT) format format --in-place --recursive --parallel $(FORMATTED)

demo: setup
	@Scripts/demo

fuzz: setup
	@Scripts/fuzz

bench: setup
	@Scripts/bench

coverage: setup
	@Scripts/coverage

install:
	@SWIFT=$(SWIFT) PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' BINARIES='$(BINARIES)' Scripts/install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' Scripts/install --uninstall

release:
	@SWIFT=$(SWIFT) Scripts/release $(if $(DRY_RUN),--dry-run) '$(VERSION)'

check-container:
	@SWIFT=$(SWIFT) Scripts/check-container

clean:
	rm -rf .build
