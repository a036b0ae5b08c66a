#!/usr/bin/env bash
# Runs the tests: unit, envtest, e2e, undeploy, fuzz, or all of them; long is what all of them do a little of.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
what=${1:-all}
module=$(go list -m)
kubetest=$module/internal/testkit/kubetest
# Properties are tried on the same samples in every run, so that a run never fails by chance; "fuzz" draws others.
export RAPID_SEED=${RAPID_SEED:-1}
# For one package; Go's own limit is ten minutes. The longest takes ten minutes on two cores with nothing beside it, and four times as long while it gives
# way to the end-to-end tests.
limit=60m

packages() { # packages with|without: those whose tests need a real API server, or not
  go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
    awk -v want="$1" -v kubetest="$kubetest" -v e2e="$module/test/e2e" -v undeploy="$module/test/undeploy" -v bench="$module/test/clusterbench" '
      $1 == e2e || $1 == undeploy || $1 == bench { next }
      { has = $1 == kubetest; for (i = 2; i <= NF; i++) if ($i == kubetest) has = 1 }
      (want == "with") == has { print $1 }'
}

# Without symbols, a large test takes a quarter less to link. make verify vets everything, so that go test need not.
run() { # run NAME GO-TEST-ARGUMENTS…
  echo "== $1"
  shift
  local folder=() started=$SECONDS
  if [[ $1 == -C ]]; then
    folder=(-C "$2")
    shift 2
  fi
  go "${folder[@]}" test -json -vet=off -ldflags="-s -w" "$@" | go run ./hack/testsummary
  echo "in $((SECONDS - started)) s"
}

unit() {
  run "tests of the local cluster's driver" -C hack/cluster ./...
  # Go knows neither the files outside of a module nor those that scripts read, and would give an earlier result.
  run "tests of what makes releases" -C hack/release -count 1 ./...
  # It compiles Helm, which the tests of the chart on the cluster use too.
  run "the Helm chart, with Helm's own engine, schema and linter" -C hack/tools/helm -count 1 ./...
  run "tests of the linter of the API" -C hack/tools/apilint ./...
  run "alert rules, with Prometheus' own parser and engine" -C hack/tools/prometheus -count 1 ./...
  TIDEWAITER_CLIENTS=$(hack/clients.sh)
  export TIDEWAITER_CLIENTS
  run "the providers' official clients, through the gateway" -C test/sdk ./...
  run "tests of the local cluster's own daemons" -C hack/cluster/components ./netpol ./volumes
  # The ledger is tested on a real PostgreSQL.
  trap 'hack/postgres.sh down' EXIT
  TIDEWAITER_POSTGRES=$(hack/postgres.sh up)
  export TIDEWAITER_POSTGRES
  run "unit, property, golden and architecture tests" -timeout "$limit" $(packages without)
  hack/postgres.sh down
  trap - EXIT
}

envtest() {
  KUBEBUILDER_ASSETS=$(hack/cluster/run.sh assets)
  # Gateways share it. The unit tests have another one, and may run at the same time.
  trap 'hack/postgres.sh down envtest' EXIT
  TIDEWAITER_POSTGRES=$(hack/postgres.sh up envtest)
  export KUBEBUILDER_ASSETS TIDEWAITER_POSTGRES
  run "tests against a real API server" -timeout "$limit" -p 1 $(packages with)
  hack/postgres.sh down envtest
  trap - EXIT
}

long() {
  export TIDEWAITER_LONG=1
  run "hidden changes and promotions under a mutator" -count 1 -timeout 2h -v \
    -run '^(TestNoHiddenChangeIsMissed|TestOnlyWhatWasJudgedIsPromoted)$' ./internal/pod/workspace
  run "herds and storms of processes" -count 1 -v -run '^Test(Freeze|KillForkStorm|ExitCodes)' ./internal/pod/proc
  KUBEBUILDER_ASSETS=$(hack/cluster/run.sh assets)
  export KUBEBUILDER_ASSETS
  run "a gateway under siege, and with a crowd" -count 1 -timeout 1h -v -run '^(TestSiegeOfTheGateway|TestLargestOfEverything)$' ./internal/app/gateway
  run "histories" -count 1 -timeout 4h -run '^TestIncrementalEqualsFullHash$' ./internal/pod/workspace -rapid.checks=10000
}

targets() { # Every fuzz target, as "PACKAGE NAME".
  grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal |
    sed -E 's|^(.*)/[^/]+:func (.*)$|./\1 \2|' | sort -u
}

# By executions and never by time: a target that runs into its deadline on a busy machine fails without a failing input
# (golang/go#75804).
fuzz_briefly() {
  echo "== fuzzing, ${FUZZEXECUTIONS:=2000x} executions a target"
  local package target program count=0 built= started=$SECONDS
  program=$(mktemp -d)
  while read -r package target; do
    echo "-- $package $target"
    if [[ $package != "$built" ]]; then # once for all targets of a package
      go test -c -vet=off -fuzz . -o "$program/test" "$package"
      built=$package
    fi
    (cd "$package" && "$program/test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZEXECUTIONS" -test.fuzzminimizetime 10x \
      -test.fuzzcachedir "$(go env GOCACHE)/fuzz/$module/${package#./}" </dev/null)
    count=$((count + 1))
  done < <(targets)
  rm -rf "$program"
  echo "$count passed, 0 failed in $((SECONDS - started)) s"
}

