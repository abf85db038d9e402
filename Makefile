# One entry point for every task. Each target prepares what it needs by itself.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= auto
PORT    ?= 8000
# Extra arguments: `make test ARGS="-k softmax"`, `make serve ARGS="--device cpu"`.
ARGS    ?=
# Folders of tests that `make test` runs whole: `make test ROOMS="store cluster"`.
ROOMS   ?=
# How long `make fuzz` goes on.
SECONDS ?= 600
# `make bench PEERS=1` installs PyTorch (CPU), JAX and HIPS autograd beside the engine, in an environment of their own.
PEERS   ?=
# How many `make simulation` tries.
HISTORIES ?= 10000
# Where `make pin` asks for the base image; empty: where engines do.
REGISTRY ?=

BIN := $(VENV)/bin
API := build/api
OBSERVATORY := build/observatory
BENCH := $(if $(PEERS),build/peers,$(VENV))
PLAYGROUND := build/playground
BRIDGES := build/bridges
IMPORTERS := build/importers
FACADES := build/facades
CLUSTER := build/cluster
DOCS := build/docs
NPM := $(shell command -v npm)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Always from here: it is in no index, and nothing depends on it by its name.
CLIENT := --editable clients/python

# For the images' Python. The hashes are those of all files of a version, so of every architecture; no index is recorded.
COMPILE = $(BIN)/uv pip compile --quiet --upgrade --generate-hashes --python-version 3.11 --python-platform linux \
  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'
# Installed in every image: traces, state in S3, servers that share a state.
IMAGE_EXTRAS := --extra otel --extra cluster

# Each process begins with a stretch of its own, and takes from another's when it is done: so what the tests of a file
# share, such as a started server, is made once and not once in every process.
TESTS := -q -n $(WORKERS) --dist worksteal

# Tests and small requests gain nothing from several BLAS threads on top of several processes.
export OPENBLAS_NUM_THREADS ?= 1

# What people have written in these folders.
files = $(shell find $(1) -type f -not -path '*/__pycache__/*')

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test test-all test-fast test-printers test-bounds fuzz guarantees chaos soak simulation bench-service bench-cluster check generate format coverage mutants learn cluster-test cluster-demo cluster-chaos test-clients test-generated test-bridges test-importers test-facades clients-package bench docs lint-api browser-test container-check lock pin runner test-gpu card-report clean playground drawings gallery

help: ## explain every target (this text)
	@echo "gradserve: send a computation graph, get gradients back."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Variables: PYTHON=$(PYTHON)  VENV=$(VENV)  PORT=$(PORT)  WORKERS=$(WORKERS)  SECONDS=$(SECONDS)  ARGS=..."

setup: $(VENV)/.dev ## make the virtual environment with everything for development

demo: $(VENV)/.demo ## start a server, train a digits classifier through it, stop it
	@$(BIN)/python examples/digits.py $(ARGS)

serve: $(VENV)/.demo ## serve on PORT until Ctrl-C
	@$(BIN)/gradserve serve --port $(PORT) $(ARGS)

test: $(VENV)/.dev ## run the tests of five minutes on two cores (no GPU needed); ROOMS="store cluster" adds all tests of some rooms
	$(BIN)/python -m pytest $(TESTS) --rooms '$(ROOMS)' $(ARGS)

test-all: $(VENV)/.dev ## run all tests with all cases; before a release
	$(BIN)/python -m pytest $(TESTS) --all $(ARGS)

test-fast: $(VENV)/.dev ## run a sample of the quick tests, in under a minute on two cores
	$(BIN)/python -m pytest $(TESTS) --fast $(ARGS)

test-printers: $(VENV)/.dev ## run the engine's tests with every plan fused: by NumPy and LLVM, slow tests too, and by C where there is a compiler
	for printer in numpy llvm $$(command -v gcc >/dev/null || command -v clang >/dev/null && echo c); do \
	  echo "$$printer:"; slow=--slow; test $$printer != c || slow=; \
	  GRADSERVE_TEST_PRINTER=$$printer $(BIN)/python -m pytest $(TESTS) $$slow tests/contract tests/engine $(ARGS) || exit 1; done

