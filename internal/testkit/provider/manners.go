// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Manner is something that real providers do and that a client may not expect. A turn that names none has the manners that a hash of its
// conversation chooses, so that ordinary tests meet them, and the same ones each time.
type Manner string

const (
	// Thinks says that the model thinks before it answers: thinking blocks with a signature, reasoning items with encrypted content, or
	// reasoning_content, if the request asks for them.
	Thinks Manner = "thinks"
	// Hides omits the model's thoughts: only the signature is there, as with display of thinking turned off.
	Hides Manner = "hides"
	// Redacts it: the block is a redacted_thinking.
	Redacts Manner = "redacts"
	// Twice calls the shell a second time in addition to the call of the turn, if the request allows parallel calls.
	Twice Manner = "twice"
	// Unknown sends events, chunks and blocks of types that are not in any documentation.
	Unknown Manner = "unknown"
	// Comments sends comments between events, as OpenRouter does while it waits.
	Comments Manner = "comments"
	// Returns ends lines with CR and LF.
	Returns Manner = "returns"
	// Tears events into pieces, in the middle of a character if there is one of several bytes.
	Tears Manner = "tears"
	// Queues says that the response is queued before it is in progress. A Responses call that is not streamed is answered with just that.
	Queues Manner = "queues"
	// Uncounted leaves the usage out.
	Uncounted Manner = "uncounted"
)

// chosen are the manners that a hash chooses, each in one of so many conversations.
var chosen = []struct {
	manner Manner
	oneIn  byte
}{{Thinks, 2}, {Hides, 3}, {Redacts, 5}, {Twice, 2}, {Unknown, 3}, {Comments, 3}, {Returns, 4}, {Tears, 3}}

// known manners.
func known(m Manner) bool {
	return m == Queues || m == Uncounted || slices.ContainsFunc(chosen, func(c struct {
		manner Manner
		oneIn  byte
	}) bool {
		return c.manner == m
	})
}

// choose the manners of a turn of a conversation.
func choose(id string, turn int) (manners []Manner) {
	sum := sha256.Sum256([]byte(id + " " + strconv.Itoa(turn)))
	for i, c := range chosen {
		if sum[i]%c.oneIn == 0 {
			manners = append(manners, c.manner)
		}
	}
	return manners
}

// mannered is a turn with the manners that it has in a conversation, as far as its request lets the provider have them.
func (t Turn) mannered(id string, plain bool, c *conversation) Turn {
	given := t.Manners != nil
	if !given && !plain && id != noScript {
		t.Manners = choose(id, c.turns)
		if c.uncommented {
			t.Manners = slices.DeleteFunc(t.Manners, func(m Manner) bool { return m == Comments })
		}
	}
	if t.Thinking == "" && t.has(Thinks) && (c.thinks || given) {
		t.Thinking = "What is asked for here? Let me think – naïvely – about it."
	}
	if t.has(Twice) && t.Run != "" && t.Until == "" && !c.single {
		if shell, offered := t.shell(c); offered {
			beside, _ := Turn{Run: fmt.Sprintf("true # beside turn %d", c.turns)}.shell(c)
			t.Run, t.Tools = "", []Call{shell, beside}
		}
	}
	return t
}

func (t Turn) has(m Manner) bool { return slices.Contains(t.Manners, m) }

// seal of the provider on what a model has thought: nobody else can make it, and it fits nothing else.
func seal(thought string) string {
	mac := hmac.New(sha256.New, []byte("the provider's own"))
	mac.Write([]byte(thought))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sealed thoughts are readable for the provider alone.
func sealed(thought string) string {
	return base64.StdEncoding.EncodeToString([]byte(thought)) + "." + seal(thought)
}

// unsealed says whether what comes back is what was given.
func unsealed(data string) bool {
	text, mac, _ := strings.Cut(data, ".")
	thought, err := base64.StdEncoding.DecodeString(text)
	return err == nil && hmac.Equal([]byte(seal(string(thought))), []byte(mac))
}

// usage of a turn, in tokens.
type usage struct {
	// input that was in no cache, read from it, and written to it for five minutes and for an hour.
	input, read, written, writtenHour int
	// output, and how much of it the model has thought.
	output, thought int
}

// used by a turn: where the script says nothing, what earlier turns have sent comes from the cache, and something new is written to it.
func (t Turn) used(c *conversation) usage {
	total := c.size / 4
	u := usage{output: cmp.Or(t.Output, 10)}
	if c.most > 0 {
		u.output = min(u.output, c.most)
	}
	switch {
	case t.Cache != nil:
		u.read, u.written, u.writtenHour = t.Cache.Read, t.Cache.Write, t.Cache.WriteHour
	case t.Manners == nil:
	case c.turns > 0:
		u.read, u.written, u.writtenHour = total/2, total/8, total/16
	default:
		u.written = total / 8
	}
	u.input = max(total-u.read-u.written-u.writtenHour, 1)
	if t.Thinking != "" {
		u.thought = min(4, u.output)
	}
	return u
}
