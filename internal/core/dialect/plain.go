// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/go-json-experiment/json/v1"
)

// What clients send is read here as they write it, out of JSON that was read before: nothing checks it once more. A
// package for JSON goes twice through each level of it; it reads what is not as clients write it, such as names in other letters, and says in each
// case what that means.

// plainText reads a string.
func plainText(value []byte) (text string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	if inside := value[1 : len(value)-1]; bytes.IndexByte(inside, '\\') < 0 {
		return string(inside), utf8.Valid(inside)
	}
	plain, err := jsontext.AppendUnquote(nil, value)
	return string(plain), err == nil
}

// plainTo reads a string into a member.
func plainTo(member *string, value []byte) (ok bool) {
	*member, ok = plainText(value)
	return ok
}

// plainMembers goes through an object.
func plainMembers(object []byte, take func(name string, value []byte) bool) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	for name, at := range membersAt(object, 0) {
		if !take(name, object[at.from:at.to]) {
			return false
		}
	}
	return true
}

// plainElements are the elements of a list.
func plainElements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := space(list, 1); list[at] != ']'; {
			end := skip(list, at)
			if !yield(list[at:end]) {
				return
			}
			if at = space(list, end); list[at] == ',' {
				at = space(list, at+1)
			}
		}
	}
}

// plainNames are names that package json reads in any letters.
type plainNames []string

// other says that a name is none of them.
func (n plainNames) other(name string) bool {
	return !slices.ContainsFunc(n, func(known string) bool { return strings.EqualFold(name, known) })
}

// plainMessage reads the role and the content of a message.
func plainMessage(entry []byte) (role string, content json.RawMessage, ok bool) {
	ok = plainMembers(entry, func(name string, value []byte) bool {
		switch name {
		case "role":
			return plainTo(&role, value)
		case "content":
			content = value
			return true
		}
		return plainNames{"role", "content"}.other(name)
	})
	return role, content, ok
}

// plainBlocks reads a list of blocks.
func plainBlocks(list []byte) (blocks []block, ok bool) {
	if list[0] != '[' {
		return nil, false
	}
	for element := range plainElements(list) {
		var b block
		if !plainMembers(element, b.plainMember) {
			return nil, false
		}
		blocks = append(blocks, b)
	}
	return blocks, true
}

func (b *block) plainMember(name string, value []byte) bool {
	switch name {
	case "type":
		return plainTo(&b.Type, value)
	case "text":
		return plainTo(&b.Text, value)
	case "id":
		return plainTo(&b.ID, value)
	case "name":
		return plainTo(&b.Name, value)
	case "tool_use_id":
		return plainTo(&b.ToolUseID, value)
	case "input":
		b.Input = value
	case "content":
		b.Content = value
	case "is_error":
		b.IsError = value[0] == 't'
		return value[0] == 't' || value[0] == 'f'
	default:
		return plainNames{"type", "text", "id", "name", "tool_use_id", "input", "content", "is_error"}.other(name)
	}
	return true
}
