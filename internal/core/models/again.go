// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"strconv"
	"strings"
	"time"
)

// Again says whether an answer with a status is worth another try, and how long the provider wants the caller to wait; 0 if it does not
// say. The function header returns a header of the answer by its name, or an empty string. The provider's own statement has precedence.
//
// x-should-retry and retry-after-ms are of Anthropic and OpenAI (https://github.com/openai/openai-node/blob/master/src/client.ts,
// https://github.com/anthropics/anthropic-sdk-typescript/blob/main/src/client.ts), Retry-After is of RFC 9110, section 10.2.3. Without it,
// the headers of a used-up limit say when it resets: https://platform.openai.com/docs/guides/rate-limits and
// https://docs.claude.com/en/api/rate-limits.
func Again(status int, header func(name string) string, now time.Time) (wait time.Duration, worth bool) {
	switch header("x-should-retry") {
	case "true":
		worth = status >= 400
	case "false":
		return 0, false
	default:
		worth = status == 429 || status >= 500
	}
	if !worth {
		return 0, false
	}
	if wait, said := retryAfter(header, now); said {
		return wait, true
	}
	if status == 429 {
		return untilReset(header, now), true
	}
	return 0, true
}

// retryAfter is what the provider asks for; said is false where it asks for nothing that can be read.
func retryAfter(header func(string) string, now time.Time) (wait time.Duration, said bool) {
	if ms, ok := number(header("retry-after-ms")); ok {
		return seconds(ms / 1000), true
	}
	text := header("retry-after")
	if s, ok := number(text); ok {
		return seconds(s), true
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} { // the forms of RFC 9110, section 5.6.7
		if at, err := time.Parse(layout, text); err == nil {
			return max(0, at.Sub(now)), true
		}
	}
	return 0, false
}

// untilReset is how long it takes until every limit that is used up is not; 0 where none is. Azure gives seconds, has -1 for what remains, and had another
// name for the reset: https://github.com/openai/openai-dotnet/issues/838, https://github.com/openai/openai-python/issues/937.
func untilReset(header func(string) string, now time.Time) (wait time.Duration) {
	for _, limit := range []string{"requests", "tokens"} {
		if left := header("x-ratelimit-remaining-" + limit); left == "0" || strings.HasPrefix(left, "-") {
			wait = max(wait, span(header("x-ratelimit-reset-"+limit)))
		}
		wait = max(wait, span(header("x-rate-limit-reset-"+limit)))
	}
	for _, limit := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		if header("anthropic-ratelimit-"+limit+"-remaining") == "0" {
			if at, err := time.Parse(time.RFC3339, header("anthropic-ratelimit-"+limit+"-reset")); err == nil {
				wait = max(wait, at.Sub(now))
			}
		}
	}
	return wait
}

// span of time of a header, as a duration or a number of seconds; 0 for anything else.
func span(text string) time.Duration {
	if s, is := number(text); is {
		return seconds(s)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// number of a header, not negative.
func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && n >= 0 // which a number that is none is not
}

// seconds as a duration; a day at most.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}
