// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

// Remote is a repository reached over HTTPS. Nothing of it is ever written to disk or put on a command line but URL
// and file names.
type Remote struct {
	// URL without credentials; only https is spoken.
	URL string
	// Username and Password for basic authentication; both empty for a public repository. With a Password alone (an
	// access token) the user is "git".
	Username string
	Password string
	// CAFile vouches for the server beside the system's own CAs; may be empty.
	CAFile string
	// Proxy that every connection goes through; nil for none.
	Proxy *Proxy
}

// Proxy is an HTTP CONNECT proxy.
type Proxy struct {
	// URL, such as https://10.0.0.7:8444.
	URL string
	// User and Password for basic authentication towards the proxy.
	User     string
	Password string
	// CAFile vouches for an https proxy; may be empty.
	CAFile string
}
