// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"strconv"
	"strings"
)

const (
	// namePrefix of the Leases of locks.
	namePrefix = "tidewaiter-lock-"
	// nameDigits of the digest in a Lease's name: 160 bits, so that nobody finds two locks with one name.
	nameDigits = 40
	// httpsPort is the port of a URL that names none.
	httpsPort = "443"
)

// Repository is the common form, host/path, of all URLs that count as the same repository. If servers differ, such as in the case of a
// path, it treats two repositories as one. One lock too many only makes a Feature wait, and one lock too few protects nothing.
func Repository(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return strings.ToLower(raw)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if n, err := strconv.Atoi(u.Port()); err == nil && strconv.Itoa(n) != httpsPort {
		host = host + ":" + strconv.Itoa(n)
	}
	name := path.Clean("/" + strings.ToLower(u.Path))
	for strings.HasSuffix(name, ".git") && name != "/.git" {
		name = strings.TrimRight(strings.TrimSuffix(name, ".git"), "/")
	}
	return host + name
}

// Name is the name of the Lease that is the lock of a repository's contract.
func Name(repository, contract string) string {
	sum := sha256.Sum256([]byte(Repository(repository) + "\n" + contract))
	return namePrefix + hex.EncodeToString(sum[:])[:nameDigits]
}
