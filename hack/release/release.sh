#!/usr/bin/env bash
# Makes a release directory, without a registry and without Docker: VERSION=0.1.0 OUT=DIR hack/release/release.sh product|agents. ARCHITECTURES are amd64
# and arm64 where it is not set, RUNTIMES all that images/ has. The same commit, Go version, and packages of Debian and npm give the same bytes wherever
# they are built.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:?name product or agents}
: "${VERSION:?set VERSION, such as 0.1.0}" "${OUT:?set OUT, the directory of the release}"
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
export LINK="-X github.com/tidewaiter/tidewaiter/internal/app/preflight.productVersion=$VERSION"
if [[ -e $OUT ]]; then
  echo "release: OUT $OUT exists already: name a directory that is not there yet" >&2
  exit 1
fi
mkdir -p "$(dirname "$OUT")"
out=$(realpath "$(dirname "$OUT")")/$(basename "$OUT")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

product() { # product ARCHITECTURE
  local to=$work/tidewaiter/$1 program
  echo "Building $VERSION for linux/$1"
  mkdir -p "$to"
  for program in manager gateway watchdog runner worker tidewaiter; do
    GOOS=linux GOARCH=$1 hack/build.sh "$to/$program" "./cmd/$program"
  done
  hack/product.sh "$1" "tidewaiter:$VERSION" "$to" "$to/image.tar" --list "$to/image.tar.packages.json"
}

agents() { # agents ARCHITECTURE
  local runtime to
  for runtime in ${RUNTIMES:-$(ls images)}; do
    [[ -d images/$runtime ]] || continue
    if ! grep -q "^PACKAGE_$1=" "images/$runtime/versions.env"; then
      echo "release: $runtime is not published for linux/$1, and the release has no image of it" >&2
      continue
    fi
    to=$work/tidewaiter-$runtime/$1
    echo "Building $VERSION of $runtime for linux/$1"
    mkdir -p "$to"
    hack/agent.sh "$1" "$runtime" versions "tidewaiter-$runtime:$VERSION" "$to/image.tar" --list "$to/image.tar.packages.json"
  done
}

for architecture in ${ARCHITECTURES:-amd64 arm64}; do "$what" "$architecture"; done
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
changed=$([[ $commit != unknown && -z $(git status --porcelain) ]] && echo false || echo true)
[[ $changed == false ]] || echo "release: the work tree differs from commit $commit; the provenance says so" >&2
go -C hack/release run . assemble --version "$VERSION" --commit "$commit" --changed="$changed" \
  --manifest "$PWD/dist/install.yaml" --chart "$PWD/charts/tidewaiter" --work "$work" --out "$out"
echo "The release is in $out"
echo "  Push it to a registry of yours: hack/release/push.sh $OUT REGISTRY/REPOSITORY"
echo "  Or load it into a cluster of this machine: make load DIR=$OUT"
