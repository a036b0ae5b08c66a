// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// remoteError is an operation on a remote that failed: what kind of failure, what to do, and git's own words.
type remoteError struct {
	kind   error
	advice string
	detail string
}

// Error says what happened and what to do about it.
func (e *remoteError) Error() string {
	text := e.kind.Error() + ": " + e.advice
	if e.detail != "" {
		text += " (git: " + e.detail + ")"
	}
	return text
}

// Unwrap gives one of the errors of this package.
func (e *remoteError) Unwrap() error { return e.kind }

// sha1Only is what to do about a repository with names of another format.
const sha1Only = "use a repository with SHA-1 object names (git init --object-format=sha1), and create a new Feature for it"

// symptom is how a failure shows in git's messages (LC_ALL=C).
type symptom struct {
	kind   error
	advice string
	signs  []string
}

// symptoms in the order they are looked for: a proxy's answer before a server's, a cause before its consequences.
func symptoms() []symptom {
	return []symptom{
		{ErrFull, "give the trusted volume more room", []string{"No space left on device", "Disk quota exceeded"}},
		{ErrDamaged, "repair the repository on the server: git fsck --full there names everything that is wrong", []string{
			// Git says "did not send all necessary objects" also where the machine killed its check.
			"fsck error", "did not receive expected object", "remote: fatal: unable to read ", "remote: fatal: missing ",
			"remote: fatal: bad ", "remote: error: Could not read ", "remote: fatal: Failed to traverse",
		}},
		{ErrEgressDenied, "add the host to egress.git of a SupervisorPolicy, by its name: the gateway never connects to IP addresses", []string{
			"HTTP code 403 from proxy", "CONNECT tunnel failed, response 403",
		}},
		{ErrUnreachable, "the egress proxy did not accept this pod's token; the watchdog tries again with a new one", []string{
			"HTTP code 407 from proxy", "CONNECT tunnel failed, response 407", "HTTP code 401 from proxy", "CONNECT tunnel failed, response 401",
		}},
		{ErrUnreachable, "the egress proxy could not reach the host; check the host name and that it is up", []string{
			"from proxy after CONNECT", "CONNECT tunnel failed", "Proxy CONNECT aborted", "Could not resolve proxy",
		}},
		{ErrUnreachable, "the server redirects to another address, and the watchdog sends no credentials there; let spec.repository.url be that address (many servers want .git at its end)", []string{
			"returned error: 301", "returned error: 302", "returned error: 303", "returned error: 307", "returned error: 308",
		}},
		{ErrAuthFailed, "check user name and password (or token) in the repository's Secret, and that they may do this", []string{
			"could not read Username", "could not read Password", "Authentication failed", "error: 401", "error: 403", "HTTP 401", "HTTP 403",
			"Invalid username or password",
		}},
		{ErrNotFound, "check the URL; a private repository without sufficient credentials looks the same", []string{
			"not found", "error: 404", "HTTP 404", "does not appear to be a git repository",
		}},
		{ErrRevisionNotFound, "check the branch, tag or commit", []string{
			"couldn't find remote ref", "not our ref", "no such remote ref", "unadvertised object",
		}},
		{ErrUnreachable, "the server's certificate is not trusted; put its CA into ca.crt of the repository's Secret", []string{
			"SSL certificate problem", "certificate verification failed", "server certificate", "unable to get local issuer",
		}},
		{ErrObjectFormat, sha1Only, []string{"mismatched algorithms", "unknown object format"}},
		{ErrUnreachable, "only https:// is spoken; change the repository's URL", []string{"transport '"}},
		{ErrUnreachable, "check that the host is up and speaks Git over HTTPS", []string{
			"unable to access", "Could not resolve host", "Failed to connect", "Connection refused", "timed out", "Operation too slow",
			"RPC failed", "early EOF", "hung up", "HTTP 5", "error: 5", "invalid server response", "Empty reply", "valid info/refs",
		}},
	}
}

// classify turns the failure of a remote operation into one of this package's errors. Secrets of the remote are taken
// out of its text. Failures it does not know pass through.
func classify(err error, remote Remote) error {
	if silent, ok := errors.AsType[*silentError](err); ok {
		return &remoteError{kind: ErrUnreachable, advice: silent.Error() + "; check that the host is up, or raise git.silenceTimeout of a SupervisorPolicy where it takes longer to count or to run its hooks"}
	}
	var failed *commandError
	if !errors.As(err, &failed) {
		return err
	}
	detail := scrub(failed.stderr, remote)
	for _, s := range symptoms() {
		if mentions(failed.stderr, s.signs...) {
			return &remoteError{kind: s.kind, advice: s.advice, detail: oneLine(detail)}
		}
	}
	return fmt.Errorf("git %s: %s: %w", failed.name, oneLine(detail), failed.err)
}

// scrub removes secrets from a message.
func scrub(message string, remote Remote) string {
	secrets := []string{remote.Password}
	if remote.Proxy != nil {
		secrets = append(secrets, remote.Proxy.Password)
	}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), userinfo(secret)} {
			message = strings.ReplaceAll(message, form, "[redacted]")
		}
	}
	if remote.Password != "" {
		message = strings.ReplaceAll(message, basic(remote.Username, remote.Password), "[redacted]")
	}
	return message
}

// userinfo is the form that a password has inside a URL.
func userinfo(password string) string {
	_, escaped, _ := strings.Cut(url.UserPassword("u", password).String(), ":")
	return escaped
}

// oneLine makes a message fit for a condition: the lines that say most, without git's hints.
func oneLine(message string) string {
	var kept []string
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimSpace(line[strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r')+1:])
		if line != "" && !strings.HasPrefix(line, "hint:") && !progress(line) {
			kept = append(kept, line)
		}
	}
	const lines, width = 3, 400
	kept = kept[max(0, len(kept)-lines):]
	text := strings.Join(kept, "; ")
	return strings.ToValidUTF8(text[:min(len(text), width)], "")
}

// progress tells whether git says with the line how far it is.
func progress(line string) bool {
	line = strings.TrimPrefix(line, "remote: ")
	for _, phase := range []string{"Enumerating objects:", "Counting objects:", "Compressing objects:", "Writing objects:", "Receiving objects:", "Resolving deltas:", "Unpacking objects:", "Total "} {
		if strings.HasPrefix(line, phase) {
			return true
		}
	}
	return strings.HasPrefix(line, "Delta compression using") || line == "Everything up-to-date"
}

// mentions tells whether any of the phrases is in the message.
func mentions(message string, phrases ...string) bool {
	for _, phrase := range phrases {
		if strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
