// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"strings"
	"testing"
)

func TestDefault(t *testing.T) {
	tests := map[string]struct {
		env      map[string]string
		wantRoot string
		wantErr  string
	}{
		"own variable first":   {env: map[string]string{"TIDEWAITER_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, wantRoot: "/a/cluster"},
		"then the XDG folder":  {env: map[string]string{"XDG_CACHE_HOME": "/b", "HOME": "/c"}, wantRoot: "/b/tidewaiter/cluster"},
		"then the home folder": {env: map[string]string{"HOME": "/c"}, wantRoot: "/c/.cache/tidewaiter/cluster"},
		"nothing set":          {wantErr: "HOME"},
		"relative":             {env: map[string]string{"TIDEWAITER_CACHE": "a"}, wantErr: "absolute"},
		"hidden on the node":   {env: map[string]string{"TIDEWAITER_CACHE": "/var/lib/x"}, wantErr: "TIDEWAITER_CACHE"},
		"similar to hidden":    {env: map[string]string{"TIDEWAITER_CACHE": "/var/library"}, wantRoot: "/var/library/cluster"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			layout, err := Default(func(name string) string { return test.env[name] })
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if layout.Root() != test.wantRoot {
				t.Errorf("root %q, want %q", layout.Root(), test.wantRoot)
			}
		})
	}
}

func TestHoldWaits(t *testing.T) {
	path := At(t.TempDir()).Lock("x")
	release, err := Hold(path, func() { t.Error("waited for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	waiting, held := make(chan struct{}), make(chan error)
	go func() {
		release, err := Hold(path, func() { close(waiting) })
		if err == nil {
			release()
		}
		held <- err
	}()
	<-waiting
	select {
	case <-held:
		t.Fatal("two held the lock")
	default:
	}
	release()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
}
