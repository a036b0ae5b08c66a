#!/usr/bin/env bash
# Removes Tidewaiter from the cluster: first the Features, which its manager ends in order, then all that installed it.
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl() { hack/cluster/run.sh kubectl "$@"; }

if [[ -n $(kubectl get crd features.tidewaiter.dev --ignore-not-found --output name) ]]; then
  echo "Ending every Feature"
  if ! kubectl delete features.tidewaiter.dev --all --all-namespaces --timeout="${TIMEOUT:=10m}"; then
    echo "Some Features are still there after $TIMEOUT. The manager removes the finalizer of each when its pod is gone:" >&2
    kubectl get features --all-namespaces >&2
    kubectl --namespace tidewaiter-system get pods >&2
    exit 1
  fi
fi
# While kube-apiserver forwards an API to a manager that is gone, no namespace can be deleted.
kubectl delete --ignore-not-found apiservice v1alpha1.view.tidewaiter.dev
kubectl delete --ignore-not-found --filename dist/install.yaml
