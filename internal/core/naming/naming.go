// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package naming derives the names of everything that belongs to a Feature from the Feature's name. Names are deterministic, so that a
// second try finds the objects of the first instead of creating others. No two Features of a namespace share a name, and all are valid as
// labels and as names of Kubernetes objects.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// Prefix begins the names of all Jobs, pods, volume claims and network policies of Features. Admission policies know
	// them by it, because a request to open a shell in a pod names the pod and does not show its labels. Nobody but
	// Tidewaiter may use it for objects of these kinds (config/admission).
	Prefix = "twf-"
	// MaxFeature bounds the name of a Feature in characters; the API enforces it.
	MaxFeature = 52
	// MaxName bounds derived names: the length of a DNS label, which names of Jobs (their pods carry it as a label) and
	// label values must keep to.
	MaxName = 63
	// hashLength of the digest that stands for what was cut off, in hex digits.
	hashLength = 10
)

// Job is the name of the Job of an attempt, with or without an agent.
func Job(feature string, attempt int64) string { return numbered(Prefix+feature, attempt) }

// Checkpoint is the name of a Feature's checkpoint with this sequence number.
func Checkpoint(feature string, sequence int64) string { return numbered(feature, sequence) }

// Sequence is the number of a Feature's checkpoint with this name; false if there is no such checkpoint.
func Sequence(feature, checkpoint string) (int64, bool) {
	digits, found := strings.CutPrefix(checkpoint, feature+"-")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, found && err == nil && n > 0 && Checkpoint(feature, n) == checkpoint
}

// Volume is the name of the claim of one of a Feature's volumes.
func Volume(feature, volume string) string { return fit(Prefix + feature + "-" + volume) }

// Inquiry is the name of the Job that answers one inquiry about a Feature whose pods are gone.
func Inquiry(feature, id string) string { return Volume(feature, "view-"+id) }

// NetworkPolicy is the name of the NetworkPolicy of a Feature's pods.
func NetworkPolicy(feature string) string { return fit(Prefix + feature) }

func numbered(feature string, n int64) string {
	return fit(feature + "-" + strconv.FormatInt(n, 10))
}

// fit returns a name as it is where it is short enough, and otherwise its beginning with a digest of all of it.
func fit(name string) string {
	if len(name) <= MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:])[:hashLength]
	return strings.TrimRight(name[:MaxName-hashLength-1], "-") + "-" + digest
}
