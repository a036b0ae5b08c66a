#!/usr/bin/env bash
# Pushes the images of a release directory to a registry, and writes the manifest that installs Tidewaiter from there: hack/release/push.sh DIR REPOSITORY.
# Images of agents go to REPOSITORY-RUNTIME. Credentials are REGISTRY_USERNAME and REGISTRY_PASSWORD, or those of `docker login`. If cosign is
# installed, each image is signed and its provenance is attached; COSIGN_KEY names a key, and without it cosign asks who you are.
set -euo pipefail
if (($# != 2)); then
  echo "usage: hack/release/push.sh DIR REPOSITORY (such as registry.example.com/team/tidewaiter)" >&2
  exit 2
fi
dir=$(realpath "$1") repository=$2
cd "$(dirname "$0")"
(cd "$dir" && sha256sum --check --quiet SHA256SUMS)
CGO_ENABLED=0 go run . push "$dir" "$repository"
if type -P cosign >/dev/null; then
  mapfile -t images <"$dir/pushed/images.txt"
  for image in "${images[@]}"; do
    cosign sign --yes ${COSIGN_KEY:+--key "$COSIGN_KEY"} "$image"
    CGO_ENABLED=0 go run . predicate "$dir" |
      cosign attest --yes ${COSIGN_KEY:+--key "$COSIGN_KEY"} --type slsaprovenance1 --predicate /dev/stdin "$image"
  done
else
  echo "cosign is not installed: the images are not signed"
fi
