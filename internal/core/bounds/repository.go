// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
)

const (
	scheme    = "https://"
	gitSuffix = ".git"
	// httpsPort is the port of a URL that names none.
	httpsPort = 443
)

// hostname is a name of letters, digits, dots and hyphens, in lower case.
var hostname = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// Repository is the normalized form of a repository's URL for comparison with globs: host/path. The host is in lower case, with a port if
// it is not 443. The path is decoded, without ".git" at its end. Unlike the key of a lock it never treats two repositories as one. The case
// of a path counts, and a URL that a server may read in more than one way is an error.
func Repository(raw string) (string, error) {
	if !utf8.ValidString(raw) || len(raw) < len(scheme) || !strings.EqualFold(raw[:len(scheme)], scheme) {
		return "", errors.New("it does not begin with https://")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Opaque != "":
		return "", errors.New("it is no URL") // the error of url.Parse has the URL in it
	case u.User != nil:
		return "", errors.New("it has a user or a password in it")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return "", errors.New("it has a query or a fragment")
	}
	host, err := hostOf(u)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	names := strings.Split(path, "/")
	for i, name := range names {
		if names[i], err = plainName(name); err != nil {
			return "", err
		}
	}
	return host + "/" + withoutGit(strings.Join(names, "/")), nil
}

// hostOf a URL, with its port where that is not the one of https.
func hostOf(u *url.URL) (string, error) {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if !hostname.MatchString(host) {
		return "", errors.New("its host is not a name of letters, digits, dots and hyphens")
	}
	if u.Port() == "" {
		return host, nil
	}
	port, err := strconv.Atoi(u.Port())
	switch {
	case err != nil || port < 1 || port > 65535:
		return "", errors.New("its port is not from 1 to 65535")
	case port == httpsPort:
		return host, nil
	}
	return host + ":" + strconv.Itoa(port), nil
}

// plainName decodes a name of a path. Servers read differently what is refused: they drop names that are empty or a dot, go up at two dots, cut
// parameters off at a semicolon, and decode once more than the server before them.
func plainName(encoded string) (string, error) {
	name, err := url.PathUnescape(encoded)
	switch {
	case err != nil || !utf8.ValidString(name):
		return "", errors.New("its path is not percent-encoded UTF-8")
	case name == "" || name == "." || name == "..":
		return "", fmt.Errorf("its path has the name %q: write it without empty names, . and ..", name)
	case strings.ContainsAny(name, `/\%;?#`):
		return "", errors.New(`its path has an encoded slash or one of \ % ; ? # in a name`)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return "", errors.New("its path has spaces or invisible characters in a name")
	}
	return name, nil
}

// withoutGit is a path without ".git" at its end, where that is not all of a name.
func withoutGit(path string) string {
	short, cut := strings.CutSuffix(path, gitSuffix)
	if !cut || short == "" || strings.HasSuffix(short, "/") {
		return path
	}
	return short
}

// ValidRepository says why a glob of repositories cannot be used.
func ValidRepository(glob string) error {
	_, err := repositoryGlob(glob)
	return err
}

// repositoryGlob reads a glob in the form that repositories have.
func repositoryGlob(text string) (judge.Glob, error) {
	host, path, _ := strings.Cut(strings.TrimPrefix(text, scheme), "/")
	switch {
	case host == "" || path == "":
		return judge.Glob{}, fmt.Errorf("glob %s: write host/path, such as git.example.com/team/*", judge.Escape(text))
	case strings.Contains(host, "**"):
		return judge.Glob{}, fmt.Errorf("glob %s: begins with ** instead of a host; write the host, in which * stands for a part of it", judge.Escape(text))
	case strings.Contains(host, "@"):
		return judge.Glob{}, fmt.Errorf("glob %s: has a user; write host/path, such as git.example.com/team/*", judge.Escape(text))
	}
	host = strings.TrimSuffix(strings.ToLower(host), ":"+strconv.Itoa(httpsPort))
	return judge.ParseGlob(host + "/" + withoutGit(path))
}
