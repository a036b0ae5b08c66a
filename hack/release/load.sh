#!/usr/bin/env bash
# Makes the image of a release directory known to a cluster without a registry: hack/release/load.sh DIR [kind|k3d|minikube [CLUSTER]]. Without a second
# argument it is the local cluster of `make cluster-up`.
set -euo pipefail
if (($# < 1 || $# > 3)); then
  echo "usage: hack/release/load.sh DIR [kind|k3d|minikube [CLUSTER]]" >&2
  exit 2
fi
dir=$(realpath "$1") kind=${2:-local} name=${3:-}
cd "$(dirname "$0")/../.."
(cd "$dir" && sha256sum --check --quiet SHA256SUMS)
archive=$(mktemp --suffix .tar)
trap 'rm -f "$archive"' EXIT
CGO_ENABLED=0 go -C hack/release run . archive --out "$archive" "$dir"
case $kind in
local) hack/cluster/run.sh load-image "$archive" ;;
kind) kind load image-archive "$archive" ${name:+--name "$name"} ;;
k3d) k3d image import "$archive" ${name:+--cluster "$name"} ;;
minikube) minikube image load "$archive" ${name:+--profile "$name"} ;;
*)
  echo "load.sh: $kind is not known; name kind, k3d or minikube" >&2
  exit 2
  ;;
esac
echo "Install it: kubectl apply --server-side -f $dir/install.yaml"
echo "        or: helm install tidewaiter $(echo "$dir"/tidewaiter-*.tgz)"
