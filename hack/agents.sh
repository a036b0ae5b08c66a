#!/usr/bin/env bash
# Builds the images of agents for the local cluster, without Docker, and loads them. $1 is the folder of the built programs; agent-RUNTIME.ref there names
# the image afterwards. Further arguments are the only runtimes to build. AGENT_VERSIONS=versions-older takes the versions of images/*/versions-older.env.
set -euo pipefail
bin=$1
cd "$(dirname "$0")/.."
mkdir -p "$bin"

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

# Known beside the cluster's state: a new cluster has no images.
loaded=$(dirname "$(dirname "$(hack/cluster/run.sh kubeconfig)")")/agent-images
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for runtime in "${runtimes[@]}"; do
  version=$(sed -n 's/^VERSION=//p' "images/$runtime/$versions.env")
  name=local.test/tidewaiter-$runtime:$version-$(sha256sum hack/agent.sh images/node.env "images/$runtime/$versions.env" | sha256sum | cut -c1-8)
  if ! grep -qxF "$name" "$loaded" 2>/dev/null; then
    echo "Building $name"
    hack/agent.sh "$(go env GOARCH)" "$runtime" "$versions" "$name" "$work/image.tar"
    hack/cluster/run.sh load-image "$work/image.tar"
    rm "$work/image.tar"
    echo "$name" >>"$loaded"
  fi
  echo "$name" >"$bin/agent-$runtime.ref"
done
