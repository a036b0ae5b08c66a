// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package redacted

import (
	"reflect"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// escaped is the most bytes that JSON takes for one of a text.
const escaped = 6

// Bounded returns a copy of a document that has at most the given bytes in each text, and the given bytes of JSON in all texts together.
// The last texts may then be empty. It does not change the document.
func Bounded[T any](document T, text, all int) T {
	c := clipper{text: text, room: all}
	return c.value(reflect.ValueOf(&document).Elem()).Interface().(T) //nolint:forcetypeassert // a copy has the type of what was copied
}

type clipper struct{ text, room int }

// value is a copy with texts that are clipped.
func (c *clipper) value(v reflect.Value) reflect.Value {
	next := reflect.New(v.Type()).Elem()
	next.Set(v)
	switch v.Kind() {
	case reflect.String:
		next.SetString(c.clip(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			next.Set(reflect.New(v.Type().Elem()))
			next.Elem().Set(c.value(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			next.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				next.Index(i).Set(c.value(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if next.Field(i).CanSet() { // such as no field of a time
				next.Field(i).Set(c.value(v.Field(i)))
			}
		}
	default: // numbers, and what a report has none of
	}
	return next
}

func (c *clipper) clip(text string) string {
	text = plain.CutBytes(text, c.text)
	size := inJSON(text)
	if size > c.room {
		text = plain.CutBytes(text, c.room/escaped)
		size = inJSON(text)
	}
	c.room -= size
	return text
}

// inJSON is how many bytes a text has in JSON, at most.
func inJSON(text string) int {
	size := len(text)
	for i := range len(text) {
		switch b := text[i]; {
		case b < ' ', b == '"', b == '\\', b == '<', b == '>', b == '&', b == 0x7f, b == 0xe2: // the last begins U+2028
			size += escaped - 1
		}
	}
	return size
}
