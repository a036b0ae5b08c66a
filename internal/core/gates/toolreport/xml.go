// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxDepth bounds how deep elements are in each other: the decoder keeps each open one.
	maxDepth = 64
	// maxTag bounds one tag in bytes: the decoder makes about ten bytes of an attribute's one. Tools write the message of a failure as an attribute.
	maxTag = 1 << 20
)

// visitor is told of each element, after its parents.
type visitor interface {
	start(parents []string, name string, attributes []xml.Attr) error
	end(parents []string, name string)
}

// visit the elements of an XML document. A document type is taken only if it declares nothing: nothing is fetched, and no entity but XML's own five
// is known.
func visit(data []byte, v visitor) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") || strings.EqualFold(charset, "ascii") {
			return input, nil
		}
		return nil, fmt.Errorf("its encoding is %.40q, and only UTF-8 is read", charset)
	}
	var open []string
	roots := 0
	for {
		if tagIsTooLong(data[d.InputOffset():]) {
			return fmt.Errorf("a tag has more than %d KiB", maxTag>>10)
		}
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && roots == 0:
			return errors.New("it has no element")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.Directive:
			if !bytes.HasPrefix(t, []byte("DOCTYPE")) || bytes.ContainsRune(t, '[') || roots > 0 {
				return errors.New("it declares entities or elements of its own (<!…>)")
			}
		case xml.StartElement:
			if len(open) == 0 {
				roots++
			}
			if roots > 1 || len(open) == maxDepth {
				return fmt.Errorf("it has more than one root element, or elements more than %d deep", maxDepth)
			}
			if err := v.start(open, t.Name.Local, t.Attr); err != nil {
				return err
			}
			open = append(open, t.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
			v.end(open, t.Name.Local)
		case xml.CharData:
			if len(open) == 0 && len(bytes.TrimSpace(t)) > 0 {
				return errors.New("it has text outside of its root element")
			}
		}
	}
}

// tagIsTooLong says whether the text begins with a start tag that is longer than maxTag.
func tagIsTooLong(text []byte) bool {
	if len(text) <= maxTag || text[0] != '<' || text[1] == '!' || text[1] == '?' || text[1] == '/' {
		return false
	}
	var quote byte
	for _, b := range text[:maxTag] {
		switch {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"', b == '\'':
			quote = b
		case b == '>':
			return false
		}
	}
	return true
}

// attribute of an element; empty if it has none of that name.
func attribute(all []xml.Attr, name string) string {
	for _, a := range all {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
