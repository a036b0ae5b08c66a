// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/go-json-experiment/json/v1"
)

// What clients send is read in one pass here. encoding/json goes twice through each level of it; it reads what is not as clients write it, such
// as names in other letters, and says in each case what that means.

// plainText reads a string.
func plainText(value []byte) (text string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	plain, err := jsontext.AppendUnquote(nil, value)
	return string(plain), err == nil
}

// plainMessage reads the role and the content of a message.
func plainMessage(entry []byte) (role string, content json.RawMessage, ok bool) {
	ok = plainMembers(plainDecoder(entry), func(name string, value []byte) (ok bool) {
		switch name {
		case "role":
			role, ok = plainText(value)
			return ok
		case "content":
			content = value
			return true
		}
		return !strings.EqualFold(name, "role") && !strings.EqualFold(name, "content")
	})
	return role, content, ok
}

// plainBlocks reads a list of blocks.
func plainBlocks(list []byte) (blocks []block, ok bool) {
	in := plainDecoder(list)
	if t, err := in.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, false
	}
	for in.PeekKind() == '{' {
		var b block
		if !plainMembers(in, b.plainMember) {
			return nil, false
		}
		blocks = append(blocks, b)
	}
	t, err := in.ReadToken()
	return blocks, err == nil && t.Kind() == ']'
}

func (b *block) plainMember(name string, value []byte) (ok bool) {
	switch name {
	case "type":
		b.Type, ok = plainText(value)
	case "text":
		b.Text, ok = plainText(value)
	case "id":
		b.ID, ok = plainText(value)
	case "name":
		b.Name, ok = plainText(value)
	case "tool_use_id":
		b.ToolUseID, ok = plainText(value)
	case "input":
		b.Input, ok = value, true
	case "content":
		b.Content, ok = value, true
	case "is_error":
		b.IsError, ok = value[0] == 't', value[0] == 't' || value[0] == 'f'
	default:
		for _, known := range []string{"type", "text", "id", "name", "tool_use_id", "input", "content", "is_error"} {
			if strings.EqualFold(name, known) {
				return false
			}
		}
		return true
	}
	return ok
}

func plainDecoder(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// plainMembers goes through an object.
func plainMembers(in *jsontext.Decoder, take func(name string, value []byte) bool) bool {
	if t, err := in.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return false
		}
		member := name.String()
		value, err := in.ReadValue()
		if err != nil || !take(member, value) {
			return false
		}
	}
	t, err := in.ReadToken()
	return err == nil && t.Kind() == '}'
}
