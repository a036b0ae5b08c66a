#!/usr/bin/env bash
# Builds a program and shows how far it is, because a first build takes minutes. Usage: build.sh FILE PACKAGE. LINK has further flags
# of the linker.
set -euo pipefail
cd "$(dirname "$0")/.."
file=$1 package=$2
total=$(go list -deps "$package" | wc -l)
# go build -v prints the packages that are not in the build cache, one a line; everything else is an error.
go build -v -ldflags "-s -w ${LINK:-}" -o "$file" "$package" 2>&1 | awk -v name="$(basename "$file")" -v total="$total" '
  /^[A-Za-z0-9_.~\/-]+$/ { if (++n % 100 == 0) printf "  Building %s: %d of at most %d packages\n", name, n, total; fflush(); next }
  { print > "/dev/stderr" }
  END { if (n >= 100) printf "  Built %s\n", name }'
