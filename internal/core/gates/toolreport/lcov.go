// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// endOfRecord ends what a tracefile says of a file.
const endOfRecord = "end_of_record"

// readLCOV reads the records DA of a tracefile (geninfo(1)). Branches and functions do not count.
func readLCOV(data []byte) (Summary, error) {
	var l lines
	inFile, file, number := false, uint32(0), 0
	for line := range bytes.Lines(data) {
		number++
		keyword, value, _ := strings.Cut(string(bytes.TrimSpace(line[:min(len(line), maxRecord)])), ":")
		var err error
		switch {
		case keyword == "" || strings.HasPrefix(keyword, "#"):
		case len(line) > maxRecord:
			err = fmt.Errorf("it has more than %d bytes", maxRecord)
		case keyword == "SF" && inFile:
			err = errors.New("a file begins before the one before it ends")
		case keyword == "SF":
			inFile, file = true, l.file(value)
		case keyword == endOfRecord:
			inFile = false
		case keyword == "TN" || keyword == "VER":
		case !lcovKeyword(keyword):
			err = fmt.Errorf("%.40q is not a record of a tracefile", keyword)
		case !inFile:
			err = errors.New("it belongs to no file")
		case keyword == "DA":
			at, rest, _ := strings.Cut(value, ",")
			hits, _, _ := strings.Cut(rest, ",") // a checksum may follow
			err = l.add(file, at, hits)
		}
		if err != nil {
			return Summary{}, fmt.Errorf("it is not well-formed LCOV: line %d: %w", number, err)
		}
	}
	if inFile {
		return Summary{}, errors.New("it is not well-formed LCOV: the last file has no " + endOfRecord)
	}
	return l.summary()
}

// maxRecord bounds a line in bytes: names of C++ functions are long.
const maxRecord = 1 << 20

// lcovKeyword says whether a word may begin a record: two or more capital letters.
func lcovKeyword(word string) bool {
	return len(word) >= 2 && len(word) <= 8 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
