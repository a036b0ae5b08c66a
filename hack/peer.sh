#!/usr/bin/env bash
# Installs the gateway that benchmarks measure beside Tidewaiter's into the user's cache, and prints its program. The lock file
# pins each package by checksum; no script of a package runs.
set -euo pipefail
cd "$(dirname "$0")/peer"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/tidewaiter/peer/$(cat package.json package-lock.json | sha256sum | cut -c1-16)
if [[ ! -e $folder/installed ]]; then
  if ! type -P npm >/dev/null; then
    echo "peer.sh: installing Debian's npm" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends npm >&2
  fi
  mkdir -p "$folder"
  cp package.json package-lock.json "$folder"
  (cd "$folder" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund >&2)
  touch "$folder/installed"
fi
echo "$folder/node_modules/@portkey-ai/gateway/build/start-server.js"
