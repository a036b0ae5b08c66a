// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/deliveries"
)

// deliveries of others that concern the Feature, as far as they are known.
func (s situation) deliveries() []deliveries.Notice {
	if s.o.Deliveries != nil {
		return s.o.Deliveries
	}
	return s.o.Memory.Deliveries
}

// deliveriesDisjoint is there once another Feature has delivered something that concerns this one, the newest first.
func (s situation) deliveriesDisjoint() []Condition {
	var messages []string
	for _, n := range s.deliveries() {
		messages = append([]string{n.Message()}, messages...)
	}
	if len(messages) == 0 {
		return nil
	}
	return []Condition{{ConditionDeliveriesDisjoint, False, ReasonDeliveryTouches, strings.Join(messages, " ")}}
}
