// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// TestRepository: what means the same repository has one form.
func TestRepository(t *testing.T) {
	for want, urls := range map[string][]string{
		"git.example.com/team/shop": {
			"https://git.example.com/team/shop", "https://git.example.com/team/shop.git", "https://git.example.com/team/shop/", "https://git.example.com/team/shop.git/",
			"https://GIT.Example.COM/team/shop", "HTTPS://git.example.com/team/shop", "https://git.example.com:443/team/shop", "https://git.example.com:0443/team/shop",
			"https://git.example.com:/team/shop", "https://git.example.com./team/shop", "https://git.example.com/team/%73hop", "https://git.example.com/te%61m/shop%2Egit",
		},
		"git.example.com:8443/team/shop": {"https://git.example.com:8443/team/shop.git", "https://Git.example.com:08443/team/shop"},
		"git.example.com/Team/shop":      {"https://git.example.com/Team/shop"},
		"git.example.com/shop.git":       {"https://git.example.com/shop.git.git"},
		"git.example.com/team/.git":      {"https://git.example.com/team/.git"},
		"git.example.com/.git":           {"https://git.example.com/.git"},
		"git.example.com/grün":           {"https://git.example.com/gr%C3%BCn"},
		"git.example.com/~a/b@c:d=e+f,g": {"https://git.example.com/~a/b@c:d=e+f,g"},
		"git.example.com/...":            {"https://git.example.com/..."},
	} {
		for _, u := range urls {
			if got, err := Repository(u); got != want || err != nil {
				t.Errorf("%s is %q, %v; want %s", u, got, err, want)
			}
		}
	}
}

// hostile are URLs that servers, proxies or Git's HTTP client read in another way than they look.
var hostile = []string{
	"", "https://", "https:///team/shop", "https://git.example.com", "https://git.example.com/", "http://git.example.com/team/shop", "git.example.com/team/shop",
	"ssh://git@git.example.com/team/shop", "git@git.example.com:team/shop", "https:git.example.com/team/shop", " https://git.example.com/team/shop",
	"https://user@git.example.com/team/shop", "https://user:password@git.example.com/team/shop", "https://@git.example.com/team/shop", "https://git.example.com@evil.example.org/team/shop",
	"https://git.example.com:443@evil.example.org/team/shop", `https://git.example.com\@evil.example.org/team/shop`, "https://git.example.com%2f@evil.example.org/team/shop",
	"https://git.example.com/team/../other/shop", "https://git.example.com/team/%2e%2e/other/shop", "https://git.example.com/team/.%2E/other/shop", "https://git.example.com/team/./shop",
	"https://git.example.com/team/%252e%252e/other/shop", "https://git.example.com/team%2f..%2fother/shop", "https://git.example.com/team%2Fshop", "https://git.example.com/team%5c..%5cother",
	`https://git.example.com/team\..\other`, "https://git.example.com//team/shop", "https://git.example.com/team//shop", "https://git.example.com/team/shop//",
	"https://git.example.com/team/..;/other/shop", "https://git.example.com/team/..;a=b/other/shop", "https://git.example.com/team/shop;x", "https://git.example.com/team/%3b", "https://git.example.com/team/..%3b/other",
	"https://git.example.com/team/shop?x=y", "https://git.example.com/team/shop?", "https://git.example.com/team/shop#x", "https://git.example.com/team/shop#", "https://git.example.com/team/%3Fx", "https://git.example.com/team/%23x",
	"https://git.example.com/team/%00", "https://git.example.com/team/%0a", "https://git.example.com/team/a%20b", "https://git.example.com/team/%E2%80%AE", "https://git.example.com/team/%ff", "https://git.example.com/team/%zz", "https://git.example.com/team/%",
	"https://git.example.com:0/team/shop", "https://git.example.com:65536/team/shop", "https://git.example.com:99999999999999999999/team/shop", "https://git.example.com:x/team/shop",
	"https://[::1]/team/shop", "https://gıt.example.com/team/shop", "https://git%2eexample.com/team/shop", "https://-git.example.com/team/shop", "https://git_example.com/team/shop", "https://*.example.com/team/shop", "https://./team/shop",
}

