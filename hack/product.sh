#!/usr/bin/env bash
# Builds the archive of the product's image, without Docker: product.sh ARCHITECTURE NAME PROGRAMS-FOLDER ARCHIVE [OPTION…]; options are those of
# `run.sh image`.
set -euo pipefail
architecture=$1 name=$2 bin=$3 archive=$4
cd "$(dirname "$0")/.."
# What git recommends for people (perl scripts, manuals) is not used by the watchdog.
hack/cluster/run.sh image --arch "$architecture" --name "$name" --output "$archive" --packages git,ca-certificates \
  --without perl,perl-modules-5.36,libperl5.36,liberror-perl,perl-base,libdb5.3,libgdbm6,libgdbm-compat4,debconf,dpkg,tar,git-man,openssl --user 65532:65532 \
  --file "$bin/manager:/usr/local/bin/manager" --file "$bin/gateway:/usr/local/bin/gateway" \
  --file "$bin/watchdog:/usr/local/bin/watchdog" --file "$bin/runner:/usr/local/bin/runner" \
  --file "$bin/worker:/usr/local/bin/worker" --file "$bin/tidewaiter:/usr/local/bin/tidewaiter" "${@:5}"
