#!/usr/bin/env bash
# Runs the tests: unit, envtest, e2e, fuzz, or all of them; long is what all of them do a little of.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
what=${1:-all}
module=$(go list -m)
kubetest=$module/internal/testkit/kubetest

packages() { # packages with|without: those whose tests need a real API server, or not
  go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
    awk -v want="$1" -v kubetest="$kubetest" -v e2e="$module/test/e2e" '
      $1 == e2e { next }
      { has = $1 == kubetest; for (i = 2; i <= NF; i++) if ($i == kubetest) has = 1 }
      (want == "with") == has { print $1 }'
}

run() { # run NAME GO-TEST-ARGUMENTS…
  echo "== $1"
  shift
  local folder=()
  if [[ $1 == -C ]]; then
    folder=(-C "$2")
    shift 2
  fi
  go "${folder[@]}" test -json "$@" | go run ./hack/testsummary
}

unit() {
  run "unit, property, golden and architecture tests" $(packages without)
  run "tests of the local cluster's driver" -C hack/cluster ./...
  run "alert rules, with Prometheus' own parser and engine" -C hack/tools/prometheus ./...
  # Vet would type-check all of Kubernetes here.
  run "tests of the local cluster's own daemons" -C hack/cluster/components -vet=off ./netpol ./volumes
}

envtest() {
  KUBEBUILDER_ASSETS=$(hack/cluster/run.sh assets)
  export KUBEBUILDER_ASSETS
  run "tests against a real API server" -p 1 $(packages with)
}

long() {
  export TIDEWAITER_LONG=1
  run "hidden changes and promotions under a mutator" -count 1 -timeout 2h -v \
    -run '^(TestNoHiddenChangeIsMissed|TestOnlyWhatWasJudgedIsPromoted)$' ./internal/host/workspace
  run "histories" -count 1 -timeout 4h -run '^TestIncrementalEqualsFullHash$' ./internal/host/workspace -rapid.checks=10000
}

fuzz() {
  echo "== fuzzing, ${FUZZTIME:=10s} a target"
  local package target
  while read -r package target; do
    echo "-- $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "$package"
  done < <(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal | sort -u | awk '{print $2}' |
    while read -r t; do grep -rlE --include='*_test.go' "^func $t\(" internal | while read -r f; do echo "./$(dirname "$f") $t"; done; done | sort -u)
}

e2e() {
  make --no-print-directory install
  TIDEWAITER_KUBECONFIG=$(hack/cluster/run.sh kubeconfig)
  TIDEWAITER_TESTBED=$(cat bin/testbed.ref)
  TIDEWAITER_KUBECTL="$PWD/hack/cluster/run.sh kubectl"
  export TIDEWAITER_KUBECONFIG TIDEWAITER_TESTBED TIDEWAITER_KUBECTL
  run "end-to-end tests on a real cluster" -count 1 -timeout 40m ./test/e2e
}

case $what in
all)
  unit
  envtest
  FUZZTIME=${FUZZTIME:-5s} fuzz
  e2e
  ;;
unit | envtest | fuzz | e2e | long) "$what" ;;
*)
  echo "usage: $0 [all|unit|envtest|fuzz|e2e|long]" >&2
  exit 2
  ;;
esac
