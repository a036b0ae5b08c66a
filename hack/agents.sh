#!/usr/bin/env bash
# Builds the images of agents for the local cluster, without Docker: the program as npm publishes it, by version and
# checksum, on Debian packages. $1 is the folder of the built programs; agent-RUNTIME.ref there names the image afterwards.
set -euo pipefail
bin=$1
cd "$(dirname "$0")/.."
cache=${TIDEWAITER_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TIDEWAITER_CACHE}/.cache}/tidewaiter}/agents
mkdir -p "$cache" "$bin"

if [[ -n ${KUBECONFIG:-} ]]; then
  echo "${CLAUDE_CODE_IMG:-}" >"$bin/agent-claude-code.ref"
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
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends npm >/dev/null
  fi
  command npm "$@"
}

fetch() { # fetch PACKAGE VERSION SHA512: the folder of the unpacked package
  local folder=$cache/${1//\//-}-$2 tar
  if [[ ! -d $folder ]]; then
    echo "  Downloading $1 $2" >&2
    tar=$(mktemp -d "$cache/download-XXXXXX")
    (cd "$tar" && npm pack --silent "$1@$2" >/dev/null)
    echo "$3  $(ls "$tar"/*.tgz)" | sha512sum --check --quiet - >&2
    mkdir "$tar/unpacked"
    tar -xzf "$tar"/*.tgz -C "$tar/unpacked"
    mv "$tar/unpacked" "$folder"
    rm -rf "$tar"
  fi
  echo "$folder/package"
}

claude_code() {
  local VERSION name tar folder loaded
  # shellcheck source=/dev/null
  source images/claude-code/versions.env
  local package=PACKAGE_$architecture sum=SHA512_$architecture
  name=local.test/tidewaiter-claude-code:$VERSION-$(sha256sum hack/agents.sh images/claude-code/versions.env | sha256sum | cut -c1-8)
  # Known beside the cluster's state: a cluster that is made anew has no images.
  loaded=$(dirname "$(dirname "$(hack/cluster/run.sh kubeconfig)")")/agent-images
  if ! grep -qxF "$name" "$loaded" 2>/dev/null; then
    folder=$(fetch "${!package}" "$VERSION" "${!sum}")
    echo "Building $name"
    tar=$(mktemp --suffix .tar -p "$cache")
    trap 'rm -f "$tar"' RETURN
    hack/cluster/run.sh image --name "$name" --output "$tar" --user 1000:1000 \
      --packages bash,dash,coreutils,findutils,sed,grep,git,procps,ca-certificates --file "$folder/claude:/usr/local/bin/claude"
    hack/cluster/run.sh load-image "$tar"
    echo "$name" >>"$loaded"
  fi
  echo "$name" >"$bin/agent-claude-code.ref"
}

claude_code
