#!/usr/bin/env bash
# Builds the cluster's driver into the user's cache, which takes no time when nothing has changed, and runs it.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TIDEWAITER_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIDEWAITER_CACHE}/.cache}/tidewaiter}/cluster
mkdir -p "$cache"
# One for each checkout, so that two of them do not overwrite each other's.
driver=$cache/driver-$(cksum <<<"$sources" | cut -d ' ' -f 1)
CGO_ENABLED=0 GOWORK=off flock "$driver.lock" go build -C "$sources" -buildvcs=false -o "$driver" .
TIDEWAITER_CLUSTER_SOURCES=$sources exec "$driver" "$@"
