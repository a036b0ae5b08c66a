#!/usr/bin/env bash
# Fails when something generated is stale, or when formatting, vet, layers, module files or sizes are off.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { echo "verify: $*"; }
state() { git ls-files -z --cached --others --exclude-standard | xargs -0 sha256sum 2>/dev/null | sha256sum; }

step "formatting"
unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [[ -n $unformatted ]]; then
  echo "gofmt would change:" "$unformatted" >&2
  exit 1
fi

step "generated files and module files"
before=$(state)
make --no-print-directory generate
go mod tidy
(cd hack/tools && go mod tidy)
(cd hack/tools/golangci-lint && go mod tidy)
(cd hack/tools/helm && go mod tidy)
(cd hack/tools/apilint && go mod tidy)
(cd hack/release && go mod tidy)
(cd hack/tools/prometheus && go mod tidy)
(cd test/sdk && go mod tidy)
if [[ $before != "$(state)" ]]; then
  echo "generated files were stale; they are fresh now, commit them:" >&2
  git status --short >&2
  exit 1
fi

step "vet"
go vet ./...
go vet -C hack/release ./...
go vet -C hack/tools/apilint ./...
go vet -C test/sdk ./...
step "architecture"
go test -count 1 ./internal/arch
step "images of agents"
for image in images/*/; do
  version=$(sed -n 's/^VERSION=//p' "$image/versions.env")
  if ! grep -qxF "ARG VERSION=$version" "$image/Dockerfile" || ! grep -qF " $version " docs/reference/agents.md; then
    echo "$image: Dockerfile, versions.env and docs/reference/agents.md must name the same version" >&2
    exit 1
  fi
done
step "what runs in the agent's pod"
hack/verify-deps.sh
step "lint"
make --no-print-directory lint
step "conventions of the API"
make --no-print-directory lint-api
step "known vulnerabilities"
go run ./hack/vulncheck
