#!/usr/bin/env bash
# Prints a folder of HTTP clients for test/sdk: undici as npm publishes it, by version and checksum, in undici/. What else is asked
# there is installed from Debian's packages where it is missing: curl, Python and Node.js.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${TIDEWAITER_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIDEWAITER_CACHE}/.cache}/tidewaiter}/clients
VERSION=6.29.1 # the last one for Node.js 18, which Debian 12 has
SHA512=12f46552dfd0a8012f5dd41e44c6147f0390b1fce90f3b7292b1b6a3018413fac1381a18bfdb85dfd673b0d0e1e254c51e14ebd973998ca91882e783d7666618

missing=()
for program in curl:curl python3:python3 node:nodejs npm:npm; do
  type -P "${program%:*}" >/dev/null || missing+=("${program#*:}")
done
if ((${#missing[@]} > 0)); then
  echo "clients.sh: installing Debian's ${missing[*]}" >&2
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2
fi

folder=$cache/$VERSION
if [[ ! -d $folder ]]; then
  mkdir -p "$cache"
  download=$(mktemp -d "$cache/download-XXXXXX")
  (cd "$download" && npm pack --silent "undici@$VERSION" >/dev/null)
  echo "$SHA512  $(ls "$download"/*.tgz)" | sha512sum --check --quiet - >&2
  tar -xzf "$download"/*.tgz -C "$download"
  mv "$download/package" "$download/undici"
  mv "$download" "$folder"
fi
echo "$folder"
