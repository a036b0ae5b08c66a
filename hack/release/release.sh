#!/usr/bin/env bash
# Makes a release directory, without a registry and without Docker: VERSION=0.1.0 OUT=DIR hack/release/release.sh. ARCHITECTURES are amd64 and arm64 where
# it is not set. The same commit, Go version and Debian packages give the same bytes wherever they are built.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${VERSION:?set VERSION, such as 0.1.0}" "${OUT:?set OUT, the directory of the release}"
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
if [[ -e $OUT ]]; then
  echo "release: OUT $OUT exists already: name a directory that is not there yet" >&2
  exit 1
fi
mkdir -p "$(dirname "$OUT")"
out=$(realpath "$(dirname "$OUT")")/$(basename "$OUT")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for architecture in ${ARCHITECTURES:-amd64 arm64}; do
  echo "Building $VERSION for linux/$architecture"
  mkdir "$work/$architecture"
  for program in manager gateway watchdog runner worker; do
    GOOS=linux GOARCH=$architecture hack/build.sh "$work/$architecture/$program" "./cmd/$program"
  done
  hack/product.sh "$architecture" "tidewaiter:$VERSION" "$work/$architecture" "$work/$architecture/image.tar" --list "$work/$architecture/image.tar.packages.json"
done
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
changed=$([[ $commit != unknown && -z $(git status --porcelain) ]] && echo false || echo true)
[[ $changed == false ]] || echo "release: the work tree differs from commit $commit; the provenance says so" >&2
go -C hack/release run . assemble --version "$VERSION" --commit "$commit" --changed="$changed" \
  --manifest "$PWD/dist/install.yaml" --chart "$PWD/charts/tidewaiter" --work "$work" --out "$out"
echo "The release is in $out"
echo "  Push it to a registry of yours: hack/release/push.sh $OUT REGISTRY/REPOSITORY"
echo "  Or load it into a cluster of this machine: hack/release/load.sh $OUT"
