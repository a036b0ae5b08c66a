// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is the body of a request with the places in it that are spliced. Every dialect names its model in the member
// "model" of one JSON object.
type Request struct {
	body []byte
	// Model that is asked for.
	Model string
	// from and to are where it stands, quotes included.
	from, to int
}

// errNoModel says that a request names no model.
var errNoModel = errors.New(`the request has no member "model"`)

// ReadRequest reads a body, whose bytes it keeps. It fails for what is no JSON object, and for an object that has a name
// twice: gateway and provider could take different ones.
func ReadRequest(body []byte) (Request, error) {
	r := Request{body: body}
	// Whether a text is valid in every detail is the provider's business: JavaScript cuts characters in half.
	in := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowInvalidUTF8(true))
	first, err := in.ReadToken()
	if err != nil {
		return r, fmt.Errorf("the request is not JSON: %w", err)
	}
	if first.Kind() != '{' {
		return r, errors.New("the request is not a JSON object")
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return r, fmt.Errorf("the request is not JSON: %w", err)
		}
		isModel := name.String() == "model"
		value, err := in.ReadValue()
		if err != nil {
			return r, fmt.Errorf("the request is not JSON: %w", err)
		}
		if !isModel {
			continue
		}
		r.to = int(in.InputOffset())
		r.from = r.to - len(value)
		if value.Kind() != '"' || json.Unmarshal(value, &r.Model) != nil {
			return r, errors.New(`the member "model" of the request is not a text`)
		}
	}
	if _, err := in.ReadToken(); err != nil {
		return r, fmt.Errorf("the request is not JSON: %w", err)
	}
	if rest := bytes.TrimSpace(body[in.InputOffset():]); len(rest) > 0 {
		return r, errors.New("something follows the JSON of the request")
	}
	if r.Model == "" {
		return r, errNoModel
	}
	return r, nil
}

// WithModel is the body with another model, and not one other byte changed.
func (r Request) WithModel(model string) []byte {
	if model == r.Model {
		return r.body
	}
	name, err := json.Marshal(model)
	if err != nil {
		return r.body
	}
	return slices.Concat(r.body[:r.from], name, r.body[r.to:])
}
