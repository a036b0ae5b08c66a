// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"encoding/xml"
	"fmt"
)

// junit reads the elements of a report in the format of JUnit, which has no standard: what tools agree about is used. Numbers in attributes of suites
// are not, because tools count differently.
type junit struct {
	summary Summary
	name    string
	result  outcome
}

func readJUnit(data []byte) (Summary, error) {
	var j junit
	if err := visit(data, &j); err != nil {
		return Summary{}, fmt.Errorf("it is not well-formed JUnit: %w", err)
	}
	return j.summary, nil
}

func isSuite(name string) bool { return name == "testsuite" || name == "testsuites" }

func (j *junit) start(parents []string, name string, attributes []xml.Attr) error {
	if len(parents) == 0 {
		if !isSuite(name) {
			return fmt.Errorf("its root element is %.40q, not testsuites or testsuite", name)
		}
		return nil
	}
	switch parent := parents[len(parents)-1]; {
	case name == "testcase" && isSuite(parent):
		j.name, j.result = attribute(attributes, "name"), passed
		if class := attribute(attributes, "classname"); class != "" {
			j.name = class + ": " + j.name
		}
		if attribute(attributes, "status") == "notrun" { // GoogleTest
			j.result = skipped
		}
	case parent == "testcase" && name == "skipped":
		j.result = skipped
	case parent == "testcase" && (name == "failure" || name == "error") && j.result != skipped: // Node says of a todo that it is skipped, and why it fails
		j.result = failed
	case parent == "testsuite" && (name == "failure" || name == "error"): // of the suite, such as its preparation
		j.summary.count("a test suite: "+name, failed)
	}
	return nil
}

func (j *junit) end(parents []string, name string) {
	if name == "testcase" && len(parents) > 0 && isSuite(parents[len(parents)-1]) {
		j.summary.count(j.name, j.result)
	}
}
