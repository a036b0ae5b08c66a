// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"
)

// recorder is a connection that keeps what a TLS client sends first and then hangs up.
type recorder struct {
	net.Conn
	sent bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error)      { return r.sent.Write(p) }
func (r *recorder) Read([]byte) (int, error)         { return 0, io.EOF }
func (r *recorder) Close() error                     { return nil }
func (r *recorder) SetDeadline(time.Time) error      { return nil }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

// hello is what Go's own TLS client sends.
func hello(tb testing.TB, config *tls.Config) []byte {
	tb.Helper()
	config.InsecureSkipVerify = config.ServerName == ""
	r := &recorder{}
	if err := tls.Client(r, config).HandshakeContext(context.Background()); err == nil {
		tb.Fatal("a handshake without a server succeeded")
	}
	return r.sent.Bytes()
}

// extension puts one more extension into a ClientHello.
func extension(hello []byte, kind uint16, content []byte) []byte {
	ext := binary.BigEndian.AppendUint16(nil, kind)
	ext = binary.BigEndian.AppendUint16(ext, uint16(len(content)))
	ext = append(ext, content...)
	out := append(bytes.Clone(hello), ext...)
	grow := func(at, size int) {
		var n uint64
		for _, b := range out[at : at+size] {
			n = n<<8 | uint64(b)
		}
		n += uint64(len(ext))
		for i := range size {
			out[at+size-1-i] = byte(n >> (8 * i))
		}
	}
	grow(3, 2)
	grow(6, 3)
	c := cursor(hello[9:])
	c.skip(34)
	c.skipVector8()
	c.skipVector16()
	c.skipVector8()
	grow(len(hello)-len(c), 2)
	return out
}

