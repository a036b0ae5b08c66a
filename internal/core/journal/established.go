// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// given are the paths of the documents that the agent of a task gets, as far as its record names them.
func (k *Knowledge) given() []string {
	if k == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(k.GivenPaths), func(path string) bool {
		_, _, err := knowledge.Locate(path)
		return err != nil
	})
}

// faulty: a checkpoint of a task was not valid, or one of its gates has failed. Its documents have not proved themselves.
func (s *State) faulty(name string) {
	if t := s.Tasks[name]; len(t.Documents) > 0 && !t.Over() {
		t.Faulty = true
		s.Tasks[name] = t
	}
}

// proves counts a task that is done for each document that its agent has got.
func (s *State) proves(t Task) {
	if t.Faulty {
		return
	}
	for _, path := range t.Documents {
		s.Proved = with(s.Proved, path, s.Proved[path]+1)
	}
}

// unproved sets the count of documents to 0: they have another text now, or a directive names them.
func (s *State) unproved(names func(path string) bool) {
	if s.Proved == nil {
		return
	}
	s.Proved = maps.Clone(s.Proved)
	maps.DeleteFunc(s.Proved, func(path string, _ int) bool { return names(path) })
	if len(s.Proved) == 0 {
		s.Proved = nil
	}
}

// ProvedBeside is Proved without the documents that one of these directives names: whoever gives it has something against the document.
func (s State) ProvedBeside(directives []protocol.Directive) map[string]int {
	s.unproved(objects(directives))
	return s.Proved
}

// objects says whether one of the directives names a document.
func objects(directives []protocol.Directive) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(directives, func(d protocol.Directive) bool {
			return strings.Contains(d.Description, path) || strings.Contains(d.Rationale, path) || slices.Contains(d.Files, path)
		})
	}
}
