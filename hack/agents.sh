#!/usr/bin/env bash
# Builds the images of agents for the local cluster, without Docker: the program as npm publishes it, and Node.js where it is a
# script, by version and checksum, on Debian packages. $1 is the folder of the built programs; agent-RUNTIME.ref there names the image afterwards.
# Further arguments are the only runtimes to build. AGENT_VERSIONS=versions-older takes the versions of images/*/versions-older.env.
set -euo pipefail
bin=$1
cd "$(dirname "$0")/.."
cache=${TIDEWAITER_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIDEWAITER_CACHE}/.cache}/tidewaiter}/agents
mkdir -p "$cache" "$bin"

versions=${AGENT_VERSIONS:-versions}
runtimes=(claude-code codex opencode qwen-code gemini-cli)
((${#@} > 1)) && runtimes=("${@:2}")

if [[ -n ${KUBECONFIG:-} ]]; then
  for runtime in "${runtimes[@]}"; do
    variable=IMG_${runtime//-/_} # for example IMG_claude_code: an image that the cluster can pull
    echo "${!variable:?KUBECONFIG is set: set this to a pushed image of images/$runtime}" >"$bin/agent-$runtime.ref"
  done
  exit 0
fi

case $(uname -m) in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*)
  echo "agents: no agent is published for $(uname -m)" >&2
  exit 1
  ;;
esac

npm() { # as installed here, or Debian's
  if ! type -P npm >/dev/null; then
    echo "  Installing npm from Debian's packages" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends npm >/dev/null
  fi
  command npm "$@"
}

fetch() { # fetch PACKAGE SHA512: the folder of the unpacked package
  local folder=$cache/${1//\//-} download
  if [[ ! -d $folder ]]; then
    echo "  Downloading $1" >&2
    download=$(mktemp -d "$cache/download-XXXXXX")
    (cd "$download" && npm pack --silent "$1" >/dev/null)
    echo "$2  $(ls "$download"/*.tgz)" | sha512sum --check --quiet - >&2
    mkdir "$download/unpacked"
    tar -xzf "$download"/*.tgz -C "$download/unpacked"
    mv "$download/unpacked" "$folder"
    rm -rf "$download"
  fi
  echo "$folder/package"
}

# Known beside the cluster's state: a cluster that is made anew has no images.
loaded=$(dirname "$(dirname "$(hack/cluster/run.sh kubeconfig)")")/agent-images

on_node() { # on_node RUNTIME: what a program needs that is a script of Node.js
  local runtime=$1 folder
  # shellcheck source=/dev/null
  source images/node.env
  local package=NODE_$architecture sum=NODE_SHA512_$architecture
  folder=$(fetch "${!package}" "${!sum}")
  printf '#!/bin/sh\nexec /usr/local/bin/node /usr/local/lib/%s/%s "$@"\n' "$runtime" "$SCRIPT" >"$cache/$PROGRAM"
  files+=(--file "$folder/bin/node:/usr/local/bin/node" --file "$cache/$PROGRAM:/usr/local/bin/$PROGRAM")
  local list=MODULES_$architecture name rest
  read -ra rest <<<"${!list:-}"
  while ((${#rest[@]})); do # pairs of a package and its sum
    folder=$(fetch "${rest[0]}" "${rest[1]}")
    name=${rest[0]%@*}
    files+=(--file "$folder:/usr/local/lib/$runtime/node_modules/$name")
    rest=("${rest[@]:2}")
  done
  packages+=,libstdc++6
}

agent() { # agent RUNTIME
  local runtime=$1 PROGRAM VERSION SCRIPT='' MODULES_amd64='' MODULES_arm64='' name archive folder file files=() packages=bash,dash,coreutils,findutils,sed,grep,git,procps,ca-certificates
  # shellcheck source=/dev/null
  source "images/$runtime/$versions.env"
  local package=PACKAGE_$architecture sum=SHA512_$architecture list=FILES_$architecture
  if [[ -z ${!package:-} ]]; then
    echo "agents: $runtime $VERSION is not published for $architecture" >&2
    return 1
  fi
  name=local.test/tidewaiter-$runtime:$VERSION-$(sha256sum hack/agents.sh images/node.env "images/$runtime/$versions.env" | sha256sum | cut -c1-8)
  if ! grep -qxF "$name" "$loaded" 2>/dev/null; then
    folder=$(fetch "${!package}" "${!sum}")
    for file in ${!list}; do files+=(--file "$folder/$file"); done
    [[ -z $SCRIPT ]] || on_node "$runtime"
    echo "Building $name"
    archive=$(mktemp --suffix .tar -p "$cache")
    hack/cluster/run.sh image --name "$name" --output "$archive" --user 1000:1000 \
      --packages "$packages" "${files[@]}"
    hack/cluster/run.sh load-image "$archive"
    rm -f "$archive"
    echo "$name" >>"$loaded"
  fi
  echo "$name" >"$bin/agent-$runtime.ref"
}

for runtime in "${runtimes[@]}"; do agent "$runtime"; done
