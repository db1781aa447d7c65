# The only door: every tool, hook and pipeline goes through these targets. `make help` lists them.
.DEFAULT_GOAL := help
RUN := .venv/bin/
CLUSTER ?= dev
SEEDS ?= 200

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## the virtual environment, from the hash-pinned lock
	@tools/setup.sh

.PHONY: demo
demo: setup ## a real RayJob on real Ray in a real Kubernetes, through all services
	@$(RUN)raybus demo --cluster $(CLUSTER)

.PHONY: dev
dev: setup ## bus and services as processes, with one log (needs `raybus cluster up`)
	@$(RUN)raybus dev --cluster $(CLUSTER)

.PHONY: test
test: check ## everything that needs no container: check, then unit and sim beside integration (which mostly waits)
	@$(MAKE) --no-print-directory -j2 -Otarget pure integration

.PHONY: pure
pure: setup
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory sim

.PHONY: check
check: setup ## ruff, mypy --strict, import rules, sizes, generated files
	@$(RUN)ruff check .
	@$(RUN)ruff format --check -q . || { echo "run: make format"; exit 1; }
	@$(RUN)python tools/check_types.py
	@$(RUN)lint-imports
	@$(RUN)python tools/tidy.py

.PHONY: format
format: setup ## ruff format
	@$(RUN)ruff format -q . && $(RUN)ruff check --fix -q .

.PHONY: unit
unit: setup ## pure tables and golden cases without a cluster
	@$(RUN)pytest libs services cli dev tests/contract tests/golden tests/chaos tests/parity

.PHONY: sim
sim: setup ## all services in one process on virtual time: SEEDS=200, or SEED=n to see one again
	@RAYBUS_SEED=$(SEED) RAYBUS_SEEDS=$(SEEDS) $(RUN)pytest tests/sim

.PHONY: integration
integration: setup ## real nats-server, real API server, the golden comparison
	@$(RUN)pytest -n 3 --dist loadgroup tests/integration

.PHONY: e2e
e2e: setup ## RayJobs on a real node with real Ray (about 12 minutes)
	@$(RUN)pytest -vv --durations=30 --durations-min=1 tests/e2e

.PHONY: golden
golden: setup ## every recording of KubeRay, all profiles: KIND="RayCluster RayJob" for some
	@$(RUN)python tests/golden/all_profiles.py $(if $(KIND),--kind $(KIND))

.PHONY: parity
parity: setup ## KubeRay's own RayCluster tests (90 minutes): SUITE=<its folder ray-operator> ROUND=2 TESTS=<part of a name>
	@$(RUN)python tests/parity/parity.py --suite $(SUITE) $(if $(ROUND),--round $(ROUND)) $(if $(TESTS),--tests $(TESTS))

.PHONY: bench
bench: setup ## throughput on a simulated cluster: BENCH="--idle", KUBERAY_OPERATOR=<binary> to compare
	@$(RUN)python tests/bench/bench.py $(BENCH)

.PHONY: chaos
chaos: setup ## a fleet under every kind of fault: MINUTES=3 for a short run, CHAOS="--bus-servers 3" or "--long"
	@$(RUN)python tests/chaos/chaos.py $(if $(MINUTES),--minutes $(MINUTES)) $(CHAOS)

.PHONY: failover
failover: setup ## how soon others take over: FAILOVER="--bus-away 600"
	@$(RUN)python tests/chaos/failover.py $(FAILOVER)

.PHONY: crds
crds: setup ## charts/raybus-crds from the types, charts/raybus-admission and docs/admission.md from the rules
	@$(RUN)python tools/crdgen/write_crds.py
	@$(RUN)python tools/admission.py

.PHONY: diagrams
diagrams: setup ## docs/states, docs/settings.md and docs/scope.md, from the tables in the code
	@$(RUN)python tools/diagrams.py
	@$(RUN)python tools/settings_page.py
	@$(RUN)python tools/scope_page.py

.PHONY: lock
lock: setup ## requirements.lock from the pyproject files
	@tools/lock.sh
