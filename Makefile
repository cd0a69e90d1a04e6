# Goodput: everything a person runs. `make help` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check -q
CLUSTER := $(PYTHON) -m testcluster
SOURCES := $(wildcard pyproject.toml constraints/*.txt)

# Tests that time real processes: a busy moment of a shared machine rightly voids a measurement. What fails, runs once
# more, nothing beside it, and is named twice in the output; what fails twice, fails. $(2): only for the first time.
define twice
$(BIN)/pytest -q $(1) $(2) || { echo "== once more, what failed:"; $(BIN)/pytest -q --last-failed $(1); }
endef

.PHONY: help demo test unit integration cluster-test lifecycle e2e e2e-vllm e2e-baseline e2e-vllm-cluster check lint types layers chart image cluster-up cluster-down cluster-demo bench bench-client bench-engines figures soak fuzz clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: $(VENV)/local ## Run examples/quickstart.yaml on the simulated engine: table, leader, report (no cluster, no GPU)
	$(BIN)/goodput run examples/quickstart.yaml

test: ## Everything: unit, integration, cluster and end-to-end tests on a real Kubernetes (installs what is missing)
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory integration
	@$(MAKE) --no-print-directory cluster-test
	@$(MAKE) --no-print-directory e2e
	@$(MAKE) --no-print-directory lifecycle

unit: $(VENV)/dev ## Tests of the pure parts, at most two minutes
	$(BIN)/pytest -q tests/unit

integration: $(VENV)/dev ## Tests with real processes, sockets and files
	$(call twice,-m "not alone" tests/integration,-n 2 --dist worksteal)
	$(call twice,-m alone tests/integration)

cluster-test: $(VENV)/dev image ## Tests against the real API server, kubelet and S3 server of the test cluster
	$(BIN)/pytest -q -m "not lifecycle" --ignore tests/cluster/e2e tests/cluster

e2e: $(VENV)/dev image ## Whole sweeps in the test cluster, and every fault that must not lose a result
	$(call twice,-m "not vllm" tests/cluster/e2e)

e2e-vllm: $(VENV)/dev ## A real vLLM on CPU: by the local driver, and beside `vllm bench serve` (15 minutes, 4 GiB of disk)
	$(BIN)/pytest -q -s tests/vllm/test_local_sweep.py tests/vllm/test_bench_serve.py

e2e-baseline: $(VENV)/dev ## The Transformers baseline beside a real vLLM on CPU (30 minutes)
	$(BIN)/pytest -q -s tests/vllm/test_baseline.py tests/vllm/test_baseline_sweep.py

e2e-vllm-cluster: $(VENV)/dev image ## A real vLLM on CPU in restricted pods of the test cluster, with a kept compile cache
	$(CLUSTER) images --vllm
	$(BIN)/pytest -q -s -m vllm tests/cluster/e2e

lifecycle: $(VENV)/dev ## Stop, kill and restart the test cluster itself
	$(BIN)/pytest -q -m lifecycle tests/cluster

check: lint types layers unit ## Lint, types, import layers, unit tests

lint: $(VENV)/dev ## ruff
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .

types: $(VENV)/dev ## mypy, strict, tests included
	$(BIN)/mypy

layers: $(VENV)/dev ## Import layers
	$(BIN)/lint-imports --no-cache

chart: cluster-up ## helm lint and rendering of the chart with every switch
	$(BIN)/pytest -q tests/cluster/test_chart.py

image: cluster-up ## Build the images and load them into the test cluster
	$(CLUSTER) images

cluster-up: ## A real one-node Kubernetes and an S3 server on this machine (root, Debian 12), or the one of KUBECONFIG
	$(CLUSTER) up

cluster-down: ## Stop it and leave nothing behind
	$(CLUSTER) down

cluster-demo: $(VENV)/dev image ## Chart, operator, a sweep by kubectl, tables read back from the S3 server
	$(BIN)/python examples/cluster_demo.py

bench: $(VENV)/dev ## Speed, printed as ratios within one run (the operator's times need `make cluster-demo` first)
	$(BIN)/python bench/grid.py
	$(BIN)/python -m bench.client.events
	$(BIN)/python bench/operator_times.py

bench-client: $(VENV)/dev ## The load client beside its peers, one server whose truth is known: 25 minutes, or QUICK=1 (writes docs/client-comparison.md)
	$(BIN)/python -m bench.client --write $(if $(QUICK),--quick)

figures: $(VENV)/local ## The two figures of the teaching models, simulated in virtual time (writes docs/figures)
	rm -rf results/figures
	$(BIN)/goodput simulate examples/figures/latency-throughput.yaml --out results/figures
	$(BIN)/goodput simulate examples/figures/chunk-budget.yaml --out results/figures
	$(BIN)/python examples/figures/draw.py results/figures docs/figures

bench-engines: $(VENV)/dev ## The simulated engine: virtual time, memory, a published simulator beside it, 1,000 streams over HTTP
	$(BIN)/python -m bench.engines

soak: $(VENV)/dev ## The load client for 10 minutes at 1,000 streams, and a million requests parsed and committed (22 GB of disk)
	$(BIN)/python -m bench.soak

fuzz: $(VENV)/dev ## A million damaged answers through the load client: nothing crashes, no failure looks like a success (20 minutes of CPU)
	$(BIN)/python -m bench.fuzz --mutants 1000000 --processes 2

clean: ## Remove the environment and local results
	rm -rf $(VENV) .goodput results

$(VENV)/local: $(SOURCES)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --no-compile --require-hashes -r constraints/local.txt
	$(PIP) install --no-compile --require-hashes -r constraints/build.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/dev: $(VENV)/local
	$(PIP) install --no-compile --require-hashes -r constraints/dev.txt
	touch $@