// split cuts the handshake message into records of at most n bytes.
func split(hello []byte, n int) []byte {
	var out []byte
	for rest := hello[5:]; len(rest) > 0; {
		part := rest[:min(n, len(rest))]
		rest = rest[len(part):]
		out = append(out, 22, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

func sni(names ...string) []byte {
	var list []byte
	for _, name := range names {
		list = append(list, 0, byte(len(name)>>8), byte(len(name)))
		list = append(list, name...)
	}
	return append([]byte{byte(len(list) >> 8), byte(len(list))}, list...)
}

func TestCheckHello(t *testing.T) {
	plain := hello(t, &tls.Config{ServerName: "git.example.com"})
	nameless := hello(t, &tls.Config{})
	target := Target{Host: "git.example.com", Port: 443}
	ip, err := ParseTarget("10.0.0.1:443")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		start  []byte
		target Target
		want   Reason // "" means allowed
	}{
		"the host itself":              {plain, target, ""},
		"TLS 1.2":                      {hello(t, &tls.Config{ServerName: "git.example.com", MaxVersion: tls.VersionTLS12}), target, ""},
		"capital letters":              {extension(nameless, 0, sni("GIT.example.COM")), target, ""},
		"many records":                 {split(plain, 7), target, ""},
		"another host":                 {hello(t, &tls.Config{ServerName: "evil.example"}), target, ReasonServerName},
		"host below the host":          {hello(t, &tls.Config{ServerName: "x.git.example.com"}), target, ReasonServerName},
		"no name":                      {nameless, target, ReasonServerName},
		"no name for an address":       {nameless, ip, ReasonServerName},
		"name for an address":          {plain, ip, ReasonServerName},
		"empty name":                   {extension(nameless, 0, sni("")), target, ReasonNotTLS},
		"name with NUL":                {extension(nameless, 0, sni("git.example.com\x00")), target, ReasonNotTLS},
		"name with a final dot":        {extension(nameless, 0, sni("git.example.com.")), target, ReasonNotTLS},
		"two names":                    {extension(nameless, 0, sni("git.example.com", "evil.example")), target, ReasonNotTLS},
		"two name extensions":          {extension(plain, 0, sni("git.example.com")), target, ReasonNotTLS},
		"name of another type":         {extension(nameless, 0, []byte{0, 4, 1, 0, 1, 'a'}), target, ReasonNotTLS},
		"encrypted ClientHello":        {extension(plain, 0xfe0d, []byte{0, 0, 1}), target, ReasonNotTLS},
		"encrypted name, as drafted":   {extension(plain, 0xffce, []byte{0, 0, 1}), target, ReasonNotTLS},
		"plain HTTP":                   {[]byte("GET / HTTP/1.1\r\n"), target, ReasonNotTLS},
		"SSH":                          {[]byte("SSH-2.0-OpenSSH"), target, ReasonNotTLS},
		"SSL 2":                        {[]byte{0x80, 0x2e, 1, 0, 2}, target, ReasonNotTLS},
		"alert":                        {[]byte{21, 3, 1, 0, 2, 1, 0}, target, ReasonNotTLS},
		"empty record":                 {[]byte{22, 3, 1, 0, 0}, target, ReasonNotTLS},
		"record beyond the limit":      {[]byte{22, 3, 1, 0x40, 1}, target, ReasonNotTLS},
		"message beyond the limit":     {[]byte{22, 3, 1, 0, 4, 1, 1, 0, 0}, target, ReasonNotTLS},
		"server's message":             {[]byte{22, 3, 1, 0, 1, 2}, target, ReasonNotTLS},
		"something after the message":  {trailing(plain), target, ReasonNotTLS},
		"extensions that end too soon": {truncated(plain), target, ReasonNotTLS},
		"no end within the limit":      {endless(), target, ReasonNotTLS},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			length, err := CheckHello(test.start, test.target)
			if test.want == "" && length != len(test.start) || test.want != "" && length != 0 {
				t.Errorf("%d of %d bytes are the ClientHello", length, len(test.start))
			}
			var refusal *Refusal
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.As(err, &refusal) || refusal.Reason != test.want):
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// truncated is a ClientHello whose lengths agree but for that of its extensions.
func truncated(hello []byte) []byte {
	out := bytes.Clone(hello[:len(hello)-1])
	binary.BigEndian.PutUint16(out[3:], uint16(len(out)-5))
	out[6], out[7], out[8] = 0, byte((len(out)-9)>>8), byte(len(out)-9)
	return out
}

// trailing is a record with one byte after the ClientHello.
func trailing(hello []byte) []byte {
	out := append(bytes.Clone(hello), 0)
	binary.BigEndian.PutUint16(out[3:], uint16(len(out)-5))
	return out
}

func endless() []byte {
	out := append([]byte{22, 3, 1, 0x3f, 0xff, 1, 0, 0x40, 0}, make([]byte, MaxHello)...)
	return out[:MaxHello]
}

// TestCheckHelloWaits gives it one byte more at a time: it asks for more until it has all of it, and never says yes
// before.
func TestCheckHelloWaits(t *testing.T) {
	whole := split(hello(t, &tls.Config{ServerName: "git.example.com"}), 100)
	target := Target{Host: "git.example.com", Port: 443}
	for n := range whole {
		if _, err := CheckHello(whole[:n], target); !errors.Is(err, ErrShort) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	// What is sent early is no part of it.
	if length, err := CheckHello(append(bytes.Clone(whole), 23, 3, 3, 0, 1, 0), target); err != nil || length != len(whole) {
		t.Fatal(length, err)
	}
	// The record says that there is more in it than the message.
	half := trailing(whole[:105])[:105]
	if _, err := CheckHello(half, target); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
	if _, err := CheckHello(trailing(hello(t, &tls.Config{ServerName: "git.example.com"})), target); err == nil || errors.Is(err, ErrShort) {
		t.Errorf("a message after the ClientHello: %v", err)
	}
}

// serverHello is what Go's own TLS server answers first.
func serverHello(tb testing.TB, start []byte, config *tls.Config) []byte {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"git.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	conn := &player{from: bytes.NewReader(start)}
	_ = tls.Server(conn, config).HandshakeContext(context.Background())
	return conn.sent.Bytes()
}

func TestAsksAgain(t *testing.T) {
	first := hello(t, &tls.Config{ServerName: "git.example.com"})
	for name, test := range map[string]struct {
		answer []byte
		want   bool
	}{
		"TLS 1.3":                   {serverHello(t, first, &tls.Config{}), false},
		"TLS 1.2":                   {serverHello(t, first, &tls.Config{MaxVersion: tls.VersionTLS12}), false},
		"a group that was not sent": {serverHello(t, first, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP521}}), true},
		"an alert":                  {serverHello(t, first, &tls.Config{CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}, MaxVersion: tls.VersionTLS12}), false},
		"no TLS at all":             {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), false},
	} {
		again, err := AsksAgain(test.answer)
		if err != nil || again != test.want {
			t.Errorf("%s: %t, %v; the answer is %x", name, again, err, test.answer[:min(len(test.answer), 50)])
		}
		if again, err := AsksAgain(test.answer[:0]); !errors.Is(err, ErrShort) || again {
			t.Errorf("%s: of nothing it says %t, %v", name, again, err)
		}
	}
	retry := serverHello(t, first, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP521}})
	for n := range 43 {
		if again, err := AsksAgain(retry[:n]); !errors.Is(err, ErrShort) || again {
			t.Errorf("of %d bytes it says %t, %v", n, again, err)
		}
	}
	var refusal *Refusal
	if again, err := AsksAgain(split(retry, 8)); !errors.As(err, &refusal) || again {
		t.Errorf("of an answer in pieces it says %t, %v", again, err)
	}
}

