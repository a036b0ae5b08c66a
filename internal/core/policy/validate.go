// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
)

// Validate lists the values of the rules that cannot be used, each with its path below at and with what is allowed. The API server refuses
// most of them already; Validate also checks objects that were written under an older version of the CRD. It does not check patterns and
// expressions: package judge does.
func (r *Rules) Validate(at string) error {
	var errs []error
	for _, row := range Rows() {
		if row.check != nil {
			errs = append(errs, below(at, row.check(r))...)
		}
	}
	return errors.Join(errs...)
}

// below puts the path of the rules before each of the errors that err is made of.
func below(at string, err error) []error {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = slices.Clone(joined.Unwrap())
	}
	for i, e := range list {
		list[i] = fmt.Errorf("%s.%w", at, e)
	}
	return list
}

func oneOf[T ~string](name string, got T, known ...T) error {
	if got == "" || slices.Contains(known, got) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %v", name, got, known)
}

// validPathRules refuses rules without an access or without paths: they would say nothing.
func validPathRules(name string, list []PathRule) error {
	var errs []error
	for i, r := range list {
		if r.Access != Write && r.Access != ReadOnly {
			errs = append(errs, fmt.Errorf("%s[%d].access: %q is not one of %v", name, i, r.Access, []Access{Write, ReadOnly}))
		}
		if len(r.Paths) == 0 {
			errs = append(errs, fmt.Errorf("%s[%d].paths: at least one is needed", name, i))
		}
	}
	return errors.Join(errs...)
}

func checkSeverities(name string, list []Check) error {
	var errs []error
	for _, c := range list {
		errs = append(errs, oneOf(name+"."+c.Name+".severity", c.Severity, Info, Warning, Error, Critical))
	}
	return errors.Join(errs...)
}
