// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
)

// maxLong bounds the list of a model's rates for long requests; providers have one.
const maxLong = 8

// Rates are prices of a million tokens, as decimal numbers in the gateway's currency.
type Rates struct {
	Input string `json:"input,omitempty"`
	// CachedInput was in the provider's cache; empty: as Input.
	CachedInput string `json:"cachedInput,omitempty"`
	// CacheWrite is input that the provider puts into its cache; empty: as Input.
	CacheWrite string `json:"cacheWrite,omitempty"`
	// CacheWriteHour is input that the provider keeps in its cache for an hour, or for 12 hours with OpenAI; empty: as CacheWrite.
	CacheWriteHour string `json:"cacheWriteHour,omitempty"`
	Output         string `json:"output,omitempty"`
}

// Prices of a model, in the gateway's currency.
type Prices struct {
	Rates `json:",inline"`

	// Search is the price of one web search that the provider makes.
	Search string `json:"search,omitempty"`
	// FileSearch is that of one search in files that the provider keeps; empty: as Search.
	FileSearch string `json:"fileSearch,omitempty"`
	// Fetch is the price of one page that the provider reads, CodeExecution of one code run, and Image of one image that its tools make.
	Fetch         string `json:"fetch,omitempty"`
	CodeExecution string `json:"codeExecution,omitempty"`
	Image         string `json:"image,omitempty"`
	// Call is the price of one call, whatever it uses.
	Call string `json:"call,omitempty"`
	// LongContext has other rates for calls with long requests.
	LongContext []LongRates `json:"longContext,omitempty"`
}

// LongRates are for all tokens of a call whose request has more than Above.
type LongRates struct {
	Rates `json:",inline"`

	// Above is the number of tokens of a request from which on the rates apply, including tokens read from and written into a cache.
	Above int64 `json:"above"`
}

// Known says whether the price of the model is known. "0" is a known price.
func (p Prices) Known() bool {
	return p.Rates != (Rates{}) || len(p.LongContext) > 0 || slices.ContainsFunc(p.single(), func(x single) bool { return x.price != "" })
}

// single is a price of one thing, with its name in the configuration.
type single struct{ name, price string }

func (p Prices) single() []single {
	return []single{
		{"search", p.Search}, {"fileSearch", p.FileSearch}, {"fetch", p.Fetch}, {"codeExecution", p.CodeExecution}, {"image", p.Image}, {"call", p.Call},
	}
}

func (p Prices) validate() error {
	if err := p.Rates.validate(); err != nil {
		return err
	}
	for _, x := range p.single() {
		if _, err := ledger.ParseDecimal(x.price); x.price != "" && err != nil {
			return fmt.Errorf(`%s: %q is not a price, such as "0.01"`, x.name, x.price)
		}
	}
	if len(p.LongContext) > maxLong {
		return fmt.Errorf("longContext: the list has %d, and the limit is %d", len(p.LongContext), maxLong)
	}
	seen := map[int64]bool{}
	for i, l := range p.LongContext {
		if l.Above <= 0 || seen[l.Above] {
			return fmt.Errorf("longContext[%d].above: %d: give each entry its own number of tokens, such as 200000", i, l.Above)
		}
		seen[l.Above] = true
		if err := l.validate(); err != nil {
			return fmt.Errorf("longContext[%d].%w", i, err)
		}
	}
	return nil
}

func (r Rates) validate() error {
	for _, x := range []struct{ name, price string }{
		{"input", r.Input}, {"cachedInput", r.CachedInput}, {"cacheWrite", r.CacheWrite}, {"cacheWriteHour", r.CacheWriteHour}, {"output", r.Output},
	} {
		if _, err := ledger.ParseDecimal(x.price); x.price != "" && err != nil {
			return fmt.Errorf(`%s: %q is not the price of a million tokens, such as "3.00"`, x.name, x.price)
		}
	}
	return nil
}

// Price in the ledger's units. An invalid price is 0.
func (p Prices) Price() ledger.Price {
	price := ledger.Price{Rates: p.rates(), Call: money(p.Call), Uses: ledger.Uses{
		Searches: money(p.Search), FileSearches: money(cmp.Or(p.FileSearch, p.Search)), Fetches: money(p.Fetch), Executions: money(p.CodeExecution), Images: money(p.Image),
	}}
	for _, l := range p.LongContext {
		price.Long = append(price.Long, ledger.LongRates{Rates: l.rates(), Above: l.Above})
	}
	return price
}

func (r Rates) rates() ledger.Rates {
	write := cmp.Or(r.CacheWrite, r.Input)
	return ledger.Rates{
		Input: money(r.Input), Cached: money(cmp.Or(r.CachedInput, r.Input)), Writes: money(write), LongWrites: money(cmp.Or(r.CacheWriteHour, write)), Output: money(r.Output),
	}
}

func money(text string) int64 {
	n, err := ledger.ParseDecimal(text)
	if err != nil {
		return 0
	}
	return n
}
