// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"encoding/xml"
	"fmt"
)

// cobertura reads the lines of classes. Those of methods are the same lines again.
type cobertura struct {
	lines lines
	file  uint32
}

func readCobertura(data []byte) (Summary, error) {
	var c cobertura
	if err := visit(data, &c); err != nil {
		return Summary{}, fmt.Errorf("it is not well-formed Cobertura: %w", err)
	}
	return c.lines.summary()
}

func (c *cobertura) start(parents []string, name string, attributes []xml.Attr) error {
	switch n := len(parents); {
	case n == 0 && name != "coverage":
		return fmt.Errorf("its root element is %.40q, not coverage", name)
	case name == "class":
		c.file = c.lines.file(attribute(attributes, "filename"))
	case name == "line" && n > 1 && parents[n-1] == "lines" && parents[n-2] == "class":
		return c.lines.add(c.file, attribute(attributes, "number"), attribute(attributes, "hits"))
	}
	return nil
}

func (c *cobertura) end([]string, string) {}
