# Targets of the local cluster; included by the top-level Makefile. With KUBECONFIG set they use that cluster instead.
CLUSTER := hack/cluster/run.sh
# Shell commands, for recipes: the path of the kubeconfig, and kubectl of the cluster's version.
KUBECONFIG_PATH := $(CLUSTER) kubeconfig
KUBECTL := $(CLUSTER) kubectl

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Bring up a local Kubernetes (built from source the first time), or check the one of KUBECONFIG
	@$(CLUSTER) up >/dev/null

.PHONY: cluster-down
cluster-down: ## Take the local cluster down without a trace
	@$(CLUSTER) down

.PHONY: cluster-status
cluster-status: ## Say how the cluster is
	@$(CLUSTER) status

.PHONY: cluster-load-image
cluster-load-image: ## Make the image archives in ARCHIVE known to the local cluster
	@$(CLUSTER) load-image $(ARCHIVE)

.PHONY: cluster-verify
cluster-verify: cluster-up ## Check on the local cluster that it does what it promises
	@$(CLUSTER) verify

.PHONY: envtest-assets
envtest-assets: ## Build etcd, kube-apiserver and kubectl for envtest and print their folder
	@$(CLUSTER) assets
