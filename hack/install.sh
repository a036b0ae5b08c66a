#!/usr/bin/env bash
# Installs Tidewaiter with image $1 on the cluster, and waits until it is ready.
set -euo pipefail
image=$1
cd "$(dirname "$0")/.."
kubectl() { hack/cluster/run.sh kubectl "$@"; }

echo "Installing Tidewaiter ($image)"
# The committed manifest with another image: what is tested is what is shipped.
sed -E "s|tidewaiter:[0-9]+\.[0-9]+\.[0-9]+|$image|g" dist/install.yaml |
  kubectl apply --server-side --force-conflicts -f - >/dev/null
for deployment in tidewaiter-manager tidewaiter-gateway; do
  if ! kubectl -n tidewaiter-system rollout status "deployment/$deployment" --timeout=180s; then
    kubectl -n tidewaiter-system get pods -o wide
    kubectl -n tidewaiter-system describe pods | tail -n 40
    kubectl -n tidewaiter-system logs "deployment/$deployment" --tail=20 || true
    exit 1
  fi
done
