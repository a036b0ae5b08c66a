// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
)

// MaxHello bounds the bytes in which a ClientHello must be complete: one full TLS record. Real ones have 0.2 to 2 KiB.
const MaxHello = recordHeader + 1<<14

// MaxRecord bounds a TLS record, encrypted or not (RFC 8446, 5.2).
const MaxRecord = recordHeader + 1<<14 + 256

// ErrShort says that the bytes are the beginning of a message, and more are needed.
var ErrShort = errors.New("incomplete message")

// Numbers of TLS (RFC 8446 and its registry).
const (
	recordHeader         = 5
	recordCipherSpec     = 20
	recordAlert          = 21
	recordHandshake      = 22
	recordData           = 23
	handshakeHeader      = 4
	handshakeClientHello = 1
	handshakeServerHello = 2
	versionLength        = 2
	randomLength         = 32
	extensionServerName  = 0
	extensionECH         = 0xfe0d // encrypted_client_hello
	extensionESNI        = 0xffce // its draft
	nameTypeHost         = 0
)

// retryRandom is the random value of a ServerHello that asks for another ClientHello (RFC 8446, 4.1.3).
var retryRandom = sha256.Sum256([]byte("HelloRetryRequest"))

// CheckHello reads the first bytes that a client sends through a connection to target, and refuses anything but a TLS handshake for exactly
// that host. Otherwise an allowed name would be a door to every host behind the same address (domain fronting). A hidden name (encrypted
// ClientHello) is refused too. It returns the length of the ClientHello in its records: it does not check the bytes that follow. ErrShort
// means that it needs more bytes, up to MaxHello.
func CheckHello(start []byte, target Target) (length int, err error) {
	name, length, err := serverName(start)
	switch {
	case errors.Is(err, ErrShort) && len(start) < MaxHello:
		return 0, ErrShort
	case err != nil:
		return 0, &Refusal{Reason: ReasonNotTLS, Message: fmt.Sprintf("%s: what the client sends cannot be read as a TLS ClientHello: %v", target, err)}
	case lower(name) != target.Host:
		return 0, &Refusal{Reason: ReasonServerName, Message: fmt.Sprintf("%s: the TLS handshake asks for server name %s", target, strconv.QuoteToASCII(name))}
	}
	return length, nil
}

// AsksAgain says whether the first bytes of a server's answer ask for another ClientHello (HelloRetryRequest). Check that one like the
// first: a server may use the name in it. ErrShort means that AsksAgain needs more bytes.
func AsksAgain(start []byte) (bool, error) {
	const random = recordHeader + handshakeHeader + versionLength
	switch {
	case len(start) > 0 && start[0] != recordHandshake: // an alert, or no TLS at all
		return false, nil
	case len(start) < random+randomLength:
		return false, ErrShort
	}
	// Servers send it in one record. Of one that does not, nobody could tell here what it asks for.
	if recordLength(start) < random+randomLength || start[recordHeader] != handshakeServerHello {
		return false, &Refusal{Reason: ReasonNotTLS, Message: "what the server answers cannot be read as a TLS ServerHello"}
	}
	return bytes.Equal(start[random:random+randomLength], retryRandom[:]), nil
}

// Skip returns the length of the records before the next handshake message: records that a client may send between two ClientHellos.
// ErrShort means that Skip needs more bytes, also if it can skip all of the given ones.
func Skip(start []byte) (length int, err error) {
	for {
		rest := start[length:]
		if len(rest) == 0 {
			return length, ErrShort
		}
		if rest[0] != recordCipherSpec && rest[0] != recordAlert && rest[0] != recordData {
			return length, nil
		}
		if len(rest) < recordHeader {
			return length, ErrShort
		}
		record := recordLength(rest)
		if len(rest) < record {
			return length, ErrShort
		}
		length += record
	}
}

// serverName finds the name in a ClientHello, "" when it has none, and the length of the records that it is in.
func serverName(stream []byte) (name string, length int, err error) {
	hello, length, err := clientHello(stream)
	if err != nil {
		return "", 0, err
	}
	// Version, random, session id, cipher suites, compression methods.
	ok := hello.skip(versionLength+randomLength) && hello.skipVector8() && hello.skipVector16() && hello.skipVector8()
	if !ok {
		return "", 0, errors.New("malformed fields")
	}
	if len(hello) == 0 {
		return "", length, nil
	}
	extensions, ok := hello.vector16()
	if !ok || len(hello) != 0 {
		return "", 0, errors.New("malformed extensions")
	}
	seen := false
	for len(extensions) > 0 {
		kind, ok1 := extensions.uint16()
		content, ok2 := extensions.vector16()
		switch {
		case !ok1 || !ok2:
			return "", 0, errors.New("malformed extension")
		case kind == extensionECH || kind == extensionESNI:
			return "", 0, errors.New("the server name is encrypted")
		case kind == extensionServerName:
			if name, ok = content.hostName(); !ok || seen {
				return "", 0, errors.New("malformed server name")
			}
			seen = true
		}
	}
	return name, length, nil
}

// clientHello joins the records at the start of the stream until they hold the whole first handshake message, and gives the
// length of these records.
func clientHello(stream []byte) (message cursor, read int, err error) {
	for {
		if len(message) > 0 && message[0] != handshakeClientHello {
			return nil, 0, errors.New("another handshake message")
		}
		if len(message) >= handshakeHeader {
			length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			switch {
			case length > MaxHello:
				return nil, 0, errors.New("too long")
			case len(message)-handshakeHeader > length:
				return nil, 0, errors.New("more than one handshake message")
			case len(message)-handshakeHeader == length:
				return message[handshakeHeader:], read, nil
			}
		}
		length, err := handshakeRecord(stream)
		if err != nil {
			return nil, 0, err
		}
		message = append(message, stream[recordHeader:length]...)
		stream, read = stream[length:], read+length
	}
}

// handshakeRecord gives the length of the record at the start of the stream.
func handshakeRecord(stream []byte) (int, error) {
	switch {
	case len(stream) > 0 && stream[0] != recordHandshake, len(stream) > 1 && stream[1] != 3:
		return 0, errors.New("no handshake record")
	case len(stream) < recordHeader:
		return 0, ErrShort
	}
	length := recordLength(stream)
	switch {
	case length == recordHeader, length > MaxHello:
		return 0, errors.New("malformed record")
	case len(stream) < length: // what follows a message in its record is seen only in the whole of it
		return 0, ErrShort
	}
	return length, nil
}

// recordLength is that of a record with its header.
func recordLength(start []byte) int { return recordHeader + (int(start[3])<<8 | int(start[4])) }

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
