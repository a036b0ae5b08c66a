// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

func TestParseTarget(t *testing.T) {
	tests := map[string]struct {
		authority string
		want      string // "" means refused
	}{
		"name":                           {"git.example.com:443", "git.example.com:443"},
		"capital letters":                {"GIT.Example.COM:443", "git.example.com:443"},
		"one label":                      {"localhost:8443", "localhost:8443"},
		"digits inside":                  {"4chan.1password.com:443", "4chan.1password.com:443"},
		"punycode":                       {"xn--bcher-kva.example:443", "xn--bcher-kva.example:443"},
		"IPv4":                           {"10.0.0.1:443", "10.0.0.1:443"},
		"IPv6":                           {"[2001:DB8::1]:443", "[2001:db8::1]:443"},
		"longest name":                   {strings.Repeat("a.", 126) + "a:65535", strings.Repeat("a.", 126) + "a:65535"},
		"empty":                          {"", ""},
		"no port":                        {"git.example.com", ""},
		"empty port":                     {"git.example.com:", ""},
		"port 0":                         {"git.example.com:0", ""},
		"port with a sign":               {"git.example.com:+443", ""},
		"port with a leading zero":       {"git.example.com:0443", ""},
		"port too high":                  {"git.example.com:65536", ""},
		"port that wraps around":         {"git.example.com:4294967739", ""},
		"service name":                   {"git.example.com:https", ""},
		"no host":                        {":443", ""},
		"two ports":                      {"git.example.com:443:443", ""},
		"user":                           {"git.example.com@evil.example:443", ""},
		"user and password":              {"a:b@evil.example:443", ""},
		"URL":                            {"https://git.example.com:443", ""},
		"path":                           {"git.example.com/x:443", ""},
		"backslash":                      {`git.example.com\@evil.example:443`, ""},
		"NUL":                            {"git.example.com\x00.evil.example:443", ""},
		"line break":                     {"git.example.com\r\nHost: evil.example:443", ""},
		"space":                          {"git.example.com :443", ""},
		"percent encoding":               {"git%2eexample.com:443", ""},
		"full-width dot":                 {"git。example.com:443", ""},
		"full-width letters":             {"ｇit.example.com:443", ""},
		"final dot":                      {"git.example.com.:443", ""},
		"leading dot":                    {".example.com:443", ""},
		"empty label":                    {"git..example.com:443", ""},
		"hyphen first":                   {"-git.example.com:443", ""},
		"hyphen last":                    {"git-.example.com:443", ""},
		"underscore":                     {"_git.example.com:443", ""},
		"wildcard":                       {"*.example.com:443", ""},
		"label of 64":                    {strings.Repeat("a", 64) + ".example:443", ""},
		"name of 255":                    {strings.Repeat("a.", 127) + "a:443", ""},
		"IPv4 as a decimal":              {"2130706433:443", ""},
		"IPv4 as hex":                    {"0x7f000001:443", ""},
		"IPv4 as hex parts":              {"0x7f.0.0.0x1:443", ""},
		"IPv4 as a hex prefix alone":     {"foo.0x:443", ""},
		"IPv4 as octal":                  {"0177.0.0.1:443", ""},
		"IPv4 with few parts":            {"127.1:443", ""},
		"IPv4 with many parts":           {"127.0.0.0.1:443", ""},
		"IPv4 out of range":              {"127.0.0.256:443", ""},
		"IPv4 with a final dot":          {"127.0.0.1.:443", ""},
		"IPv4 in brackets":               {"[127.0.0.1]:443", ""},
		"name in brackets":               {"[git.example.com]:443", ""},
		"IPv6 without brackets":          {"::1:443", ""},
		"IPv6 with a zone":               {"[fe80::1%eth0]:443", ""},
		"name that ends in a number":     {"git.example.443:443", ""},
		"IPv4 in letters of other kinds": {"①②⑦.0.0.1:443", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target, err := ParseTarget(test.authority)
			var refusal *Refusal
			switch {
			case test.want != "" && err != nil:
				t.Fatalf("ParseTarget(%q): %v", test.authority, err)
			case test.want != "" && target.String() != test.want:
				t.Errorf("ParseTarget(%q) = %s, want %s", test.authority, target, test.want)
			case test.want == "" && (!errors.As(err, &refusal) || refusal.Reason != ReasonBadTarget):
				t.Errorf("ParseTarget(%q) = %s, %v, want a refusal", test.authority, target, err)
			case test.want == "" && strings.ContainsFunc(refusal.Message, func(r rune) bool { return r < ' ' || r > '~' }):
				t.Errorf("the message has bytes that a terminal could act on: %q", refusal.Message)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	hosts := []policy.Host{
		{Name: "git.example.com", Port: 443},
		{Name: "git.example.com", Port: 8443, AllowPrivate: true},
		{Name: "*.example.org", Port: 443},
		{Name: "*.inside.example.org", Port: 443, AllowPrivate: true},
		{Name: "strict.inside.example.org", Port: 443},
		{Name: "192.168.7.7", Port: 443, AllowPrivate: true}, // written before names were demanded
		{Name: "2001:db8::1", Port: 443, AllowPrivate: true},
		{Name: "*.0.0.1", Port: 443},
	}
	tests := map[string]struct {
		target      string
		want        Reason // "" means allowed
		wantPrivate bool
	}{
		"exact":                              {"git.example.com:443", "", false},
		"exact on another port":              {"git.example.com:8443", "", true},
		"port that is not listed":            {"git.example.com:22", ReasonHostNotAllowed, false},
		"name that is not listed":            {"evil.example.com:443", ReasonHostNotAllowed, false},
		"listed name as a prefix":            {"git.example.com.evil.example:443", ReasonHostNotAllowed, false},
		"listed name as a suffix":            {"evilgit.example.com:443", ReasonHostNotAllowed, false},
		"below a wildcard":                   {"a.example.org:443", "", false},
		"far below a wildcard":               {"a.b.c.example.org:443", "", false},
		"the wildcard's own domain":          {"example.org:443", ReasonHostNotAllowed, false},
		"suffix of a wildcard without a dot": {"evilexample.org:443", ReasonHostNotAllowed, false},
		"the longer wildcard wins":           {"a.inside.example.org:443", "", true},
		"an exact name wins over a wildcard": {"strict.inside.example.org:443", "", false},
		"IP address that is listed":          {"192.168.7.7:443", ReasonIPAddress, false},
		"IPv6 address that is listed":        {"[2001:db8::1]:443", ReasonIPAddress, false},
		"IP address that is not listed":      {"192.168.7.8:443", ReasonIPAddress, false},
		"IP address and a wildcard":          {"127.0.0.1:443", ReasonIPAddress, false},
		"metadata":                           {"169.254.169.254:80", ReasonIPAddress, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target, err := ParseTarget(test.target)
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range []Field{FieldGit, FieldAgent} {
				grant, err := Decide(hosts, field, target)
				var refusal *Refusal
				if refused := errors.As(err, &refusal); refused != (test.want != "") || refused && refusal.Reason != test.want || grant.AllowPrivate != test.wantPrivate {
					t.Errorf("Decide(%s) = %+v, %v, want %q", target, grant, err, test.want)
				}
				if err != nil && !strings.Contains(err.Error(), string(field)+" of a SupervisorPolicy") {
					t.Errorf("the message does not name the field to change: %v", err)
				}
			}
		})
	}
}

// TestUsers: each list has a user of its own, and nobody else has one.
func TestUsers(t *testing.T) {
	for user, want := range map[string]Field{"tidewaiter": FieldGit, "tidewaiter-agent": FieldAgent, "": "", "Tidewaiter": "", "tidewaiter-agents": "", "egress.git": ""} {
		if got, ok := FieldOf(user); got != want || ok != (want != "") {
			t.Errorf("FieldOf(%q) = %q, %t", user, got, ok)
		}
	}
}

// FuzzParseTarget: what is taken is a host and port in its one spelling, which another reader of HTTP takes for the same, and no
// reader for an address if it is a name.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{
		"git.example.com:443", "GIT.Example.COM:8443", "10.0.0.1:443", "[2001:db8::1]:443", "[fe80::1%eth0]:443", "127.1:443", "0x7f.1:443", "a@b:443",
		"xn--bcher-kva.example:443", "git.example.com.:443", "[::ffff:10.0.0.1]:443", "foo.0x:443", "a\r\nb:443",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		target, err := ParseTarget(authority)
		if err != nil {
			if message := err.Error(); len(message) > 4*maxAuthority+64 || strings.ContainsFunc(message, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("the message is %q", message)
			}
			return
		}
		spelled := target.String()
		if again, err := ParseTarget(spelled); err != nil || again != target {
			t.Errorf("%q is read as %s, and that as %s: %v", authority, spelled, again, err)
		}
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader("CONNECT " + spelled + " HTTP/1.1\r\nHost: " + spelled + "\r\n\r\n")))
		if err != nil || request.RequestURI != spelled || request.URL.Host != spelled || request.Host != spelled {
			t.Fatalf("%s is another request: %v", spelled, err)
		}
		if request.URL.Hostname() != target.Host || request.URL.Port() != strconv.Itoa(target.Port) {
			t.Errorf("%s is read as %s and %s", spelled, request.URL.Hostname(), request.URL.Port())
		}
		if address, err := netip.ParseAddr(target.Host); (err == nil) != target.Address.IsValid() || err == nil && address != target.Address {
			t.Errorf("%s: address %s", spelled, target.Address)
		}
	})
}
