// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

const (
	// InForceFor is how long the statement of a gateway is valid.
	InForceFor = 30 * time.Second
	// InForceEvery is how often a gateway says it.
	InForceEvery = 10 * time.Second
	// InForceForgotten is the age at which other gateways remove it.
	InForceForgotten = time.Hour
)

// InForce is what one gateway has in force. It has no keys and no addresses.
type InForce struct {
	// Renewed is when the gateway last renewed it.
	Renewed time.Time `json:"renewed"`
	// Digest of the configuration that is in force; empty if there is none.
	Digest string `json:"digest,omitempty"`
	// Backends of it, reduced to what decides who answers.
	Backends []Backend `json:"backends,omitempty"`
	// Missing entries of the Secret with the keys, by the backend that needs them.
	Missing map[string][]string `json:"missing,omitempty"`
	// Problem of a newer configuration that cannot be used; empty if the newest is in force.
	Problem string `json:"problem,omitempty"`
	// Reached is the state of the gateway's connections to its backends. It is not a part of the configuration in force.
	Reached []Reach `json:"reached,omitempty"`
}

// Outline is the configuration reduced to what decides who answers: no addresses, headers or prices. Of an address
// the scheme stays, and of keys their names.
func (c Config) Outline() Config {
	var out Config
	for _, b := range c.Backends {
		scheme, _, _ := strings.Cut(b.BaseURL, ":")
		reduced := Backend{Name: b.Name, Dialects: b.Dialects, BaseURL: scheme + ":", Key: b.Key, Fallbacks: b.Fallbacks}
		for _, m := range b.Models {
			reduced.Models = append(reduced.Models, Model{Name: m.Name, ContextWindow: m.ContextWindow})
		}
		out.Backends = append(out.Backends, reduced)
	}
	return out
}

// Fleet has the statement of each gateway of an installation, by name.
type Fleet map[string]InForce

// Alive are the gateways with a recent statement.
func (f Fleet) Alive(now time.Time) Fleet {
	alive := maps.Clone(f)
	maps.DeleteFunc(alive, func(_ string, in InForce) bool { return now.Sub(in.Renewed) > InForceFor })
	return alive
}

// Hash changes with the configurations in force, and not with the names of gateways or with time; empty if there is no statement.
func (f Fleet) Hash() string {
	seen := map[string]bool{}
	for _, in := range f {
		in.Renewed, in.Reached = time.Time{}, nil
		text, err := json.Marshal(in)
		if err != nil { // it has no values that JSON does not know
			panic(err)
		}
		seen[string(text)] = true
	}
	if len(seen) == 0 {
		return ""
	}
	digest := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(seen)), "\n")))
	return hex.EncodeToString(digest[:8])
}

// Choice is who answers the primary calls of an agent.
type Choice struct {
	Dialect string
	// Window of the model's context in tokens; 0 if it is not known.
	Window int64
}

// Choose finds the backend for the primary calls of an agent that speaks a dialect, or every dialect if that is empty. Any gateway may get
// a call, so all of them must have such a backend; the error names one that has none.
func (f Fleet) Choose(d string, refs []policy.ModelRef) (Choice, error) {
	var chosen Choice
	names := slices.Sorted(maps.Keys(f))
	for i, name := range names {
		choice, err := f[name].choose(d, refs)
		switch {
		case err != nil && len(f) > 1:
			return Choice{}, &Refusal{Message: fmt.Sprintf("at the gateway %s, %s", name, err)}
		case err != nil:
			return Choice{}, err
		case i > 0 && choice.Dialect != chosen.Dialect:
			return Choice{}, &Refusal{Message: fmt.Sprintf("the gateways %s and %s have different configurations in force, with the dialects %s and %s", names[0], name, chosen.Dialect, choice.Dialect)}
		case i == 0 || choice.Window < chosen.Window:
			chosen = choice
		}
	}
	return chosen, nil
}

func (in InForce) choose(d string, refs []policy.ModelRef) (Choice, error) {
	choice, err := in.route(d, refs)
	if err != nil && in.Problem != "" {
		err = &Refusal{Message: fmt.Sprintf("%s; the gateway refuses the newest configuration, and the last good one stays in force: %s", err, in.Problem)}
	}
	return choice, err
}

func (in InForce) route(d string, refs []policy.ModelRef) (Choice, error) {
	config := Config{Backends: in.Backends}
	if d == "" {
		var err error
		if d, _, err = config.Speaking(refs); err != nil {
			return Choice{}, err
		}
	}
	routes, err := config.Routes(d, refs, policy.RolePrimary)
	if err != nil {
		return Choice{}, err
	}
	var lacking string
	for _, r := range routes {
		entry := in.lacks(r)
		if entry == "" {
			return Choice{Dialect: d, Window: routes[0].Model.ContextWindow}, nil
		}
		lacking = cmp.Or(lacking, fmt.Sprintf("the gateway has no key for the backend %q: an administrator adds the entry %q to the Secret with the keys", r.Backend.Name, entry))
	}
	return Choice{}, &Refusal{Message: lacking}
}

// lacks is an entry of the Secret that a route cannot do without; empty for none.
func (in InForce) lacks(r Route) string {
	for _, entry := range in.Missing[r.Backend.Name] {
		if entry != r.Backend.Key || r.Key == (policy.SecretKey{}) { // where it is the key, the project may have brought one
			return entry
		}
	}
	return ""
}
