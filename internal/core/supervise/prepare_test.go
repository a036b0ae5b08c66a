// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func fails(p Preparation, reason string, times int) Preparation {
	for range times {
		p = p.Failed(protocol.Fault{Reason: reason, Message: "it says why"})
	}
	return p
}

func TestPreparationsThatAreNotTriedAgain(t *testing.T) {
	unknown := protocol.ReasonPreparationFailed
	for name, tc := range map[string]struct {
		p    Preparation
		want string
	}{
		"SHA-256":                   {fails(Preparation{}, protocol.ReasonObjectFormatUnsupported, 1), protocol.ReasonObjectFormatUnsupported},
		"a damaged history":         {fails(Preparation{}, protocol.ReasonRepositoryDamaged, 1), protocol.ReasonRepositoryDamaged},
		"a server that is down":     {fails(Preparation{}, protocol.ReasonRepositoryUnreachable, 10*maxPreparations), ""},
		"a wrong password":          {fails(Preparation{}, protocol.ReasonAuthenticationFailed, 10*maxPreparations), ""},
		"a damaged volume":          {fails(Preparation{}, protocol.ReasonVolumeCorrupt, 10*maxPreparations), ""},
		"unknown, not yet":          {fails(Preparation{}, unknown, maxPreparations-1), ""},
		"unknown":                   {fails(Preparation{}, unknown, maxPreparations), unknown},
		"unknown after a full disk": {fails(fails(Preparation{}, protocol.ReasonVolumeFull, 500), unknown, 1), ""},
		"unknown again": {
			fails(fails(fails(Preparation{}, unknown, maxPreparations-1), protocol.ReasonVolumeFull, 1), unknown, maxPreparations-1), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, over := tc.p.Final()
			if f.Reason != tc.want || over != (tc.want != "") {
				t.Fatalf("over %v with %q, want %q", over, f.Reason, tc.want)
			}
			if over && (f.Outcome != protocol.OutcomeBlocked || !strings.Contains(f.Message, "it says why")) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestPausesOfAPreparation(t *testing.T) {
	p, sum := Preparation{}, time.Duration(0)
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		if p = fails(p, protocol.ReasonPreparationFailed, 1); p.Pause() != want {
			t.Errorf("pause %v, want %v", p.Pause(), want)
		}
	}
	for p = (Preparation{}); ; sum += p.Pause() {
		if p = fails(p, protocol.ReasonPreparationFailed, 1); p.unknown == maxPreparations {
			break
		}
	}
	if sum < 50*time.Minute || sum > 70*time.Minute {
		t.Errorf("given up after %v, want about an hour", sum)
	}
}
