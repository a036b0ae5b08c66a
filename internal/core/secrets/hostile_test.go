// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
)

// hostile are texts that are hard to search: what is repeated, by name.
func hostile() map[string]string {
	const b64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	const value = "x7Kq92mZpL4wVt8sB3nR6yH1cD5fG0jA"
	r := rand.New(rand.NewPCG(5, 6))
	random := func(from string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(from[r.IntN(len(from))])
		}
		return b.String()
	}
	bytes := make([]byte, 1<<16)
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	texts := map[string]string{
		"base64 in one line": random(b64, 1<<20),
		"base64 in lines":    random(b64, 76) + "\n",
		"newlines":           "\n", "zeros": "\x00", "dashes": "-", "quotes": `"'`, "equals": "=", "letters": "a", "key": "key", "key and space": "key ",
		"random bytes":                     string(bytes),
		"assignments":                      "key = '" + value + "'\n",
		"assignments without line ends":    "key='" + value + "',",
		"assignments of assignments":       "key=",
		"names":                            "secret_token_key_password_access_auth: ",
		"headers of keys":                  "-----BEGIN PRIVATE KEY-----\n",
		"headers of keys with long names":  "-----BEGIN" + strings.Repeat(" A", 50) + "PRIVATE KEY-----",
		"headers of keys without ends":     "-----BEGIN PRIVATE KE\n",
		"secrets of Kubernetes":            "kind: secret\n",
		"secrets of Kubernetes without it": "kind: Secret\ndata:\n  a: ",
		"commands":                         "curl -H ", "commands with users": "curl -u a:", "tokens": "sk.ey.s.hf_", "long tokens": strings.Repeat("sk_", 3000) + "\n",
	}
	for i := range table {
		c := &table[i]
		for k, word := range c.keywords {
			texts[fmt.Sprintf("%s %d, the keyword", c.id, k)] = word + " "
			texts[fmt.Sprintf("%s %d, the keyword and a value", c.id, k)] = word + ": '" + value + "'\n"
			texts[fmt.Sprintf("%s %d, the keyword in a token", c.id, k)] = word + "7Kq92mZpL4wVt8s"
		}
		if c.regex != "" {
			re, _ := syntax.Parse(c.regex, syntax.Perl)
			secret := sample(re, r)
			texts[c.id+", almost"] = secret[:len(secret)*9/10] + "~\n"
			texts[c.id] = secret + "\n"
		}
	}
	return texts
}

// repeated repeats a text up to a size.
func repeated(text string, size int) []byte {
	return []byte(strings.Repeat(text, size/len(text)+1)[:size])
}
