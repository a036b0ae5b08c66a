// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"fmt"
	"strconv"
)

// MaxHello bounds the bytes in which a ClientHello must be complete: one full TLS record. Real ones have 0.2 to 2 KiB.
const MaxHello = recordHeader + 1<<14

// ErrShort says that the bytes are the beginning of a ClientHello, and more are needed.
var ErrShort = errors.New("incomplete ClientHello")

// Numbers of TLS (RFC 8446 and its registry).
const (
	recordHeader         = 5
	recordHandshake      = 22
	handshakeHeader      = 4
	handshakeClientHello = 1
	extensionServerName  = 0
	extensionECH         = 0xfe0d // encrypted_client_hello
	extensionESNI        = 0xffce // its draft
	nameTypeHost         = 0
)

// CheckHello reads the first bytes that a client sends through a connection to target, and refuses what is not a TLS
// handshake for exactly that host: otherwise an allowed name would be a door to every host behind the same address
// (domain fronting). A hidden name (encrypted ClientHello) is refused too. For a target that is an IP address there
// must be no name. ErrShort means that more bytes are needed, up to MaxHello.
func CheckHello(start []byte, target Target) error {
	name, err := serverName(start)
	switch {
	case errors.Is(err, ErrShort) && len(start) < MaxHello:
		return ErrShort
	case err != nil:
		return &Refusal{Reason: ReasonNotTLS, Message: fmt.Sprintf("%s: what the client sends cannot be read as a TLS ClientHello: %v", target, err)}
	case target.Address.IsValid() && name == "":
		return nil
	case target.Address.IsValid() || lower(name) != target.Host:
		return &Refusal{Reason: ReasonServerName, Message: fmt.Sprintf("%s: the TLS handshake asks for server name %s", target, strconv.QuoteToASCII(name))}
	}
	return nil
}

// serverName finds the name in a ClientHello; "" when it has none.
func serverName(stream []byte) (string, error) {
	hello, err := clientHello(stream)
	if err != nil {
		return "", err
	}
	// Version, random, session id, cipher suites, compression methods.
	ok := hello.skip(2+32) && hello.skipVector8() && hello.skipVector16() && hello.skipVector8()
	if !ok {
		return "", errors.New("malformed fields")
	}
	if len(hello) == 0 {
		return "", nil
	}
	extensions, ok := hello.vector16()
	if !ok || len(hello) != 0 {
		return "", errors.New("malformed extensions")
	}
	name, seen := "", false
	for len(extensions) > 0 {
		kind, ok1 := extensions.uint16()
		content, ok2 := extensions.vector16()
		switch {
		case !ok1 || !ok2:
			return "", errors.New("malformed extension")
		case kind == extensionECH || kind == extensionESNI:
			return "", errors.New("the server name is encrypted")
		case kind == extensionServerName:
			if name, ok = content.hostName(); !ok || seen {
				return "", errors.New("malformed server name")
			}
			seen = true
		}
	}
	return name, nil
}

// clientHello joins the records at the start of the stream until they hold the whole first handshake message.
func clientHello(stream []byte) (cursor, error) {
	var message cursor
	for {
		if len(message) > 0 && message[0] != handshakeClientHello {
			return nil, errors.New("another handshake message")
		}
		if len(message) >= handshakeHeader {
			length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			switch {
			case length > MaxHello:
				return nil, errors.New("too long")
			case len(message)-handshakeHeader > length:
				return nil, errors.New("more than one handshake message")
			case len(message)-handshakeHeader == length:
				return message[handshakeHeader:], nil
			}
		}
		if len(stream) > 0 && stream[0] != recordHandshake || len(stream) > 1 && stream[1] != 3 {
			return nil, errors.New("no handshake record")
		}
		if len(stream) < recordHeader {
			return nil, ErrShort
		}
		length := int(stream[3])<<8 | int(stream[4])
		if length == 0 || length > 1<<14 {
			return nil, errors.New("malformed record")
		}
		available := min(length, len(stream)-recordHeader)
		message = append(message, stream[recordHeader:recordHeader+available]...)
		stream = stream[recordHeader+available:]
	}
}

// cursor reads TLS's presentation language from the front of its bytes.
type cursor []byte

func (c *cursor) skip(n int) bool {
	if len(*c) < n {
		return false
	}
	*c = (*c)[n:]
	return true
}

func (c *cursor) uint16() (int, bool) {
	if len(*c) < 2 {
		return 0, false
	}
	n := int((*c)[0])<<8 | int((*c)[1])
	return n, c.skip(2)
}

func (c *cursor) vector16() (cursor, bool) {
	n, ok := c.uint16()
	if !ok || len(*c) < n {
		return nil, false
	}
	content := (*c)[:n]
	return content, c.skip(n)
}

func (c *cursor) skipVector16() bool {
	_, ok := c.vector16()
	return ok
}

func (c *cursor) skipVector8() bool {
	return len(*c) > 0 && c.skip(1+int((*c)[0]))
}

// hostName reads a server_name extension with exactly one host name in it.
func (c *cursor) hostName() (string, bool) {
	list, ok := c.vector16()
	if !ok || len(*c) != 0 || len(list) == 0 || list[0] != nameTypeHost || !list.skip(1) {
		return "", false
	}
	name, ok := list.vector16()
	if !ok || len(list) != 0 || !isName(lower(string(name))) {
		return "", false
	}
	return string(name), true
}
