// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

// File in a folder of documents.
type File struct {
	Path string
	// Size in bytes.
	Size int64
	// Regular: it is neither a directory nor a link.
	Regular bool
}

// Pick decides which files are read as documents: those with the place, the name and the size of one, the first MaxDocuments of them in the order of
// kinds and names, as far as they have MaxTotal bytes together. Of every other file it says why it is left out.
func Pick(files []File) (read []File, left []Answer) {
	sorted := slices.Clone(files)
	plain.SortStable(sorted, func(a, b *File) int { return byPath(a.Path, b.Path) })
	total := int64(0)
	for _, f := range sorted {
		_, _, err := Locate(f.Path)
		switch {
		case !f.Regular:
			err = errors.New("it is not a regular file: replace it with one")
		case err != nil:
		case f.Size > MaxSize:
			err = tooLarge(f.Size)
		case len(read) == MaxDocuments:
			err = fmt.Errorf("there are more than %d documents: join documents, or delete some that do not hold any more", MaxDocuments)
		case total+f.Size > MaxTotal:
			err = fmt.Errorf("the documents have more than %d bytes together: shorten some, or delete some that do not hold any more", MaxTotal)
		}
		if err != nil {
			left = append(left, Answer{Path: f.Path, Reason: Malformed, Why: err.Error()})
			continue
		}
		read, total = append(read, f), total+f.Size
	}
	return read, left
}

// TooMany is about a folder with more files than can be read.
func TooMany(folder string) Answer {
	return Answer{Path: folder, Reason: Malformed, Why: "the folder has too many files to be read: keep only documents there"}
}

// NotFolder is about a path where a folder of documents belongs, and something else stands.
func NotFolder(path string) Answer {
	return Answer{Path: path, Reason: Malformed, Why: "it is not a folder. Move it, and write documents into a folder of that name"}
}

// byPath orders documents by kind and name.
func byPath(a, b string) int {
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

// place of the kind of a document among all kinds, by its path.
func place(file string) int {
	folder, _, _ := strings.Cut(strings.TrimPrefix(file, Dir+"/"), "/")
	return slices.Index(Kinds(), Kind(folder))
}
