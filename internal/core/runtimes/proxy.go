// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

// ProxyEnv are the variables by which an agent's HTTP clients find its proxy, in both spellings: some clients know only one of them. The
// proxy carries only https://, and says so to clients that ask it for http://; without it they would wait for a name service that does not
// answer. Clients reach servers in the pod directly, such as models and tools. For clients that do not know NO_PROXY, the proxy accepts
// requests for these two.
func ProxyEnv(url string) []string {
	const direct = "127.0.0.1,localhost,::1"
	return []string{
		"HTTPS_PROXY=" + url, "https_proxy=" + url, "HTTP_PROXY=" + url, "http_proxy=" + url, "NO_PROXY=" + direct, "no_proxy=" + direct,
	}
}
