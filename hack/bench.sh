#!/usr/bin/env bash
# Measures the budgets and prints one line for each; BENCH selects a group of them by a regular expression. With the argument "cluster" it measures those of a cluster
# on which Tidewaiter is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
mkdir -p bin
echo "# $(nproc) CPUs, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo), Linux $(uname -r | cut -d- -f1)," \
  "$(stat -f -c %T "${TMPDIR:-/tmp}"), $(go env GOVERSION), $(git --version), load $(cut -d' ' -f1 /proc/loadavg)"
if [[ ${1:-} == cluster ]]; then
  TIDEWAITER_KUBECONFIG=$(hack/cluster/run.sh kubeconfig)
  TIDEWAITER_TESTBED=$(cat bin/testbed.ref)
  export TIDEWAITER_KUBECONFIG TIDEWAITER_TESTBED
  go test -count 1 -v -timeout 40m ./test/clusterbench | sed -un '/^ratio /p; /^ .*_test.go/p'
  exit
fi
go test -c -o bin/bench.test ./test/bench
if [[ calls =~ ${BENCH:-.} ]]; then
  TIDEWAITER_PEER=$(hack/peer.sh)
  export TIDEWAITER_PEER
fi
# The lines are all that is shown of a run that passes.
TIDEWAITER_BENCH=1 bin/bench.test -test.timeout 60m -test.parallel 16 -test.run "^TestBudgets\$/${BENCH:-.}" 2>&1 |
  sed -u '/^PASS$/d; /warning: no tests to run/d'
# This one needs an API server.
if [[ reconciles =~ ${BENCH:-.} ]]; then
  KUBEBUILDER_ASSETS=$(hack/cluster/run.sh assets)
  export KUBEBUILDER_ASSETS
  TIDEWAITER_BENCH=1 go test -count 1 -v -run '^TestAStartWakesNoOthers$' ./controllers 2>&1 | sed -un '/^ratio /p; /a start costs .* more than/p'
fi
