# Each target does its own set-up. CI=true turns warnings into errors, on the command line only: in the manifest this
# would break the packages that depend on Tern.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

export SWIFT_BUILD_FLAGS := $(if $(filter true,$(CI)),-Xswiftc -warnings-as-errors)

# make test FILTER=WireTests
FILTER ?=
TEST := scripts/run-tests $(SWIFT_BUILD_FLAGS) $(if $(FILTER),--filter '$(FILTER)')
SWIFT_FOLDERS := $(wildcard Package.swift Sources Tests Examples Benchmarks Integrations)

# References for the tests: an HTTP server that many clients are tested with, a server of HTTP/2 with trailers, a parser
# of multipart forms, Pillow's decoders, two servers with an application that sends server-sent events, two peers of
# WebSocket, and a server of HTTP/3 that a test can let fail.
PYTHON_PACKAGES := httpbin==0.10.2 gunicorn==23.0.0 hypercorn==0.18.0 multipart==1.2.1 pillow==13.0.0 \
	starlette==1.10.0 sse-starlette==3.7.0 uvicorn==0.54.0 aiohttp==3.14.5 tuspyserver==4.4.3 websockets==17.4 \
	aioquic==1.7.2
# Without a network the tests that need these are skipped, with a message. In CI they must run.
VENV := scripts/venv $(PYTHON_PACKAGES) || [[ "$(CI)" != true ]]

.PHONY: help demo install-tool test crash-test fuzz gallery gallery-web test-gallery test-asan test-tsan soak capture sockets chaos \
	campaign json-values \
	test-loops test-urlsession test-integrations gallery-programs lint format api bench bench-quick docs docs-preview \
	test-docs test-inspector clean

help:
	@echo 'make demo [URL=http://…]   build the tool and watch it work, against its own server or a given address'
	@echo 'make install-tool [PREFIX=…]  the tool and its completions for bash, zsh and fish, into /usr/local'
	@echo 'make test [FILTER=name]    the whole test suite; test-asan, test-tsan: the same under a sanitizer'
	@echo 'make crash-test            kills processes that write to a disk cache or an HTTP cache, transfer or run a queue, at 4,100 points'
	@echo 'make fuzz [N=1000000]      N mutated inputs for each decoder and parser, under the address sanitizer'
	@echo 'make soak                  memory and descriptors after very many requests, memory of hostile pictures'
	@echo 'make capture               decrypts a capture of TLS with a key log, with tshark'
	@echo 'make sockets               memory, threads and descriptors of 1,000 WebSockets'
	@echo 'make chaos [N=50000]       N requests each over HTTP/1.1, TLS and HTTP/2 to a server that breaks connections'
	@echo 'make campaign [N=50000]    N multipart streams with limits and cancellations from a server that stalls and cuts'
	@echo 'make json-values [N=1000000]  N random values, written by one JSON coder and read by the other'
	@echo 'make test-loops            the tests with three event loops, over which connections are spread at once'
	@echo 'make test-urlsession       the tests over the URLSession transport'
	@echo 'make test-integrations     the packages of Integrations, and the proxy of Examples/Server'
	@echo 'make gallery               photos, a download and more on widgets of GTK 4; without a display a screenshot'
	@echo 'make gallery-web [URL=…]   a web page on WebKit, loaded through Tern; without a display a screenshot'
	@echo 'make test-gallery          the gallery checks itself on an X server without a screen'
	@echo 'make lint | make format    the style, the documentation of every public symbol, the checks of scripts/checks'
	@echo 'make api                   the lists of public declarations, into API'
	@echo 'make bench                 the benchmarks, into RESULTS.md and RESULTS-caches, -http-cache, -images, -json, -pipeline, -startup, -streaming and -transfers.md'
	@echo 'make bench-quick [PEERS=…]  small GETs of Tern and some peers, in less than 3 minutes'
	@echo 'make docs                  the documentation as a site of static files, into .build/docs/site'
	@echo 'make docs-preview [PORT=…] serves the site on this machine; test-docs: checks it in headless Chromium'
	@echo 'make test-inspector        the page of the inspector in headless Chromium'
	@echo 'make clean'

# The packages beside the root share a build folder, so that Tern is compiled once for them. A cached manifest of it would
# be that of the package that was built last.
export PACKAGES_PATH ?= .build/packages
PACKAGES := $(SWIFT_BUILD_FLAGS) --scratch-path $(PACKAGES_PATH) --disable-build-manifest-caching

demo:
	@scripts/set-up build
	swift run $(PACKAGES) --package-path Examples -c release tern demo $(if $(URL),'$(URL)')

# make install-tool PREFIX=~/.local: the program needs no Swift on the machine. DESTDIR is put before the prefix.
PREFIX ?= /usr/local
STATIC := $(if $(filter Linux,$(shell uname -s)),--static-swift-stdlib)
TOOL := swift build $(SWIFT_BUILD_FLAGS) --package-path Examples --scratch-path .build/tool -c release $(STATIC)

install-tool:
	@scripts/set-up build
	$(TOOL) --product tern
	@DESTDIR='$(DESTDIR)' scripts/install-tool "$$($(TOOL) --show-bin-path)/tern" '$(PREFIX)'

test:
	@scripts/set-up test
	@$(VENV)
	$(TEST)

crash-test:
	@scripts/set-up test
	@$(VENV)
	TERN_CRASH_POINTS=2000 TERN_HTTP_CACHE_KILLS=500 TERN_DOWNLOAD_KILLS=1000 TERN_UPLOAD_KILLS=300 TERN_QUEUE_KILLS=300 $(TEST) \
		--filter 'DiskCrashTests|DiskKillTests|DownloadKillTests|UploadKillTests|QueueKillTests'

