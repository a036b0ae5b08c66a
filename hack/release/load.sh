#!/usr/bin/env bash
# Makes the images of a release directory known to a cluster without a registry: hack/release/load.sh DIR [local|kind|k3d|minikube [CLUSTER]]. local is the
# cluster of `make cluster-up`. Where the kind is left out, kubectl's current context says it, and the cluster's name: kind-NAME, k3d-NAME, or a context of
# minikube.
set -euo pipefail
if (($# < 1 || $# > 3)); then
  echo "usage: hack/release/load.sh DIR [local|kind|k3d|minikube [CLUSTER]]" >&2
  exit 2
fi
fail() {
  echo "load: $*" >&2
  exit 1
}
[[ -f $1/SHA256SUMS ]] || fail "$1 is not a release directory: make one with \`make release VERSION=0.1.0 OUT=$1\`"
dir=$(realpath "$1") kind=${2:-} name=${3:-}
cd "$(dirname "$0")/../.."

if [[ -z $kind ]]; then
  context=$(kubectl config current-context 2>/dev/null) ||
    fail "kubectl is not installed or has no current context: choose one with \`kubectl config use-context\`, or name the kind of your cluster: KIND=kind, k3d, minikube or local"
  case $context in
  kind-*) kind=kind name=${context#kind-} ;;
  k3d-*) kind=k3d name=${context#k3d-} ;;
  *)
    # minikube names a context after its profile.
    if type -P minikube >/dev/null && minikube profile list --output json 2>/dev/null | grep -qF "\"Name\":\"$context\""; then
      kind=minikube name=$context
    else
      fail "the context $context is not one of kind, k3d or minikube: push the images to a registry with hack/release/push.sh, or name the kind of your cluster: KIND=kind, k3d, minikube or local"
    fi
    ;;
  esac
  echo "The current context is $context"
fi
case $kind in
local) ;;
kind | k3d | minikube) type -P "$kind" >/dev/null || fail "$kind is not installed, or not in PATH: install it, or push the images to a registry with hack/release/push.sh" ;;
*) fail "the kind $kind is not known: name kind, k3d, minikube or local" ;;
esac

(cd "$dir" && sha256sum --check --quiet SHA256SUMS) || fail "$dir is not as it was made: copy it again"
archive=$(mktemp --suffix .tar)
trap 'rm -f "$archive"' EXIT
mapfile -t images <"$dir/images.txt"
for image in "${images[@]}"; do
  echo "Loading $image"
  CGO_ENABLED=0 go -C hack/release run . archive --out "$archive" "$dir" "${image%%:*}"
  case $kind in
  local) hack/cluster/run.sh load-image "$archive" ;;
  kind) kind load image-archive "$archive" ${name:+--name "$name"} ;;
  k3d) k3d image import "$archive" ${name:+--cluster "$name"} ;;
  minikube) minikube image load "$archive" ${name:+--profile "$name"} ;;
  esac
done
if [[ -f $dir/install.yaml ]]; then
  echo "Install it: kubectl apply --server-side -f $dir/install.yaml"
  echo "        or: helm install tidewaiter $(echo "$dir"/tidewaiter-*.tgz)"
else
  echo "Name an image in spec.agent.image of a Feature, as above"
fi
