// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// rank orders severities. What is not known ranks as Error: an unreadable policy must not weaken a rule.
func (s Severity) rank() int {
	switch s {
	case Info:
		return 0
	case Warning:
		return 1
	case Critical:
		return 3
	default:
		return 2
	}
}

// Compare is negative where s is milder than other, positive where it is worse, and 0 if both weigh the same.
func (s Severity) Compare(other Severity) int { return s.rank() - other.rank() }

// Blocks says whether a violation of this severity keeps a tree from being promoted.
func (s Severity) Blocks() bool { return s.Compare(Error) >= 0 }

// OrError is s, or Error where s is not a known severity.
func (s Severity) OrError() Severity {
	switch s {
	case Info, Warning, Error, Critical:
		return s
	default:
		return Error
	}
}

// AtLeastError is the severity of a change that is refused whatever the permission says: Error, or Critical if the permission is DenyCritical.
func (p Permission) AtLeastError() Severity {
	if severity, broken := p.Severity(); broken && severity.Blocks() {
		return severity
	}
	return Error
}

// Severity of a change with this permission; false if it is allowed. An unknown permission denies.
func (p Permission) Severity() (Severity, bool) {
	switch p {
	case Allow:
		return "", false
	case Warn:
		return Warning, true
	case DenyCritical:
		return Critical, true
	default:
		return Error, true
	}
}
