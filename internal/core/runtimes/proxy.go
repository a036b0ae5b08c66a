// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// ProxyEnv are the variables by which an agent's HTTP clients find its proxy, in both spellings: some clients know one of them
// alone. The proxy carries https:// alone, and says so to those who ask it for http://; without it they would look for a name
// service that does not answer. What listens in the pod itself is reached directly, models and tools among it; from clients that do not know
// NO_PROXY the proxy takes requests for these two.
func ProxyEnv(url string) []string {
	const direct = "127.0.0.1,localhost,::1"
	return []string{
		"HTTPS_PROXY=" + url, "https_proxy=" + url, "HTTP_PROXY=" + url, "http_proxy=" + url, "NO_PROXY=" + direct, "no_proxy=" + direct,
	}
}