fuzz: $(VENV)/.dev ## run random graphs every way there is, and compare; SECONDS=3600 for an hour, ARGS="--seed 1"
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

test-bounds: $(VENV)/.dev ## compare every access of a corpus of kernels with its buffer, beside pages that cannot be read
	$(BIN)/python -m pytest $(TESTS) --all tests/bounds $(ARGS)

guarantees: $(VENV)/.dev ## attack started servers, one test after the other, and write docs/guarantees.md; an hour
	$(BIN)/python -m pytest -q -p no:xdist --guarantees tests/guarantees $(ARGS); status=$$?; \
	  $(BIN)/python -m scripts.guarantees_page && exit $$status

chaos: $(VENV)/.dev ## kill workers during disconnects, bad input and good traffic, for ten minutes; ARGS="--seconds 60" for less
	$(BIN)/python -m tests.guarantees.chaos $(ARGS)

soak: $(VENV)/.dev ## a million mixed requests, and memory that must not grow; ARGS="--requests 100000" for less
	$(BIN)/python -m tests.guarantees.soak $(ARGS)

simulation: $(VENV)/.dev ## histories of servers at one place, on virtual time, HISTORIES=10000 of them; and without each rule
	$(BIN)/python -m tests.simulation $(HISTORIES) $(ARGS)

cluster-test: $(CLUSTER)/.installed ## test ingress, fleet and manifests, with Ray in an environment of its own; as root on Linux, for namespaces
	@command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || $(MAKE) --no-print-directory haproxy
	$(CLUSTER)/bin/python -m pytest $(TESTS) --slow tests/service/cluster/ingress tests/service/cluster/fleet tests/service/admin/test_ingress.py \
	  tests/service/cluster tests/cluster_chaos \
	  tests/deploy/test_cluster.py tests/deploy/test_kubernetes.py $(ARGS)

cluster-demo: $(CLUSTER)/.installed ## train on two servers under Ray while one of them is killed, and compare with one server; as root on Linux
	@command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || $(MAKE) --no-print-directory haproxy
	@$(CLUSTER)/bin/python -m tests.service.cluster.fleet.cluster_demo

cluster-chaos: $(CLUSTER)/.installed ## inject faults into servers that share state, their network and store; ARGS="--seconds 300"; as root on Linux
	@command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || $(MAKE) --no-print-directory haproxy
	$(CLUSTER)/bin/python -m tests.cluster_chaos $(ARGS); status=$$?; \
	  $(CLUSTER)/bin/python -m scripts.cluster_chaos_page && exit $$status

check: $(VENV)/.dev ## lint, formatting, types and wording
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m scripts.phrases

generate: $(VENV)/.dev $(if $(NPM),$(PLAYGROUND)/.installed) ## make every machine-made file, those of make docs, runner, drawings and playground too; ARGS="--check" says whether they are current
	$(BIN)/python -m scripts.generate $(if $(NPM),--packages $(PLAYGROUND)) $(ARGS)

runner: $(VENV)/.dev ## make the runner's LLVM IR of its C source; needs clang 19
	$(BIN)/python -m scripts.runner_ir

format: $(VENV)/.dev ## format the code and repair what the linter can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: $(VENV)/.dev ## run all tests; fail where they leave too many branches untried
	$(BIN)/python -m pytest $(TESTS) --slow --cov --cov-report=term $(ARGS)

mutants: $(VENV)/.dev ## make small mistakes in the code, one at a time, and count those that the tests notice
	$(BIN)/python -m scripts.mutants $(ARGS)

learn: $(VENV)/.dev ## count how much there is to learn: files, splinters, imports, and the files that a request passes
	$(BIN)/python -m scripts.learn

bench: $(BENCH)/.dev ## time gradients beside the peers that are installed, and calls to a server; PEERS=1 installs peers
	$(BENCH)/bin/python -m benchmarks.report $(ARGS)
	$(BENCH)/bin/python -m benchmarks.planning
	$(BENCH)/bin/python -m benchmarks.page
	$(BENCH)/bin/python -m benchmarks.served

