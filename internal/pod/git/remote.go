// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Remote is a repository reached over HTTPS. Its secrets are handed to git in the environment: they are never on a
// command line, never on disk, and never in an error's text.
type Remote struct {
	// URL without credentials; only https is spoken.
	URL string
	// Username and Password for basic authentication; both empty for a public repository. If only Password is set (an access token), the user is "git".
	Username string
	Password string
	// CAFile with the CAs that vouch for the server, and no others; empty means the system's CAs.
	CAFile string
	// Proxy for every connection; nil for none.
	Proxy *Proxy
	// Silence of the server that ends an operation; 0 is DefaultSilence.
	Silence time.Duration
}

// Proxy is an HTTP CONNECT proxy.
type Proxy struct {
	// URL, such as https://10.0.0.7:8444.
	URL string
	// User and Password for basic authentication towards the proxy.
	User     string
	Password string
	// CAFile with the CAs that vouch for an https proxy. The system's folder of CAs vouches for it too, if curl has one: Git has no setting for
	// this folder. Empty means the system's CAs.
	CAFile string
}

// noFolder is in place of the system's folder of CAs, which curl reads beside a file of CAs: it would trust all of them, and to parse them takes
// most of the time of a small fetch. GnuTLS and OpenSSL take what is no folder for an empty one. No file can appear below this path.
const noFolder = "/dev/null"

// settings that reach this remote, or why they cannot be made.
func (r Remote) settings() ([]setting, error) {
	target, err := parseURL("repository", r.URL)
	if err != nil {
		return nil, err
	}
	if target.Scheme != "https" {
		return nil, &remoteError{kind: ErrUnreachable, advice: fmt.Sprintf("%s: only https:// is spoken; change the repository's URL", r.URL)}
	}
	s := []setting{
		{"http.sslVerify", "true"},
		// Over HTTP/2, curl may ask for more of a request that has ended. Older versions of Git then read from a process that waits for the answer,
		// until the silence is over (https://github.com/git/git/pull/1608).
		{"http.version", "HTTP/1.1"},
		{"fetch.fsckObjects", "true"},
	}
	s = append(s, tolerated()...)
	if r.CAFile != "" {
		s = append(s, setting{"http.sslCAInfo", r.CAFile}, setting{"http.sslCAPath", noFolder})
	}
	if r.Password != "" {
		// The scope is compared only with the repository's URL. After a redirect git asks the new address with all the headers
		// of the old one, whatever their scope: what has credentials follows none.
		scope := "http." + target.Scheme + "://" + target.Host + "/.extraHeader"
		s = append(s, setting{scope, "Authorization: Basic " + basic(r.Username, r.Password)}, setting{"http.followRedirects", "false"})
	}
	proxy, err := r.Proxy.settings()
	return append(s, proxy...), err
}

// ask runs a command that asks the remote.
func (r runner) ask(ctx context.Context, remote Remote, c call) ([]byte, error) {
	c.silence = cmp.Or(remote.Silence, DefaultSilence)
	return r.run(ctx, c)
}

// tolerated are flaws of old commits that the histories of well-known projects hold and that harm nobody.
func tolerated() []setting {
	var s []setting
	for _, flaw := range []string{
		"badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode", "missingNameBeforeEmail", "missingEmail", "badEmail",
		"missingTaggerEntry", "missingSpaceBeforeEmail", "zeroPaddedDate", "badFilemode",
	} {
		s = append(s, setting{"fetch.fsck." + flaw, "ignore"})
	}
	return s
}

func (p *Proxy) settings() ([]setting, error) {
	if p == nil {
		return []setting{{"http.proxy", ""}}, nil
	}
	target, err := parseURL("proxy", p.URL)
	if err != nil {
		return nil, err
	}
	if p.User != "" || p.Password != "" {
		target.User = url.UserPassword(p.User, p.Password)
	}
	s := []setting{{"http.proxy", target.String()}, {"http.proxyAuthMethod", "basic"}}
	if p.CAFile != "" {
		s = append(s, setting{"http.proxySSLCAInfo", p.CAFile})
	}
	return s, nil
}

func parseURL(what, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		// The text is left out where it may hold credentials.
		return nil, &remoteError{kind: ErrUnreachable, advice: what + " URL must be like https://host/path, without credentials in it"}
	}
	return u, nil
}

// basic is the value of basic authentication.
func basic(user, password string) string {
	if user == "" {
		user = "git"
	}
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// checkName refuses what Git does not allow in the name of a branch or tag, before it is put on a command line.
func checkName(what, name string) error {
	bad := name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, ".") || name == "@" ||
		mentions(name, "..", "@{", "//", "/.", ".lock/") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".lock") ||
		strings.ContainsAny(name, " ~^:?*[\\") || strings.ContainsFunc(name, unicode.IsControl)
	if bad {
		return fmt.Errorf("%s %q is not a name that Git allows: change it", what, name)
	}
	return nil
}
