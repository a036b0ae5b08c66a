// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// Reason says in one word why the gateway refuses something; it is part of the gateway's answer and of its log.
type Reason string

// Reasons.
const (
	// ReasonBadTarget: the target is not a host and port.
	ReasonBadTarget Reason = "BadTarget"
	// ReasonIPAddress: the target is an address, not the name of a host.
	ReasonIPAddress Reason = "IPAddress"
	// ReasonHostNotAllowed: no policy lists the host and port.
	ReasonHostNotAllowed Reason = "HostNotAllowed"
	// ReasonModelProvider: the host belongs to a provider of models, which agents reach only through the gateway's own endpoints.
	ReasonModelProvider Reason = "ModelProvider"
	// ReasonPrivateAddress: the host has private addresses only, and its entry does not allow them.
	ReasonPrivateAddress Reason = "PrivateAddress"
	// ReasonForbiddenAddress: the host has only addresses that nobody may reach through the gateway.
	ReasonForbiddenAddress Reason = "ForbiddenAddress"
	// ReasonServerName: the server name in the TLS handshake is not the host of the CONNECT request.
	ReasonServerName Reason = "ServerName"
	// ReasonNotTLS: the client does not send a readable TLS handshake.
	ReasonNotTLS Reason = "NotTLS"
)

// Field is the field of a policy with the hosts of a list. Each list is for one kind of connections.
type Field string

// Fields.
const (
	// FieldGit lists the hosts that a watchdog's Git may reach.
	FieldGit Field = "egress.git"
	// FieldAgent lists the hosts that an agent may reach.
	FieldAgent Field = "egress.agent"
)

// User of the Basic credentials for a connection of this list; the password is the pod's token. A gateway that does not know the user
// refuses the request, so that no version confuses two lists.
func (f Field) User() string {
	if f == FieldAgent {
		return "tidewaiter-agent"
	}
	return "tidewaiter"
}

// FieldOf is the list of a User; false if there is no such user.
func FieldOf(user string) (Field, bool) {
	for _, f := range []Field{FieldGit, FieldAgent} {
		if f.User() == user {
			return f, true
		}
	}
	return "", false
}

// Refusal is the decision to refuse a target.
type Refusal struct {
	// Reason in one word.
	Reason Reason
	// Message says what is wrong and which field to change; it has only visible ASCII characters.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Grant is the decision to allow a target.
type Grant struct {
	// AllowPrivate lets the name resolve to private addresses.
	AllowPrivate bool
}

// Decide looks the target up in the hosts of a field. An exact name beats a wildcard and a longer wildcard a shorter
// one, so that a general entry cannot loosen a particular one. An IP address is refused even if it is listed: its TLS handshake has no
// server name, so nothing says which of the servers behind it the agent means.
func Decide(hosts []policy.Host, field Field, target Target) (Grant, error) {
	if target.Address.IsValid() {
		return Grant{}, &Refusal{Reason: ReasonIPAddress, Message: fmt.Sprintf(
			"%s is an IP address, and the gateway connects only to names. Ask for the host by its name, and list it in %s of a SupervisorPolicy", target, field)}
	}
	best, found := policy.Host{}, false
	for _, host := range hosts {
		if host.Port == target.Port && matches(host.Name, target) && (!found || closer(host.Name, best.Name)) {
			best, found = host, true
		}
	}
	if !found {
		return Grant{}, &Refusal{Reason: ReasonHostNotAllowed, Message: fmt.Sprintf(
			"no policy lists %s: add host %q with port %d to spec.defaults.%s or spec.overrides.%s of a SupervisorPolicy",
			target, target.Host, target.Port, field, field)}
	}
	return Grant{AllowPrivate: best.AllowPrivate}, nil
}

func matches(pattern string, target Target) bool {
	suffix, wildcard := strings.CutPrefix(lower(pattern), "*.")
	if !wildcard {
		return suffix == target.Host
	}
	if target.Address.IsValid() || suffix == "" {
		return false
	}
	below, found := strings.CutSuffix(target.Host, "."+suffix)
	return found && below != ""
}

func closer(a, b string) bool {
	if exact := !strings.HasPrefix(a, "*."); exact != !strings.HasPrefix(b, "*.") {
		return exact
	}
	return len(a) > len(b)
}