bench-service: $(VENV)/.dev $(if $(PEERS),build/service-peers/.installed) ## rates and times of a server under load; PEERS=1 beside other servers
	@command -v wrk >/dev/null || $(MAKE) --no-print-directory wrk
	$(BIN)/python -m benchmarks.service $(ARGS)
	$(BIN)/python -m benchmarks.service.page

bench-cluster: $(CLUSTER)/.installed ## servers of a cluster, HAProxy and Ray Serve beside one server; as root on Linux
	@command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || $(MAKE) --no-print-directory haproxy
	@command -v wrk >/dev/null || $(MAKE) --no-print-directory wrk
	$(CLUSTER)/bin/python -m benchmarks.cluster $(ARGS)
	$(CLUSTER)/bin/python -m benchmarks.cluster.page

docs: $(DOCS)/site ## write the pages that come from the code, and the site in build/site, where what they are made of has changed

# A file of each says when it was made: what the tables measure takes minutes of a core.
$(DOCS)/pages: $(call files,engine schemas service scripts clients/printers clients/python/gradserve_client examples) $(wildcard clients/*.py) \
  docs/porting_notes.toml $(call files,benchmarks/card) $(wildcard docs/card_report.json) | $(VENV)/.dev
	$(BIN)/python -m clients.ops
	$(BIN)/python -m scripts.build_docs
	$(BIN)/python -m benchmarks.card.page
	@mkdir -p $(@D) && touch $@

$(DOCS)/passes: $(call files,engine tests/passes tests/contract benchmarks/problems) scripts/passes_table.py | $(DOCS)/pages
	$(BIN)/python -m scripts.passes_table
	@touch $@

$(DOCS)/accuracy: $(call files,engine/ir engine/codegen/native engine/codegen/kernels engine/codegen/functions) tests/engine/codegen/kernels/accuracy.py \
  scripts/accuracy_table.py | $(DOCS)/pages
	$(BIN)/python -m scripts.accuracy_table
	@touch $@

$(DOCS)/memory: $(call files,engine) scripts/memory_picture.py | $(DOCS)/pages
	$(BIN)/python -m scripts.memory_picture
	@touch $@

$(DOCS)/site: $(DOCS)/pages $(DOCS)/passes $(DOCS)/accuracy $(DOCS)/memory $(call files,docs examples) $(wildcard *.md)
	$(BIN)/python -m scripts.website
	@touch $@

playground: $(PLAYGROUND)/.installed ## build the page at / of a server anew; ARGS="--check" says whether it is current; needs Node 20.6 or newer
	$(PLAYGROUND)/node_modules/.bin/tsc -p playground
	node playground/build.mjs $(PLAYGROUND) $(ARGS)

drawings: $(VENV)/.dev $(PLAYGROUND)/.installed ## draw the graphs of the docs and the gallery anew, by the playground's module; needs Node 20.6 or newer
	$(BIN)/python -m scripts.drawings $(PLAYGROUND)

gallery: $(IMPORTERS)/.installed ## import the gallery's models anew, in the importers' environment
	$(IMPORTERS)/bin/python -m clients.gallery $(ARGS)

test-clients: $(VENV)/.dev ## build and test our clients, hold them to the same cases, compare the playground, try generated clients; ARGS="--only go", or "--ours"
	$(BIN)/python -m clients.run $(ARGS)

test-generated: $(VENV)/.dev ## have generators make clients of the OpenAPI documents, compile them, and call a server by each
	$(BIN)/python -m clients.generators.run $(ARGS)

test-bridges: $(BRIDGES)/.installed ## test the Python client's bridges with PyTorch, JAX and SciPy, in an environment of their own
	$(BRIDGES)/bin/python -m pytest $(TESTS) clients/python/tests/bridges $(ARGS)

test-importers: $(IMPORTERS)/.installed ## test the Python client's importers, and hold them to ONNX's node tests, in an environment of their own
	$(IMPORTERS)/bin/python -m pytest $(TESTS) clients/python/tests/importing clients/python/tests/importers clients/python/tests/programs $(ARGS)
	$(IMPORTERS)/bin/python -m clients.python.tests.onnx_nodes --check
	$(IMPORTERS)/bin/python -m clients.python.tests.torch_ops --check

test-facades: $(FACADES)/.installed ## ask a server with all facades by the protocols' own clients, in an environment of their own; ARGS="-k malformed"
	$(FACADES)/bin/python -m pytest $(TESTS) --slow tests/facades $(ARGS)

clients-package: $(VENV)/.dev ## make a package of each client, and use it in a project of its own; ARGS="go rust" for some
	$(BIN)/python -m clients.packages.run $(ARGS)

lint-api: $(VENV)/.dev $(API)/.installed ## lint the four OpenAPI documents; needs Node 20.17 or newer, so not part of check
	$(BIN)/python -m scripts.write_openapi $(API)
	$(API)/node_modules/.bin/spectral lint --ruleset scripts/lint_api/spectral.yaml --fail-severity hint \
	  $(API)/openapi.json $(API)/openapi-3.0.json $(API)/openapi-sdk.json $(API)/openapi-sdk-3.0.json

browser-test: $(VENV)/.dev $(OBSERVATORY)/.installed $(PLAYGROUND)/.installed ## open /docs, the playground, the site and a page with the TypeScript client in headless Chromium, offline, and grade pages; needs Node 20.6 or newer
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || $(MAKE) --no-print-directory chromium
	npm run --silent --prefix clients/typescript build
	$(BIN)/python -m pytest -q --slow tests/browser $(ARGS)

container-check: $(VENV)/.dev ## build the cpu image's steps in a Debian root and ask it for a gradient; as root, on Linux
	$(BIN)/python -m deploy.check --store build/container $(ARGS)

lock: $(VENV)/bin/python ## write deploy/lock anew: what the images are made of, by version and hash
	@$(PIP) uv
	@mkdir -p deploy/lock
	$(COMPILE) $(IMAGE_EXTRAS) --output-file deploy/lock/cpu.txt pyproject.toml
	for cuda in 12 13; do echo "cupy-cuda$${cuda}x[ctk]" | $(COMPILE) --constraints deploy/lock/cpu.txt \
	  $(IMAGE_EXTRAS) --extra cuda$$cuda --output-file deploy/lock/cuda$$cuda.txt pyproject.toml - || exit 1; \
	  echo "cupy-cuda$${cuda}x[ctk]" | $(COMPILE) --constraints deploy/lock/cuda$$cuda.txt \
	  $(IMAGE_EXTRAS) --extra cudnn$$cuda --output-file deploy/lock/cudnn$$cuda.txt pyproject.toml - || exit 1; done
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' \
	  | $(COMPILE) --output-file deploy/lock/build.txt -

pin: $(VENV)/.demo ## write the digest of the base image into the Dockerfile, asked of its registry (REGISTRY=host)
	@$(BIN)/python -m deploy.pin --registry '$(REGISTRY)'

FOR_CARD = $(PYTHON) -c 'import numpy, pytest, hypothesis' 2>/dev/null || \
  { echo 'this needs numpy, pytest and hypothesis, and CuPy, in $(PYTHON): name an interpreter that has them, PYTHON=…'; exit 1; }

# For a machine with a GPU: the interpreter of the system, with numpy, cupy, pytest and hypothesis in it. Where it has
# pytest-benchmark, too, that would warn of xdist's processes, and a warning is an error here.
test-gpu: ## run the engine's tests on the GPU, with PYTHON itself (numpy, cupy, pytest, hypothesis)
	@$(FOR_CARD)
	GRADSERVE_TEST_DEVICE=cuda $(PYTHON) -m pytest -q -p no:cacheprovider -p no:benchmark --slow tests/engine tests/contract $(ARGS)

card-report: ## test and time the engine on the GPU, with PYTHON itself: MINUTES=20 for all phases, or PHASE=bench for one; `make docs` writes it into docs/gpu.md
	@$(FOR_CARD)
	$(PYTHON) -m benchmarks.card --minutes $(or $(MINUTES),20) --phase '$(PHASE)'

build/peers/.dev: pyproject.toml clients/python/pyproject.toml benchmarks/peers.txt
	$(PYTHON) -m venv build/peers
	build/peers/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[demo]' $(CLIENT) -r benchmarks/peers.txt
	@touch $@

build/service-peers/.installed: benchmarks/service/peers.txt
	$(PYTHON) -m venv build/service-peers
	build/service-peers/bin/python -m pip --disable-pip-version-check install --quiet -r benchmarks/service/peers.txt
	@touch $@

$(BRIDGES)/.installed: pyproject.toml clients/python/pyproject.toml clients/python/bridges.txt
	$(PYTHON) -m venv $(BRIDGES)
	$(BRIDGES)/bin/python -m pip --disable-pip-version-check install --quiet --editable . $(CLIENT)'[torch,jax,scipy]' \
	  -r clients/python/bridges.txt
	@touch $@

$(IMPORTERS)/.installed: pyproject.toml clients/python/pyproject.toml clients/python/importers.txt
	$(PYTHON) -m venv $(IMPORTERS)
	$(IMPORTERS)/bin/python -m pip --disable-pip-version-check install --quiet --editable . $(CLIENT)'[onnx,torch,jax]' \
	  -r clients/python/importers.txt
	@touch $@

$(FACADES)/.installed: pyproject.toml tests/facades/clients.txt
	$(PYTHON) -m venv $(FACADES)
	$(FACADES)/bin/python -m pip --disable-pip-version-check install --quiet --editable . -r tests/facades/clients.txt
	@touch $@

$(CLUSTER)/.installed: pyproject.toml clients/python/pyproject.toml
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[dev,demo,ray]' $(CLIENT)
	@touch $@

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

$(API)/.installed: scripts/lint_api/package.json
	@command -v npm >/dev/null || { echo "make lint-api needs Node 20.17 or newer, with npm"; exit 1; }
	@mkdir -p $(API) && cp $< $(API)
	npm install --prefix $(API) --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(PLAYGROUND)/.installed: playground/package.json
	@command -v npm >/dev/null || { echo "make playground needs Node 20.6 or newer, with npm"; exit 1; }
	@mkdir -p $(PLAYGROUND) && cp $< $(PLAYGROUND)
	npm install --prefix $(PLAYGROUND) --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(OBSERVATORY)/.installed: scripts/observatory/package.json scripts/observatory/grade.mjs
	@command -v npm >/dev/null || { echo "make browser-test needs Node 20.6 or newer, with npm"; exit 1; }
	@mkdir -p $(OBSERVATORY) && cp $^ $(OBSERVATORY)
	npm install --prefix $(OBSERVATORY) --no-package-lock --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# Installs Debian's packages of these names, or says what is missing where it may not.
define install
	@command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] || { echo "$(2)"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $(1)
endef

.PHONY: wrk
wrk:
	$(call install,wrk,make bench-service needs wrk; on Debian: apt-get install wrk)

.PHONY: promtool
promtool: build/prometheus/usr/bin/promtool

# Unpacked and not installed: Debian's package starts a server, and only its tool is wanted.
build/prometheus/usr/bin/promtool:
	@command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null \
	  || { echo "promtool comes with Prometheus: https://prometheus.io/download"; exit 1; }
	@mkdir -p build/prometheus
	cd build/prometheus && apt-get download prometheus && dpkg-deb --extract prometheus_*.deb . && rm prometheus_*.deb
	@touch $@

.PHONY: chromium
chromium:
	$(call install,chromium chromium-driver,make browser-test needs Chromium and chromedriver; on Debian: apt-get install chromium chromium-driver)

.PHONY: haproxy
haproxy:
	$(call install,haproxy,the ingress needs HAProxy 2.6 or newer; on Debian: apt-get install haproxy; elsewhere: pip install 'gradserve[cluster]')

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "gradserve needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml clients/python/pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[demo]' $(CLIENT)
	@touch $@

$(VENV)/.dev: pyproject.toml clients/python/pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[dev]' $(CLIENT)
	@touch $@ $(VENV)/.demo
