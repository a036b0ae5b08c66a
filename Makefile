# Everything that is done with Tidewaiter's sources. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One set of flags for building and testing: the build cache is then shared between them.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false
BIN := $(CURDIR)/bin
PROGRAMS := manager gateway watchdog runner worker tidewaiter
GO_SOURCES := $(shell find api cmd controllers internal test -name '*.go' -not -name '*_test.go' 2>/dev/null) go.mod go.sum

# With KUBECONFIG set, every target uses that cluster; then IMG and TESTBED_IMG name images that it can pull.
# Without, a local cluster is used, and images are built and loaded without Docker or a registry.
include hack/cluster/cluster.mk
include hack/make/api.mk

##@ Main

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*##/ {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: install ## Show the main job end to end on a real cluster
	@# On a cluster of your own the backends of the gateway are yours: no scripted model takes their place.
	@test -n "$(KUBECONFIG)" || hack/agents.sh $(BIN) claude-code
	@go run ./test/demo --kubeconfig "$$($(KUBECONFIG_PATH))" --kubectl "$(KUBECTL)" --image "$$(cat $(BIN)/testbed.ref)" --repository $(CURDIR) \
		--record $(BIN)/demo $(if $(KUBECONFIG),,--agent "$$(cat $(BIN)/agent-claude-code.ref)")

.PHONY: test
test: ## Run every test: unit, property, fuzz, API server, cluster
	@hack/test.sh

.PHONY: deploy
deploy: install ## Install Tidewaiter on the cluster and wait until it is ready

.PHONY: undeploy
undeploy: ## End every Feature, then remove Tidewaiter and all of its objects from the cluster
	@hack/undeploy.sh

##@ Build

.PHONY: build
build: $(addprefix $(BIN)/,$(PROGRAMS)) ## Build the programs into bin/

$(BIN)/%: $(GO_SOURCES)
	@mkdir -p $(BIN)
	@hack/build.sh $@ ./cmd/$*

TESTBED := gitserver mcpagent modelprovider

$(addprefix $(BIN)/,$(TESTBED)): $(BIN)/%: $(GO_SOURCES)
	@mkdir -p $(BIN)
	@hack/build.sh $@ ./test/$*

.PHONY: images
images: build $(addprefix $(BIN)/,$(TESTBED)) ## Build the product's image and the testbed's, without Docker, and load them
	@hack/images.sh $(BIN)

.PHONY: release
release: ## Make a release in directory OUT: images, install.yaml, SBOMs, provenance and checksums of VERSION, such as 0.1.0
	@hack/release/release.sh product

.PHONY: release-agents
release-agents: ## Make a release of the agents' images in directory OUT, of VERSION; RUNTIMES="claude-code codex" makes those only
	@hack/release/release.sh agents

.PHONY: load
load: ## Load the images of release directory DIR into your kind, k3d or minikube: that of the current context, or KIND and NAME
	@hack/release/load.sh "$(or $(DIR),$(error set DIR, the directory of a release))" $(KIND) $(NAME)

.PHONY: install
install: cluster-up images
	@hack/install.sh "$$(cat $(BIN)/image.ref)"

.PHONY: agents
agents: cluster-up ## Build the images of agents and load them into the local cluster
	@hack/agents.sh $(BIN)

##@ Test

.PHONY: test-unit
test-unit: ## Unit, property and golden tests
	@hack/test.sh unit

.PHONY: test-envtest
test-envtest: ## Tests against a real API server and etcd
	@hack/test.sh envtest

.PHONY: test-e2e
test-e2e: ## Tests on a real cluster
	@hack/test.sh e2e
	@hack/test.sh undeploy

.PHONY: fuzz
fuzz: ## Draw CHECKS new samples of every property (default 5000), and run every fuzz target for FUZZTIME (default 10s)
	@hack/test.sh fuzz

.PHONY: test-long
test-long: ## The long forms of property tests: 10,000 histories, 1,000 hidden changes, 10,000 promotions, storms of processes and a siege of the gateway (an hour)
	@hack/test.sh long

.PHONY: bench
bench: ## Measure every budget beside its baseline; BENCH=capture, prepare, judge, content, events, freeze, memory, features, gateway, calls, supervision, instructions, reviews or reconciles measures those
	@hack/bench.sh

.PHONY: bench-cluster
bench-cluster: install ## Measure on a real cluster what Features cost the API server, and how they start beside bare pods
	@hack/bench.sh cluster

.PHONY: eval
eval: ## Play the labelled corpus of runs and print what supervision sees of each kind, how late, and every mistake
	@hack/eval.sh

.PHONY: verify
verify: ## Fail when something generated is stale, or formatting, vet, layers or module files are off
	@hack/verify.sh

.PHONY: clean
clean: ## Remove what was built here (the cluster's cache stays)
	@rm -rf $(BIN)
