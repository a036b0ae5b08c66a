// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMaySend(t *testing.T) {
	for name, tc := range map[string]struct {
		list, url, host string
		want            bool
	}{
		"the host":                    {"git.example.com", "https://git.example.com/shop.git", "git.example.com:443", true},
		"in another case":             {"Git.Example.com", "https://GIT.example.COM/shop.git", "git.example.com:443", true},
		"with its port":               {"git.example.com:443", "https://git.example.com/shop.git", "git.example.com:443", true},
		"one of several":              {"a.example.com, b.example.com\nc.example.com\r\n", "https://c.example.com/x", "c.example.com:443", true},
		"another port":                {"git.example.com:8443", "https://git.example.com:8443/x", "git.example.com:8443", true},
		"another port than listed":    {"git.example.com", "https://git.example.com:8443/x", "git.example.com:8443", false},
		"a name below":                {"*.example.com", "https://git.example.com/x", "git.example.com:443", true},
		"a wildcard is not the name":  {"*.example.com", "https://example.com/x", "example.com:443", false},
		"the end of another name":     {"example.com", "https://evilexample.com/x", "evilexample.com:443", false},
		"the beginning of another":    {"git.example.com", "https://git.example.com.evil.net/x", "git.example.com.evil.net:443", false},
		"a name below one is another": {"example.com", "https://git.example.com/x", "git.example.com:443", false},
		"an empty list":               {"", "https://git.example.com/x", "git.example.com:443", false},
		"an address":                  {"127.0.0.1:8443", "https://127.0.0.1:8443/x", "127.0.0.1:8443", true},
		"an IPv6 address":             {"fd00::1 [fd00::2]:8443", "https://[fd00::2]:8443/x", "[fd00::2]:8443", true},
		"plain http":                  {"git.example.com", "http://git.example.com/x", "an address that is not https://host/path", false},
		"a user before the host":      {"git.example.com", "https://git.example.com@evil.net/x", "an address that is not https://host/path", false},
		"no host":                     {"git.example.com", "https:///x", "an address without a host", false},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, err := SecretHosts(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			if host, may := MaySend(hosts, tc.url); may != tc.want || host != tc.host {
				t.Errorf("%s: %t, want %s: %t", host, may, tc.host, tc.want)
			}
		})
	}
}

func TestAListThatCannotBeRead(t *testing.T) {
	for _, list := range []string{"https://git.example.com", "git.example.com/shop", "*", "*.", "git.*.com", "*.10.0.0.1", "a b:0", "gït.example.com", strings.Repeat("a.example.com ", 2000)} {
		if hosts, err := SecretHosts(list); err == nil {
			t.Errorf("%.40q is read as %v", list, hosts)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.40q: an error of %d bytes", list, len(err.Error()))
		}
	}
}

// TestOnlyWhatIsListed: a Secret is sent to no host whose name is not in the list, or below one that is.
func TestOnlyWhatIsListed(t *testing.T) {
	label := rapid.SampledFrom([]string{"git", "example", "com", "evil", "net"})
	draw := func(t *rapid.T, what string) string {
		return strings.Join(rapid.SliceOfN(label, 1, 4).Draw(t, what), ".")
	}
	rapid.Check(t, func(t *rapid.T) {
		entry, wildcard := draw(t, "listed"), rapid.Bool().Draw(t, "wildcard")
		list := entry
		if wildcard {
			list = "*." + entry
		}
		hosts, err := SecretHosts(list)
		if err != nil {
			t.Fatal(err)
		}
		asked := draw(t, "asked")
		want := asked == entry
		if wildcard {
			want = strings.HasSuffix(asked, "."+entry)
		}
		if _, may := MaySend(hosts, "https://"+asked+"/shop.git"); may != want {
			t.Fatalf("%s with the list %s: %t, want %t", asked, list, may, want)
		}
	})
}
