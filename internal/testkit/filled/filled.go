// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filled makes values of which no field is zero, so that a test sees which one gets lost.
package filled

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Value sets every field of the value behind a pointer, each to a different value.
func Value(t *testing.T, pointer any) {
	t.Helper()
	n := 0
	fill(t, reflect.ValueOf(pointer).Elem(), &n)
}

func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Second)))
		return
	case time.Duration:
		v.SetInt(int64(time.Duration(*n) * time.Second))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(start.Add(time.Duration(*n) * time.Second))))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewQuantity(int64(*n), resource.BinarySI)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("cannot fill a %s", v.Type())
	}
}
