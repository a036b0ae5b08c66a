// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisorpolicy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/ledger"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
)

// scalars sets every word, number, size, flag and amount of money that the API's rules have. The path of a row in core's table is that of the field,
// so a new value needs no reader of its own. Lists and durations are read one by one: see rules. at names the rules in errors.
func scalars(at string, out *policy.Rules, r *v1alpha1.Rules) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	var errs []error
	for _, row := range policy.Rows() {
		value, found, err := unstructured.NestedFieldNoCopy(fields, strings.Split(row.Path, ".")...)
		if found && err == nil {
			err = scalar(out, row, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", at, row.Path, err))
		}
	}
	return errors.Join(errs...)
}

// scalar sets one value, as JSON has it.
func scalar(out *policy.Rules, row policy.Row, value any) error {
	switch v := value.(type) {
	case bool:
		if row.SetFlag != nil {
			row.SetFlag(out, v)
		}
	case int64:
		if row.SetNumber != nil {
			row.SetNumber(out, v)
		}
	case string:
		switch {
		case row.SetWord != nil:
			row.SetWord(out, v)
		case row.SetMoney != nil:
			n, err := amount(v)
			row.SetMoney(out, n)
			return err
		case row.SetHundredths != nil:
			n, err := hundredths(v)
			row.SetHundredths(out, n)
			return err
		case row.SetNumber != nil:
			n, err := bytes(v)
			if err != nil {
				return err
			}
			row.SetNumber(out, n)
		}
	}
	return nil
}

// amount of money in millionths of the currency. What is none is the least that there is, so that it lets nothing through.
func amount(text string) (int64, error) {
	n, err := ledger.ParseDecimal(text)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s is too little: give an amount of money more than 0, for example 12.50", text)
	}
	if err != nil {
		return 1, err
	}
	return n, nil
}

var decimal = regexp.MustCompile(`^([0-9]{1,3})(?:\.([0-9]{1,2}))?$`)

// hundredths of a decimal number. What is none is the least that there is.
func hundredths(text string) (int64, error) {
	parts := decimal.FindStringSubmatch(text)
	if parts == nil {
		return 1, fmt.Errorf("%q is not a decimal number with at most 2 digits after the point: give one such as 1.0", text)
	}
	return strconv.ParseInt(parts[1]+(parts[2] + "00")[:2], 10, 64)
}

// bytes of a quantity.
func bytes(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Value() <= 0 {
		return 0, fmt.Errorf("%s is not a size: give a positive one, for example 50Mi", text)
	}
	return q.Value(), nil
}
