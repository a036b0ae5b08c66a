#!/usr/bin/env bash
# Measures the budgets and prints one line for each; BENCH selects a group of them by a regular expression.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
mkdir -p bin
go test -c -o bin/bench.test ./test/bench
echo "# $(nproc) CPUs, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo), Linux $(uname -r | cut -d- -f1)," \
  "$(stat -f -c %T "${TMPDIR:-/tmp}"), $(go env GOVERSION), $(git --version), load $(cut -d' ' -f1 /proc/loadavg)"
if [[ calls =~ ${BENCH:-.} ]]; then
  TIDEWAITER_PEER=$(hack/peer.sh)
  export TIDEWAITER_PEER
fi
# The lines are all that is shown of a run that passes.
TIDEWAITER_BENCH=1 bin/bench.test -test.timeout 30m -test.parallel 16 -test.run "^TestBudgets\$/${BENCH:-.}" 2>&1 |
  sed -u '/^PASS$/d; /warning: no tests to run/d'
# This one needs an API server.
if [[ reconciles =~ ${BENCH:-.} ]]; then
  KUBEBUILDER_ASSETS=$(hack/cluster/run.sh assets)
  export KUBEBUILDER_ASSETS
  TIDEWAITER_BENCH=1 go test -count 1 -v -run '^TestAStartWakesNoOthers$' ./controllers 2>&1 | sed -un '/^ratio /p; /a start costs .* more than/p'
fi
