// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redacted takes secrets out of texts that leave a process for users: lines of its log, and the reports and records that it hands on.
// An agent, a model or a repository may have chosen any of these texts.
package redacted

import (
	"context"
	"reflect"
	"sync"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
)

const (
	// Withheld replaces a text that cannot be searched within its limit of work.
	Withheld = "[withheld: the search for secrets would take too long]"
	// maxText bounds a text in a line of a log, in bytes.
	maxText = 16 << 10
	// margin of a text is searched, too, so that a secret is found of which the end is cut off.
	margin = 4 << 10
	// documentWork is what the search of all texts of a document may take, as a number of files: two seconds. Who made the document pays for it.
	documentWork = 4 * secrets.Budget
	// textWork is what the search of one text of a log may take: about 20 ms. Ordinary messages take none: they have no keyword of a rule.
	textWork = secrets.Budget / 20
	// keyTag marks a field of a document that others refer to. Its value stays as it is: people and programs look for it.
	keyTag = "key"
)

// shared finds secrets, one text at a time. It is made when the first text is searched: that takes half a millisecond, and 200 KB.
var shared struct {
	sync.Mutex

	redactor *secrets.Redactor
}

// clean gives a text without secrets. What that takes is taken from the budget.
func clean(budget *int64, text string) string {
	if text == "" {
		return text
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.redactor == nil {
		shared.redactor = secrets.NewRedactor()
	}
	search := []byte(text)
	found, _, err := shared.redactor.Places(context.Background(), budget, search)
	if err != nil {
		return Withheld
	}
	if len(found) == 0 {
		return text
	}
	without, err := shared.redactor.Redact(context.Background(), *budget, search)
	if err != nil {
		return Withheld
	}
	return string(without)
}

// line is a text for a line of a log: bounded, and without secrets.
func line(text string) string {
	budget := int64(textWork)
	if len(text) <= maxText {
		return clean(&budget, text)
	}
	return plain.CutBytes(clean(&budget, text[:min(len(text), maxText+margin)]), maxText)
}

// Document returns a document with no secret in a text of it. The document itself stays as it is; it may share parts without secrets.
// It skips fields with the tag `redact:"key"`. It withholds a text that it cannot search within the work for all texts.
func Document[T any](document T) T {
	budget := int64(documentWork)
	without, changed := value(&budget, reflect.ValueOf(&document).Elem())
	if !changed {
		return document
	}
	return without.Interface().(T) //nolint:forcetypeassert // a copy has the type of what was copied
}

// value without secrets, and whether it is another one.
func value(budget *int64, v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		without := clean(budget, text)
		if without == text {
			return v, false
		}
		return reflect.ValueOf(without).Convert(v.Type()), true
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		without, changed := value(budget, v.Elem())
		if !changed {
			return v, false
		}
		pointer := reflect.New(v.Type().Elem())
		pointer.Elem().Set(without)
		return pointer, true
	case reflect.Struct:
		return parts(v, v.NumField(), func(i int) (reflect.Value, bool) {
			if f := v.Type().Field(i); !f.IsExported() || f.Tag.Get("redact") == keyTag {
				return reflect.Value{}, false
			}
			return value(budget, v.Field(i))
		}, reflect.Value.Field)
	case reflect.Slice:
		return parts(v, v.Len(), func(i int) (reflect.Value, bool) { return value(budget, v.Index(i)) }, reflect.Value.Index)
	default: // numbers; documents have no other texts, which a test holds
		return v, false
	}
}

// parts of a struct or a slice, which is copied when the first of them changes.
func parts(v reflect.Value, n int, part func(int) (reflect.Value, bool), of func(reflect.Value, int) reflect.Value) (reflect.Value, bool) {
	whole, changed := v, false
	for i := range n {
		without, is := part(i)
		if !is {
			continue
		}
		if !changed {
			changed, whole = true, reflect.New(v.Type()).Elem()
			if whole.Set(v); v.Kind() == reflect.Slice {
				whole.Set(reflect.MakeSlice(v.Type(), n, n))
				reflect.Copy(whole, v)
			}
		}
		of(whole, i).Set(without)
	}
	return whole, changed
}
