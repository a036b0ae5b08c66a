// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/models"
	"github.com/tidewaiter/tidewaiter/internal/gateway/backends"
)

// Table is a configuration that can be used: backends with their keys and connections. It does not change.
type Table struct {
	config  models.Config
	keys    map[string]string
	clients map[string]*backends.Client
	prices  map[priced]ledger.Price
	hosts   []string
}

// Hosts of the backends, in lower case; none for a nil table.
func (t *Table) Hosts() []string {
	if t == nil {
		return nil
	}
	return t.hosts
}

// priced is a model of a backend.
type priced struct{ backend, model string }

// NewTable checks a configuration and prepares clients for it. The keys are by name. A backend without its key stays in the table, and
// calls to it fail with that reason.
func NewTable(config models.Config, keys map[string]string, o backends.Options) (*Table, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	t := &Table{config: config, keys: keys, clients: map[string]*backends.Client{}, prices: map[priced]ledger.Price{}}
	var errs []error
	for i, b := range config.Backends {
		if u, err := url.Parse(b.BaseURL); err == nil {
			t.hosts = append(t.hosts, strings.ToLower(u.Hostname()))
		}
		for _, m := range b.Models {
			t.prices[priced{b.Name, m.Name}] = m.Prices.Price()
		}
		client, err := backends.New(b, keys, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("backends[%d].%w", i, err))
			continue
		}
		t.clients[b.Name] = client
	}
	return t, errors.Join(errs...)
}

// Ready says for each backend whether the gateway's Secret has its keys.
func (t *Table) Ready() map[string]bool {
	ready := make(map[string]bool, len(t.config.Backends))
	for _, b := range t.config.Backends {
		ready[b.Name] = len(t.clients[b.Name].Missing()) == 0
	}
	return ready
}

// Missing are the entries of the gateway's Secret that backends need and that are not there, by backend.
func (t *Table) Missing() map[string][]string {
	missing := map[string][]string{}
	for name, c := range t.clients {
		if entries := c.Missing(); len(entries) > 0 {
			missing[name] = entries
		}
	}
	return missing
}

// Unpriced are the models of the configuration that have no prices.
func (t *Table) Unpriced() []models.Route { return t.config.Unpriced() }

// Close closes idle connections. Answers in progress continue.
func (t *Table) Close() {
	for _, c := range t.clients {
		c.Close()
	}
}
