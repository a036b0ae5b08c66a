#!/usr/bin/env bash
# Plays the labelled corpus of runs, the scenarios that are held back and those that were written blind, and prints what the supervision of the conversation has
# seen, with every mistake by name, and how the figures move with other thresholds. It also plays labelled breakpoints to the reviewers. It fails when a table in docs/evaluation.md is stale. With "-update" it writes the
# tables there, and what came of each run that is held back or was written blind into test/eval/testdata.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
mkdir -p bin
go test -c -o bin/eval.test ./test/eval
go test -c -o bin/eval-reviewers.test ./test/eval/reviewers
(cd test/eval/reviewers && TIDEWAITER_EVAL=1 ../../../bin/eval-reviewers.test -test.timeout 2h -test.run '^(TestScriptedAnswers|TestModel)$' "$@")
cd test/eval
TIDEWAITER_EVAL=1 ../../bin/eval.test -test.timeout 10m -test.run '^(TestCorpus|TestHeldBack|TestBlind|TestThresholds)$' "$@"
