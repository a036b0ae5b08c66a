#!/usr/bin/env bash
# Runs the cluster's driver from anywhere: `go run -C` moves to the sources, so the caller's folder is handed on.
set -euo pipefail
TIDEWAITER_CALLER_DIR=$PWD exec go run -C "$(dirname "${BASH_SOURCE[0]}")" . "$@"