# make fuzz N=100000 TARGETS='gif png' SEED=2
N ?= 1000000
TARGETS ?=
export SEED

fuzz:
	@scripts/set-up test
	@scripts/venv $(PYTHON_PACKAGES)
	scripts/fuzz $(N) $(TARGETS)

# Each kind of build has its own scratch path, so that none rebuilds another's products.
test-asan:
	@scripts/set-up test
	@$(VENV)
	LSAN_OPTIONS=suppressions=$(CURDIR)/scripts/lsan.supp $(TEST) --scratch-path .build/asan --sanitize=address

test-tsan:
	@scripts/set-up test
	@$(VENV)
	TSAN_OPTIONS=suppressions=$(CURDIR)/scripts/tsan.supp TERN_PTHREAD_LOCK=1 $(TEST) --scratch-path .build/tsan \
		--sanitize=thread

# Memory and descriptors after 100,000 requests and 60,000 cancellations, alone in a process; and the memory of small files
# that declare large pictures, decoded in every way.
soak:
	@scripts/set-up test
	TERN_SOAK=1 $(TEST) --filter ManyTasksTests
	TERN_PICTURE_BOMBS=all $(TEST) --filter DecodingMemoryTests

# Decrypts a capture of the loopback interface with a key log of TLS. Capturing needs rights.
capture:
	@scripts/set-up capture
	TERN_CAPTURE=1 $(TEST) --filter TLSKeyLogCaptureTests

# The page of the inspector in headless Chromium, with pictures in .build/inspector-pictures.
test-inspector:
	@scripts/set-up docs
	TERN_BROWSER=1 $(TEST) --filter InspectorBrowserTests

# 1,000 sockets at a time, alone in a process: memory, threads and descriptors.
sockets:
	@scripts/set-up test
	@$(VENV)
	TERN_SOCKETS=1000 $(TEST) --filter ManySocketsTests

# make chaos N=50000 SEED=2
chaos:
	@scripts/set-up test
	TERN_CHAOS=$(if $(filter file,$(origin N)),50000,$(N)) TERN_CHAOS_SEED=$(or $(SEED),1) $(TEST) --filter ChaosTests

# make campaign N=50000 SEED=2
campaign:
	@scripts/set-up test
	TERN_CAMPAIGN=$(if $(filter file,$(origin N)),50000,$(N)) TERN_CAMPAIGN_SEED=$(or $(SEED),1) \
		$(TEST) --filter PartsCampaignTests

# make json-values N=1000000 SEED=2
json-values:
	@scripts/set-up test
	TERN_JSON_VALUES=$(if $(filter file,$(origin N)),1000000,$(N)) TERN_JSON_SEED=$(or $(SEED),1) \
		$(TEST) --filter RoundTripTests

# Without the longest tests that no number of loops concerns.
test-loops:
	@scripts/set-up test
	@$(VENV)
	TERN_THREE_LOOPS=1 $(TEST) $(if $(FILTER),,--filter 'TernTests|WireTests') --skip 'WebSocket\w*PeerTests|ManyTasksTests'

test-urlsession:
	@scripts/set-up test
	TERN_URLSESSION=1 $(TEST) --scratch-path .build/urlsession --filter URLSession

test-integrations:
	scripts/checks/integrations

# In release, since the time that the main loop has to spare is measured.
GALLERY := swift build $(PACKAGES) --package-path Examples/Gallery -c release

gallery:
	@scripts/set-up gallery
	$(GALLERY)
	scripts/gallery show $(PACKAGES_PATH)/release/gallery

gallery-web:
	@scripts/set-up gallery
	$(GALLERY)
	scripts/gallery show $(PACKAGES_PATH)/release/gallery-web $(if $(URL),'$(URL)')

gallery-programs:
	@scripts/set-up gallery
	$(GALLERY)

test-gallery: gallery-programs
	scripts/gallery test $(PACKAGES_PATH)/release/gallery

lint:
	@scripts/set-up build
	swift format lint --strict --recursive --parallel $(SWIFT_FOLDERS)
	scripts/checks/forbidden
	scripts/checks/coverage
	scripts/checks/apple
	scripts/checks/docs
	scripts/checks/articles
	scripts/checks/site
	scripts/checks/try-on-mac
	scripts/checks/language
	scripts/checks/labels
	scripts/checks/architecture
	scripts/checks/arrows
	scripts/checks/layout
	scripts/checks/public-api

# The public declarations of each module, checked in so that a change of the API shows in a diff.
api:
	@scripts/set-up build
	scripts/checks/public-api --write

format:
	swift format --in-place --recursive --parallel $(SWIFT_FOLDERS)

bench:
	@scripts/set-up bench
	Benchmarks/run
	Benchmarks/run --only typed --skip-build
	Benchmarks/run-caches
	Benchmarks/run-http-cache
	Benchmarks/run-images
	Benchmarks/run-json
	Benchmarks/run-pipeline
	Benchmarks/run-startup
	Benchmarks/run-streaming
	Benchmarks/run-transfers

# make bench-quick PEERS=c,tern
PEERS ?=

bench-quick:
	@scripts/set-up bench
	Benchmarks/run --quick small-get $(if $(PEERS),--peers '$(PEERS)')

docs:
	@scripts/set-up build
	scripts/docs

docs-preview: docs
	scripts/docs serve $(PORT)

# The links of the site, and the landing page, a search and ten random links in headless Chromium.
test-docs:
	@scripts/set-up docs
	scripts/checks/site --browser

clean:
	rm -rf .build Examples/.build Examples/Gallery/.build Examples/Server/.build Benchmarks/.build Tests/Consumers/.build \
		Integrations/*/.build
