// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// TestPrice: what is left out costs as much as what it is a kind of, and never nothing.
func TestPrice(t *testing.T) {
	for name, tc := range map[string]struct {
		prices models.Prices
		want   ledger.Price
	}{
		"all": {
			models.Prices{
				Rates:  models.Rates{Input: "3", CachedInput: "0.30", CacheWrite: "3.75", CacheWriteHour: "6", Output: "15"},
				Search: "0.01", Call: "0.005", LongContext: []models.LongRates{{Above: 200_000, Rates: models.Rates{Input: "6", Output: "22.50"}}},
			},
			ledger.Price{
				Rates: ledger.Rates{Input: 3_000_000, Cached: 300_000, Writes: 3_750_000, LongWrites: 6_000_000, Output: 15_000_000},
				Uses:  ledger.Uses{Searches: 10_000, FileSearches: 10_000}, Call: 5000,
				Long: []ledger.LongRates{{Above: 200_000, Rates: ledger.Rates{Input: 6_000_000, Cached: 6_000_000, Writes: 6_000_000, LongWrites: 6_000_000, Output: 22_500_000}}},
			},
		},
		"input and output": {
			models.Prices{Rates: models.Rates{Input: "3", Output: "15"}},
			ledger.Price{Rates: ledger.Rates{Input: 3_000_000, Cached: 3_000_000, Writes: 3_000_000, LongWrites: 3_000_000, Output: 15_000_000}},
		},
		"writes of one price": {
			models.Prices{Rates: models.Rates{Input: "3", CachedInput: "0", CacheWrite: "4"}},
			ledger.Price{Rates: ledger.Rates{Input: 3_000_000, Writes: 4_000_000, LongWrites: 4_000_000}},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.prices.Price()); diff != "" || !tc.prices.Known() {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if (models.Prices{}).Known() {
		t.Error("prices that are not there are known")
	}
}

func TestPricesAreChecked(t *testing.T) {
	long := func(above int64, input string) models.LongRates {
		return models.LongRates{Above: above, Rates: models.Rates{Input: input}}
	}
	for want, prices := range map[string]models.Prices{
		`cacheWriteHour: "x"`:         {Rates: models.Rates{CacheWriteHour: "x"}},
		`search: "1 EUR" is no`:       {Search: "1 EUR"},
		`image: "-1" is no`:           {Image: "-1"},
		`call: "-1" is not a price`:   {Call: "-1"},
		"longContext[0].above: 0":     {LongContext: []models.LongRates{long(0, "1")}},
		"longContext[1].above: 9":     {LongContext: []models.LongRates{long(9, "1"), long(9, "2")}},
		"longContext[0].input: \"a":   {LongContext: []models.LongRates{long(9, "a")}},
		"longContext: the list has 9": {LongContext: make([]models.LongRates, 9)},
	} {
		err := models.Config{Backends: []models.Backend{backend(func(b *models.Backend) { b.Models = []models.Model{{Name: "a", Prices: prices}} })}}.Validate()
		if err == nil || !strings.Contains(err.Error(), "backends[0].models[0].prices."+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
