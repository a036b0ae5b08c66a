#!/usr/bin/env bash
# Fails when what runs in the agent's pod links a Kubernetes library, links other packages than cmd/*/deps.txt lists, or
# has grown too large. With --update it writes the lists anew.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOOS=linux GOFLAGS="-trimpath -buildvcs=false"

update=${1:-}
case $update in
"" | --update) ;;
*)
  echo "usage: hack/verify-deps.sh [--update]" >&2
  exit 2
  ;;
esac

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

# The most that each program may weigh, stripped and static, in MB (1,000,000 bytes): a tenth of a pod with an API
# client, and small enough to be copied into memory for every pod.
verify() { # verify PROGRAM MEGABYTES
  local program=$1 limit=$(($2 * 1000 * 1000)) list=cmd/$1/deps.txt size
  # Packages of the standard library change with every Go release and are nobody's decision.
  go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' "./cmd/$program" | LC_ALL=C sort >"$out/deps.txt"
  if grep -E '(^|/)(k8s\.io|sigs\.k8s\.io)/|/internal/kube/|^github\.com/tidewaiter/tidewaiter/api/' "$out/deps.txt"; then
    echo "verify-deps: $program runs in the agent's pod and must not link the Kubernetes packages above" >&2
    failed=1
  fi
  if [[ $update ]]; then
    cp "$out/deps.txt" "$list"
  elif ! diff -u "$list" "$out/deps.txt"; then
    echo "verify-deps: $program links other packages than $list lists; if that is meant, run hack/verify-deps.sh --update" >&2
    failed=1
  fi
  go build -ldflags '-s -w' -o "$out/$program" "./cmd/$program"
  size=$(stat -c %s "$out/$program")
  echo "verify-deps: $program has $size bytes of at most $limit, and $(wc -l <"$out/deps.txt") packages beside the standard library"
  if ((size > limit)); then
    echo "verify-deps: $program is too large" >&2
    failed=1
  fi
}

verify runner 6
# CEL (6.5 MB), what serves HTTP (6 MB) and MCP (2.5 MB) are two thirds of the watchdog: docs/adr/0138. 0.5 MB of the rest reads JSON three
# times as fast as the standard library.
verify watchdog 23
# MCP is most of what the worker is above 7.
verify worker 10
exit "$failed"