func TestSkip(t *testing.T) {
	cipherSpec, data, alert := []byte{20, 3, 3, 0, 1, 1}, append([]byte{23, 3, 3, 1, 2}, make([]byte, 0x102)...), []byte{21, 3, 3, 0, 2, 2, 40}
	next := hello(t, &tls.Config{ServerName: "git.example.com"})
	for name, test := range map[string]struct {
		start []byte
		want  int
		short bool
	}{
		"nothing":                     {nil, 0, true},
		"a ClientHello":               {next, 0, false},
		"a change of keys before":     {slices.Concat(cipherSpec, next), 6, false},
		"early data before":           {slices.Concat(data, cipherSpec, data, next[:1]), 2*len(data) + 6, false},
		"no handshake message to see": {slices.Concat(data, data), 2 * len(data), true},
		"a record that is not whole":  {slices.Concat(cipherSpec, data[:len(data)-1]), 6, true},
		"a header that is not whole":  {slices.Concat(cipherSpec, data[:4]), 6, true},
		"an alert":                    {alert, 7, true},
		"no TLS":                      {[]byte("GET / HTTP/1.1"), 0, false},
	} {
		length, err := Skip(test.start)
		if length != test.want || errors.Is(err, ErrShort) != test.short || err != nil && !test.short {
			t.Errorf("%s: %d, %v, want %d", name, length, err, test.want)
		}
	}
}

// serverSaw is the name that Go's TLS server reads from the same bytes.
func serverSaw(start []byte) (string, bool) {
	name, seen := "", false
	errSeen := errors.New("seen")
	conn := &player{from: bytes.NewReader(start)}
	_ = tls.Server(conn, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name, seen = info.ServerName, true
		return nil, errSeen
	}}).HandshakeContext(context.Background())
	return name, seen
}

type player struct {
	recorder
	from *bytes.Reader
}

func (p *player) Read(b []byte) (int, error)      { return p.from.Read(b) }
func (p *player) SetReadDeadline(time.Time) error { return nil }

// FuzzCheckHello: what is let through is read in the same way by a real TLS server.
func FuzzCheckHello(f *testing.F) {
	plain := hello(f, &tls.Config{ServerName: "git.example.com"})
	nameless := hello(f, &tls.Config{})
	f.Add(plain)
	f.Add(nameless)
	f.Add(split(plain, 11))
	f.Add(extension(plain, 0xfe0d, []byte{0}))
	f.Add(extension(nameless, 0, sni("git.example.com", "evil.example")))
	f.Add(hello(f, &tls.Config{ServerName: "git.example.com", MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}))
	target := Target{Host: "git.example.com", Port: 443}
	f.Fuzz(func(t *testing.T, start []byte) {
		length, err := CheckHello(start, target)
		if again, other := CheckHello(bytes.Clone(start), target); (err == nil) != (other == nil) || again != length {
			t.Fatalf("%d, %v, then %d, %v", length, err, again, other)
		}
		// The two others read what any server or client sends.
		if again, other := AsksAgain(start); again && other != nil {
			t.Error("it asks again, and cannot be read")
		}
		if skipped, _ := Skip(start); skipped > len(start) {
			t.Errorf("of %d bytes %d are skipped", len(start), skipped)
		}
		if err != nil {
			return
		}
		if length > len(start) || length > MaxHello {
			t.Fatalf("of %d bytes %d are the ClientHello", len(start), length)
		}
		// What is passed on is judged the same without what follows.
		if again, err := CheckHello(start[:length], target); err != nil || again != length {
			t.Errorf("alone it is %d of %d bytes, %v", again, length, err)
		}
		if name, seen := serverSaw(start); seen && lower(name) != target.Host {
			t.Errorf("let through, but a server sees %q", name)
		}
	})
}