func TestRepositoryRefusesWhatCanBeReadTwice(t *testing.T) {
	for _, u := range hostile {
		if got, err := Repository(u); err == nil {
			t.Errorf("%q is %s", u, got)
		} else if strings.Contains(err.Error(), "password@") {
			t.Errorf("%q: its password is in the error %q", u, err)
		}
	}
}

// FuzzRepository: the form of a URL is that of the request which Git's client sends for it, and stays what it is.
func FuzzRepository(f *testing.F) {
	for _, u := range append(hostile, "https://git.example.com/team/shop.git", "https://git.example.com:8443/te%61m/gr%C3%BCn/", "https://a.b/c.git/.git") {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, err := Repository(raw)
		if err != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil {
			t.Fatalf("%q is %s: %v", raw, name, err)
		}
		host, at, _ := strings.Cut(name, "/")
		if bare, _, _ := strings.Cut(host, ":"); bare != strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") || strings.HasSuffix(host, ":443") {
			t.Errorf("%q is at %s", raw, host)
		}
		if at == "" || path.Clean("/"+at) != "/"+at || strings.ContainsAny(at, "\\%;?#") {
			t.Errorf("%q is %s: its path is not plain", raw, name)
		}
		if asked := strings.TrimSuffix(u.Path, "/"); asked != "/"+at && asked != "/"+at+gitSuffix {
			t.Errorf("%q is %s, and Git asks for %s", raw, name, asked)
		}
		if again, err := Repository(scheme + host + (&url.URL{Path: "/" + at + gitSuffix}).EscapedPath()); err != nil || again != name {
			t.Errorf("%q is %s, and that is %s: %v", raw, name, again, err)
		}
	})
}

// TestRepositoryGlobs are written with and without what repositories have in their URLs.
func TestRepositoryGlobs(t *testing.T) {
	for glob, tc := range map[string]struct{ match, other string }{
		"git.example.com/team/*":                  {"git.example.com/team/shop", "git.example.com/team git.example.com/team/a/b git.example.com/Team/shop git.example.com:8443/team/shop git.example.com.evil.org/team/shop evil.org/git.example.com/team/shop"},
		"https://Git.Example.com:443/team/*.git":  {"git.example.com/team/shop", "git.example.com/other/shop"},
		"git.example.com/team/**":                 {"git.example.com/team/a git.example.com/team/a/b", "git.example.com/team git.example.com/teams/a"},
		"git.example.com:8443/shop":               {"git.example.com:8443/shop", "git.example.com/shop git.example.com:8444/shop"},
		"*.example.com/**":                        {"git.example.com/a a.b.example.com/c/d", "example.com/a evil.org/x.example.com/a git.example.com:8443/a gitexample.com/a"},
		"*/**":                                    {"a/b a.b:8443/c/d", ""},
		"git.example.com/team/.git":               {"git.example.com/team/.git", "git.example.com/team"},
		"git.example.com/shop.git.git":            {"git.example.com/shop.git", "git.example.com/shop"},
		"git.example.com/team/web-[0-9].git":      {"git.example.com/team/web-1", "git.example.com/team/web-x"},
		"https://git.example.com/gr\u00fcn/shop?": {"git.example.com/grün/shop1", "git.example.com/grün/shop"},
	} {
		g, err := repositoryGlob(glob)
		if err != nil {
			t.Errorf("%s: %v", glob, err)
			continue
		}
		for name := range strings.FieldsSeq(tc.match) {
			if !g.Match(name) {
				t.Errorf("%s does not match %s", glob, name)
			}
		}
		for name := range strings.FieldsSeq(tc.other) {
			if g.Match(name) {
				t.Errorf("%s matches %s", glob, name)
			}
		}
	}
	for glob, want := range map[string]string{
		"": "write host/path", "shop": "write host/path", "https://git.example.com": "write host/path", "/shop": "write host/path", "git.example.com/": "write host/path", "**": "write host/path",
		"**/shop": "instead of a host", "git@git.example.com/a": "has a user", "http://git.example.com/a": "empty name", "git.example.com//a": "empty name", "git.example.com/{a,b}": "braces", "git.example.com/a/": "empty name",
	} {
		if err := ValidRepository(glob); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", glob, err, want)
		}
	}
}