# Properties on samples that no run before has drawn; a failure prints the seed that repeats it.
properties() {
  local pattern
  grep -rl --include='*_test.go' 'rapid\.Check' internal/core | xargs dirname | sort -u | while read -r package; do
    pattern=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /rapid\.Check/ { print name }' "$package"/*_test.go |
      sort -u | paste -sd '|')
    RAPID_SEED=0 RAPID_CHECKS=${CHECKS:=5000} go test -count 1 -timeout "$limit" -run "^($pattern)\$" "./$package"
  done
}

# By time. What counts is a failing input that was written, or anything else that is not just the deadline.
fuzz() {
  echo "== properties, ${CHECKS:=5000} samples each"
  properties
  echo "== fuzzing, ${FUZZTIME:=10s} a target"
  local package target output
  output=$(mktemp)
  while read -r package target; do
    echo "-- $package $target"
    if go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "$package" 2>&1 | tee "$output"; then
      continue
    fi
    if grep -q 'Failing input written to' "$output" || ! grep -q '^ *context deadline exceeded$' "$output"; then
      rm -f "$output"
      return 1
    fi
    echo "   the deadline passed during an execution; there is no failing input"
  done < <(targets)
  rm -f "$output"
}

e2e() {
  make --no-print-directory install agents
  TIDEWAITER_KUBECONFIG=$(hack/cluster/run.sh kubeconfig)
  TIDEWAITER_TESTBED=$(cat bin/testbed.ref)
  TIDEWAITER_KUBECTL="$PWD/hack/cluster/run.sh kubectl"
  TIDEWAITER_AGENTS=$PWD/bin
  if [[ -z ${KUBECONFIG:-} ]]; then
    # This machine, as the local cluster's pods see it.
    trap 'hack/postgres.sh down cluster' EXIT
    TIDEWAITER_CLUSTER_POSTGRES=$(TIDEWAITER_POSTGRES_LISTEN=10.200.0.1 hack/postgres.sh up cluster)
  fi
  export TIDEWAITER_CLUSTER_POSTGRES=${TIDEWAITER_CLUSTER_POSTGRES:?KUBECONFIG is set: set this to the URL of an empty PostgreSQL database that its pods reach}
  export TIDEWAITER_KUBECONFIG TIDEWAITER_TESTBED TIDEWAITER_KUBECTL TIDEWAITER_AGENTS
  # Most of these tests wait: one of them for a build that takes ten minutes.
  run "end-to-end tests on a real cluster" -count 1 -timeout 70m -parallel "$((2 * $(nproc) + 1))" ./test/e2e
  hack/postgres.sh down cluster
  trap - EXIT
}

# It comes after the end-to-end tests, because it removes Tidewaiter. A cluster of KUBECONFIG may have Features that are no test's.
undeploy() {
  if [[ -n ${KUBECONFIG:-} ]]; then
    return
  fi
  TIDEWAITER_KUBECONFIG=$(hack/cluster/run.sh kubeconfig)
  TIDEWAITER_TESTBED=$(cat bin/testbed.ref)
  TIDEWAITER_KUBECTL="$PWD/hack/cluster/run.sh kubectl"
  export TIDEWAITER_KUBECONFIG TIDEWAITER_TESTBED TIDEWAITER_KUBECTL
  run "the preflight, removal from the cluster, and installation from a release" -count 1 -timeout 30m ./test/undeploy
}

# Most end-to-end tests wait. What computes runs beside them, and gives way; the tests of the API server, of which one package runs at a time, run beside the
# removal from the cluster. Each part is a process: errexit would not hold in one whose status is looked at.
beside_e2e() {
  local logs status=0 computing removing
  logs=$(mktemp -d)
  { nice -n 10 hack/test.sh unit && nice -n 10 hack/test.sh fuzz-briefly; } >"$logs/computing" 2>&1 &
  computing=$!
  hack/test.sh e2e || status=$?
  hack/test.sh undeploy >"$logs/removing" 2>&1 &
  removing=$!
  hack/test.sh envtest || status=$?
  wait "$removing" || status=$?
  cat "$logs/removing"
  wait "$computing" || status=$?
  cat "$logs/computing"
  rm -rf "$logs"
  return "$status"
}

case $what in
all) beside_e2e ;;
unit | envtest | fuzz | e2e | undeploy | long) "$what" ;;
fuzz-briefly) fuzz_briefly ;;
*)
  echo "usage: $0 [all|unit|envtest|fuzz-briefly|fuzz|e2e|undeploy|long]" >&2
  exit 2
  ;;
esac
