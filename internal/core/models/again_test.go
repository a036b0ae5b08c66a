// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

func TestAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		status int
		header map[string]string
		wait   time.Duration
		worth  bool
	}{
		"whole":                      {200, nil, 0, false},
		"limited":                    {429, nil, 0, true},
		"overloaded":                 {529, nil, 0, true},
		"refused":                    {400, map[string]string{"retry-after": "1"}, 0, false},
		"not worth it":               {500, map[string]string{"x-should-retry": "false"}, 0, false},
		"worth it":                   {409, map[string]string{"x-should-retry": "true"}, 0, true},
		"not worth it when it is":    {200, map[string]string{"x-should-retry": "true"}, 0, false},
		"seconds":                    {429, map[string]string{"retry-after": "7"}, 7 * time.Second, true},
		"part of a second":           {429, map[string]string{"retry-after": "0.5"}, 500 * time.Millisecond, true},
		"milliseconds come first":    {429, map[string]string{"retry-after": "1", "retry-after-ms": "250.5"}, 250500 * time.Microsecond, true},
		"milliseconds that are none": {429, map[string]string{"retry-after": "1", "retry-after-ms": "soon"}, time.Second, true},
		"a date":                     {503, map[string]string{"retry-after": "Fri, 02 Jan 2026 03:04:08 GMT"}, 3 * time.Second, true},
		"a date of another form":     {503, map[string]string{"retry-after": "Friday, 02-Jan-26 03:04:09 GMT"}, 4 * time.Second, true},
		"a date that is over":        {503, map[string]string{"retry-after": "Fri, 02 Jan 2026 03:04:04 GMT"}, 0, true},
		"no number":                  {429, map[string]string{"retry-after": "NaN"}, 0, true},
		"negative":                   {429, map[string]string{"retry-after": "-5"}, 0, true},
		"for ever":                   {429, map[string]string{"retry-after": "1e300"}, 24 * time.Hour, true},
		"a limit of OpenAI":          {429, map[string]string{"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30.5s"}, 90500 * time.Millisecond, true},
		"a limit of Anthropic":       {429, map[string]string{"anthropic-ratelimit-output-tokens-remaining": "0", "anthropic-ratelimit-output-tokens-reset": "2026-01-02T03:04:25Z", "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-01-02T03:04:15Z"}, 20 * time.Second, true},
		"a limit, and what is asked": {429, map[string]string{"retry-after": "2", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h"}, 2 * time.Second, true},
		"a limit of another failure": {500, map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h"}, 0, true},
		// https://github.com/openai/openai-python/issues/937 and https://github.com/openai/openai-dotnet/issues/838: without Retry-After.
		"a limit of Azure":            {429, map[string]string{"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "55"}, 55 * time.Second, true},
		"a limit of Azure, otherwise": {429, map[string]string{"x-rate-limit-reset-tokens": "7"}, 7 * time.Second, true},
		"a limit that is over":        {429, map[string]string{"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2020-01-02T03:04:25Z"}, 0, true},
		"a limit that cannot be read": {429, map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, 0, true},
	} {
		wait, worth := models.Again(tc.status, func(name string) string { return tc.header[name] }, now)
		if wait != tc.wait || worth != tc.worth {
			t.Errorf("%s: wait %s, worth it %v; want %s, %v", name, wait, worth, tc.wait, tc.worth)
		}
	}
}
