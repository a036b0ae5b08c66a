#!/usr/bin/env bash
# Makes the images known to the cluster. $1 is the folder of the built programs; image.ref and testbed.ref there name
# the images afterwards. A tag is the hash of what is inside, so that a Deployment rolls exactly when a program changed.
set -euo pipefail
bin=$1
cd "$(dirname "$0")/.."

if [[ -n ${KUBECONFIG:-} ]]; then
  : "${IMG:?KUBECONFIG is set: set IMG to a pushed image of the product (see Dockerfile, target tidewaiter)}"
  echo "$IMG" >"$bin/image.ref"
  echo "${TESTBED_IMG:-$IMG}" >"$bin/testbed.ref"
  exit 0
fi

tag() { sha256sum "$@" hack/images.sh hack/product.sh | sha256sum | cut -c1-12; }
load() { # load REF-FILE NAME COMMAND…, which writes an archive to its last argument
  local ref_file=$1 name=$2
  shift 2
  local tar
  tar=$(mktemp --suffix .tar)
  trap 'rm -f "$tar"' RETURN
  "$@" "$tar"
  hack/cluster/run.sh load-image "$tar"
  echo "$name" >"$ref_file"
}

product=local.test/tidewaiter:$(tag "$bin"/{manager,gateway,watchdog,runner,worker,tidewaiter})
load "$bin/image.ref" "$product" hack/product.sh "$(go env GOARCH)" "$product" "$bin"

testbed=local.test/tidewaiter-testbed:$(tag "$bin"/{gitserver,mcpagent,modelprovider})
load "$bin/testbed.ref" "$testbed" hack/cluster/run.sh image --name "$testbed" \
  --packages bash,dash,coreutils,findutils,sed,grep,git,perl-base,ca-certificates --user 1000:1000 \
  --file "$bin/gitserver:/usr/local/bin/gitserver" --file "$bin/mcpagent:/usr/local/bin/mcpagent" \
  --file "$bin/modelprovider:/usr/local/bin/modelprovider" --output
