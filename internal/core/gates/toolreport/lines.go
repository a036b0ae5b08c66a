// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// lines that tests can cover. A line may come several times, such as for each test or class: it is covered if one of them covers it.
type lines struct {
	files map[string]uint32
	// all has for each line the number of its file and its own, and 1 in the last bit unless it is covered.
	all []uint64
}

const (
	fileShift = 40
	maxLine   = 1 << (fileShift - 1)
)

// file numbers the files.
func (l *lines) file(path string) uint32 {
	n, is := l.files[path]
	if !is {
		if l.files == nil {
			l.files = map[string]uint32{}
		}
		n = uint32(len(l.files)) //nolint:gosec // a report has at most 8 Mi bytes
		l.files[strings.Clone(path)] = n
	}
	return n
}

// add a line by its number and how often it ran, in decimal digits.
func (l *lines) add(file uint32, number, hits string) error {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n >= maxLine {
		return fmt.Errorf("%.40q is not the number of a line", number)
	}
	key := uint64(file)<<fileShift | uint64(n)<<1
	digits := strings.TrimPrefix(hits, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return fmt.Errorf("%.40q is not how often a line ran", hits)
	}
	if hits != digits || strings.Trim(digits, "0") == "" { // gcov writes negative numbers for what it could not count
		key |= 1
	}
	l.all = append(l.all, key)
	return nil
}

var errNoLines = errors.New("it has no lines that tests can cover")

func (l *lines) summary() (s Summary, err error) {
	if len(l.all) == 0 {
		return s, errNoLines
	}
	slices.Sort(l.all)
	last := ^uint64(0)
	for _, key := range l.all {
		if key>>1 == last {
			continue
		}
		last = key >> 1
		s.Lines++
		if key&1 == 0 {
			s.Covered++
		}
	}
	return s, nil
}
