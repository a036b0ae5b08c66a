// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Person signs a commit as author or committer.
type Person struct {
	Name  string
	Email string
	// When it was; Git stores whole seconds.
	When time.Time
}

// Commit is one commit object.
type Commit struct {
	Tree      ID
	Parents   []ID
	Author    Person
	Committer Person
	// Message with subject, blank line and body; a missing newline at its end is added.
	Message string
}

// Encode returns the content of the commit object. It refuses a commit that Git would refuse or misread.
func (c Commit) Encode() ([]byte, error) {
	if c.Tree.IsZero() {
		return nil, errors.New("commit without a tree")
	}
	if strings.ContainsRune(c.Message, 0) {
		return nil, errors.New("commit message holds a NUL byte: remove it")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, parent := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n", c.Author, c.Committer)
	b.WriteString(strings.TrimRight(c.Message, "\n"))
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// String returns the form that commits hold. Characters that end a field there are left out, as Git itself does.
func (p Person) String() string {
	return fmt.Sprintf("%s <%s> %d %s", cleanField(p.Name), cleanField(p.Email), p.When.Unix(), p.When.Format("-0700"))
}

// cleanField removes what would end a name or an address early.
func cleanField(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r < ' ' {
			return -1
		}
		return r
	}, s), " .,:;\"'\\")
}

// ParseCommit reads the content of a commit object. Headers it does not know (signatures, encodings) are skipped.
func ParseCommit(content []byte) (Commit, error) {
	head, message, found := bytes.Cut(content, []byte("\n\n"))
	if !found {
		head = bytes.TrimSuffix(content, []byte("\n"))
	}
	c := Commit{Message: string(message)}
	for line := range strings.SplitSeq(string(head), "\n") {
		key, value, _ := strings.Cut(line, " ")
		var err error
		switch key {
		case "tree":
			c.Tree, err = ParseID(value)
		case "parent":
			var parent ID
			parent, err = ParseID(value)
			c.Parents = append(c.Parents, parent)
		case "author":
			c.Author, err = parsePerson(value)
		case "committer":
			c.Committer, err = parsePerson(value)
		}
		if err != nil {
			return Commit{}, fmt.Errorf("commit header %s: %w", key, err)
		}
	}
	if c.Tree.IsZero() {
		return Commit{}, errors.New("commit without a tree")
	}
	return c, nil
}

// parsePerson reads "Name <address> seconds zone".
func parsePerson(s string) (Person, error) {
	open, closing := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || closing < open {
		return Person{}, fmt.Errorf("no <address> in %q", s)
	}
	p := Person{Name: strings.TrimSpace(s[:open]), Email: s[open+1 : closing]}
	seconds, zone, _ := strings.Cut(strings.TrimSpace(s[closing+1:]), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Person{}, fmt.Errorf("time in %q: %w", s, err)
	}
	p.When = time.Unix(unix, 0).UTC()
	if at, err := time.Parse("-0700", zone); err == nil {
		p.When = p.When.In(at.Location())
	}
	return p, nil
}
