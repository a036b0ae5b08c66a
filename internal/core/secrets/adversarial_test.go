// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestWorkIsBounded: what is looked at closely grows no faster than a text, whatever it is made of, and ends at the
// budget.
func TestWorkIsBounded(t *testing.T) {
	const size, budget = 16 << 10, 200_000
	s := New()
	hard := 0
	for name, part := range hostile() {
		path := "a.txt"
		if strings.Contains(name, "ubernetes") {
			path = "a.yaml"
		}
		measure := func(size int) int64 {
			_, work, err := s.Find(t.Context(), budget, path, nil, repeated(part, size))
			switch {
			case errors.Is(err, ErrTooHard):
				hard++
				return budget
			case err != nil:
				t.Fatal(err)
			}
			return work
		}
		one, four := measure(size), measure(4*size)
		if one > budget || four > budget {
			t.Errorf("%s: work of %d and %d goes beyond the budget", name, one, four)
		}
		if four > 5*one+attempt*64 {
			t.Errorf("%s: four times the text is %d times the work", name, four/max(one, 1))
		}
	}
	if hard == 0 {
		t.Error("no text is too hard: the budget is never reached")
	}
}

// TestHarmlessTextsAreJudged: a large file that nobody made to be hard stays within the budget that the judge gives.
func TestHarmlessTextsAreJudged(t *testing.T) {
	texts := hostile()
	for _, name := range []string{"base64 in one line", "base64 in lines", "newlines", "zeros", "random bytes", "letters", "dashes"} {
		if found, work, err := New().Find(t.Context(), Budget, "a", nil, repeated(texts[name], 8<<20)); err != nil || len(found) > 0 {
			t.Errorf("%s: work %d, %d findings, %v", name, work, len(found), err)
		}
	}
}

// TestFindStops: a search ends with its context, soon: it asks after every part of the text.
func TestFindStops(t *testing.T) {
	ctx := &countdown{Context: t.Context(), left: 3}
	_, _, err := New().Find(ctx, Budget, "a", nil, repeated("text\n", 64*between))
	if !errors.Is(err, context.Canceled) || ctx.left < -1 {
		t.Errorf("%v after %d more questions", err, -ctx.left)
	}
}

// countdown is a context that ends after so many questions.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestOldTextsCostNothing: what did not change is not looked at closely.
func TestOldTextsCostNothing(t *testing.T) {
	text := repeated(hostile()["assignments"], 1<<20)
	if _, _, err := New().Find(t.Context(), 1_000_000, "a", nil, text); !errors.Is(err, ErrTooHard) {
		t.Fatalf("the text is not hard: %v", err)
	}
	middle := len(text)/2 + bytes.IndexByte(text[len(text)/2:], '\n') + 1
	changed := slices.Concat(text[:middle], []byte("one more line\n"), text[middle:])
	if found, work, err := New().Find(t.Context(), 1_000_000, "a", text, changed); err != nil || len(found) > 0 {
		t.Errorf("%v: %d found, work %d", err, len(found), work)
	}
}
