# What is generated from the API types, and what is checked about them. Tools are pinned in hack/tools/go.mod.
TOOL := go tool -modfile=$(CURDIR)/hack/tools/go.mod
# The linter has hundreds of dependencies that would clash with those of the other tools.
GOLANGCI_LINT := go tool -modfile=$(CURDIR)/hack/tools/golangci-lint/go.mod golangci-lint

##@ API

.PHONY: generate
generate: reasons manifests install-yaml chart secret-rules reference ## Regenerate everything that is generated (always the same from the same sources)

# First: what is generated from here on is linked with packages that use these names.
.PHONY: reasons
reasons: ## Regenerate the core's names of conditions and reasons from those of the API
	@go run ./hack/gen/reasons

.PHONY: manifests
manifests: ## Regenerate CRDs, deep copies, apply configurations and the manager's role
	@$(TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt crd applyconfiguration:headerFile=hack/boilerplate.go.txt \
		paths=./api/v1alpha1 output:crd:artifacts:config=config/crd/bases
	@$(TOOL) controller-gen rbac:roleName=tidewaiter-manager,fileName=manager_role.yaml \
		paths='./controllers/...;./internal/kube/...;./internal/app/manager/...' output:rbac:artifacts:config=config/rbac

.PHONY: install-yaml
install-yaml: ## Build dist/install.yaml from config/default
	@mkdir -p dist
	@$(TOOL) kustomize build config/default > dist/install.yaml.new
	@mv dist/install.yaml.new dist/install.yaml

.PHONY: chart
chart: install-yaml ## Regenerate the Helm chart and the page of its values from config
	@go run ./hack/gen/chart

.PHONY: secret-rules
secret-rules: ## Regenerate the rules for secrets from those of gitleaks, in the version that hack/gen/secrets names
	@go run ./hack/gen/secrets

.PHONY: reference
reference: ## Regenerate the pages of docs/reference that are made from code
	@go run ./hack/gen/reference

.PHONY: lint
lint: ## Run golangci-lint as .golangci.yml says
	@$(GOLANGCI_LINT) run

.PHONY: lint-api
lint-api: ## Check the API types with kube-api-linter as hack/tools/apilint/config.yaml says
	@go -C hack/tools/apilint run . -config config.yaml -dir $(CURDIR) ./api/v1alpha1
