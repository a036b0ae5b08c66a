#!/usr/bin/env bash
# Builds the archive of the image of a runtime's agents, without Docker: agent.sh ARCHITECTURE RUNTIME VERSIONS NAME ARCHIVE [OPTION…]. The program is as
# npm publishes it, and Node.js where the program is a script, by version and checksum, on Debian packages. VERSIONS names images/RUNTIME/VERSIONS.env;
# options are those of `run.sh image`. ARCHIVE.npm.json lists the npm packages.
set -euo pipefail
architecture=$1 runtime=$2 versions=$3 name=$4 archive=$5
cd "$(dirname "$0")/.."
cache=${TIDEWAITER_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIDEWAITER_CACHE}/.cache}/tidewaiter}/agents
mkdir -p "$cache"

npm() { # as installed here, or Debian's
  if ! type -P npm >/dev/null; then
    echo "  Installing npm from Debian's packages" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends npm >/dev/null
  fi
  command npm "$@"
}

list=()
fetch() { # fetch PACKAGE@VERSION SHA512: sets folder to that of the unpacked package
  local kept=$cache/${1//\//-} download
  if [[ ! -d $kept ]]; then
    echo "  Downloading $1" >&2
    download=$(mktemp -d "$cache/download-XXXXXX")
    (cd "$download" && npm pack --silent "$1" >/dev/null)
    echo "$2  $(ls "$download"/*.tgz)" | sha512sum --check --quiet - >&2
    mkdir "$download/unpacked"
    tar -xzf "$download"/*.tgz -C "$download/unpacked"
    mv "$download/unpacked" "$kept"
    rm -rf "$download"
  fi
  list+=("{\"name\": \"${1%@*}\", \"version\": \"${1##*@}\", \"sha512\": \"$2\"}")
  folder=$kept/package
}

SCRIPT='' files=() packages=bash,dash,coreutils,findutils,sed,grep,git,procps,ca-certificates
# shellcheck source=/dev/null
source "images/$runtime/$versions.env"
package=PACKAGE_$architecture sum=SHA512_$architecture contents=FILES_$architecture modules=MODULES_$architecture
if [[ -z ${!package:-} ]]; then
  echo "agents: $runtime $VERSION is not published for $architecture" >&2
  exit 1
fi
fetch "${!package}" "${!sum}"
for file in ${!contents}; do files+=(--file "$folder/$file"); done

if [[ $SCRIPT ]]; then
  # shellcheck source=/dev/null
  source images/node.env
  package=NODE_$architecture sum=NODE_SHA512_$architecture
  fetch "${!package}" "${!sum}"
  printf '#!/bin/sh\nexec /usr/local/bin/node /usr/local/lib/%s/%s "$@"\n' "$runtime" "$SCRIPT" >"$cache/$PROGRAM"
  files+=(--file "$folder/bin/node:/usr/local/bin/node" --file "$cache/$PROGRAM:/usr/local/bin/$PROGRAM")
  read -ra rest <<<"${!modules:-}"
  while ((${#rest[@]})); do # pairs of a package and its sum
    fetch "${rest[0]}" "${rest[1]}"
    files+=(--file "$folder:/usr/local/lib/$runtime/node_modules/${rest[0]%@*}")
    rest=("${rest[@]:2}")
  done
  packages+=,libstdc++6
fi

hack/cluster/run.sh image --arch "$architecture" --name "$name" --output "$archive" --user 1000:1000 --packages "$packages" "${files[@]}" "${@:6}"
(IFS=, && echo "[${list[*]}]") >"$archive.npm.json"
