// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/judge"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
)

const (
	// MaxTypical is how many files of the repository a reviewer sees at a first look without documents.
	MaxTypical = 10
	// maxGroups bounds the folders, each with its extensions, that a survey distinguishes. It counts files of others as files of no folder. When maxDeep of
	// them are taken, it distinguishes new folders of the first level only, so that a folder with very many folders does not hide the ones after it.
	maxGroups, maxDeep = 4096, 3072
	// maxExtension bounds an extension, in bytes, and sizeStep is how exactly a survey knows the sizes of files, in bytes.
	maxExtension, sizeStep = 12, 256
	// plainPlace is how often a place of a typical file is for a document or data: one of five places.
	plainPlace = 5
)

// Survey describes a repository by the paths and sizes of its files.
type Survey struct {
	// Files is how many there are.
	Files int
	// Folders are the first two levels of folders with what is below them, the ones with the most files first: of a great many folders only the first level. More is how
	// many files are in others.
	Folders []Folder
	More    int
	// Typical are paths of typical files, the best first, twice MaxTypical: some may turn out not to be fit for a reader.
	Typical []string
}

// Folder of a repository.
type Folder struct {
	Path  string
	Files int
	// Kinds are the extensions with the most files first.
	Kinds []Kind
}

// Kind is an extension, or "other", and the number of files that have it.
type Kind struct {
	Extension string
	Files     int
}

// group is the files of one extension in one folder.
type group struct {
	folder, extension string
	// all is how many files there are, and fit is how many of them can be typical.
	all, fit int
	// places are how many typical files it has, and best are these files, the best first.
	places int
	best   []Listed
}

// extension has the fit files of all folders with it.
type extension struct {
	name   string
	groups []*group
	fit    int
	places int
	// sizes is how many files have each size, in steps of sizeStep, if it has a place.
	sizes   []int
	counted int
}

// NewSurvey reads the list of files three times. It keeps a bounded part of them, whatever their number is.
//
// A file can be typical if its path and its size do not say that a program wrote it, that it comes from others, that it is a test's data, or that it has
// secrets. Typical files are chosen as seats in a parliament are given to parties: each place goes to the extension with the largest number of fit files for
// each place that it has then (n/(places+1)), and within the extension to the folder for which that is the largest. One of five places is for documents
// and data, the others are for code, as long as there is any. Within a folder, the files are those whose size is the nearest to the median size of their extension, then by path.
func NewSurvey(files iter.Seq2[string, int64]) Survey {
	s := Survey{}
	groups := map[[2]string]*group{}
	var order []*group
	groupOf := func(file string) *group { // a folder that is not known in the first pass stays so
		folder, kind := top(file), kindOf(file)
		if g := groups[[2]string{folder, kind}]; g != nil || len(groups) < maxDeep {
			return g
		}
		return groups[[2]string{above(folder), kind}]
	}
	for file, size := range files {
		s.Files++
		g := groupOf(file)
		if g == nil {
			if len(groups) == maxGroups {
				s.More++
				continue
			}
			g = &group{folder: top(file), extension: kindOf(file)}
			if len(groups) >= maxDeep {
				g.folder = above(g.folder)
			}
			groups[[2]string{g.folder, g.extension}], order = g, append(order, g)
		}
		if g.all++; fit(file, size) {
			g.fit++
		}
	}
	s.Folders = folders(order)
	extensions := byExtension(order)
	seats := seat(extensions)
	for file, size := range files {
		if e := extensions[kindOf(file)]; e != nil && e.places > 0 && fit(file, size) {
			e.count(size)
		}
	}
	for file, size := range files {
		if g := groupOf(file); g != nil && g.places > 0 && fit(file, size) {
			g.keep(Listed{file, size}, extensions[g.extension].median())
		}
	}
	taken := map[*group]int{}
	for _, g := range seats {
		s.Typical = append(s.Typical, g.best[taken[g]].Path)
		taken[g]++
	}
	return s
}

// top is the folder of a file, of at most two levels.
func top(file string) string {
	first, rest, below := strings.Cut(file, "/")
	if !below {
		return "."
	}
	if second, _, deeper := strings.Cut(rest, "/"); deeper {
		return first + "/" + second
	}
	return first
}

// above is the first level of a folder.
func above(folder string) string {
	level, _, _ := strings.Cut(folder, "/")
	return level
}

// kindOf a file: its extension, or "other" if it has none that a reader knows.
func kindOf(file string) string {
	e := strings.ToLower(path.Ext(file))
	if len(e) < 2 || len(e) > maxExtension || e == strings.ToLower(path.Base(file)) || strings.ContainsFunc(e[1:], func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return "other"
	}
	return e
}

// folders with what is below them.
func folders(groups []*group) []Folder {
	at := map[string]int{}
	var all []Folder
	for _, g := range groups {
		i, is := at[g.folder]
		if !is {
			i = len(all)
			at[g.folder], all = i, append(all, Folder{Path: g.folder})
		}
		all[i].Files += g.all
		all[i].Kinds = append(all[i].Kinds, Kind{g.extension, g.all})
	}
	for _, f := range all {
		plain.SortStable(f.Kinds, func(a, b *Kind) int {
			return cmp.Or(cmp.Compare(b.Files, a.Files), strings.Compare(a.Extension, b.Extension))
		})
	}
	plain.SortStable(all, func(a, b *Folder) int { return cmp.Or(cmp.Compare(b.Files, a.Files), strings.Compare(a.Path, b.Path)) })
	return all
}

// byExtension are the groups that have fit files.
func byExtension(groups []*group) map[string]*extension {
	all := map[string]*extension{}
	for _, g := range groups {
		if g.fit == 0 {
			continue
		}
		e := all[g.extension]
		if e == nil {
			e = &extension{name: g.extension}
			all[g.extension] = e
		}
		e.groups, e.fit = append(e.groups, g), e.fit+g.fit
	}
	return all
}

// count a fit file.
func (e *extension) count(size int64) {
	if e.sizes == nil {
		e.sizes = make([]int, MaxPeer/sizeStep+1)
	}
	e.sizes[size/sizeStep]++
	e.counted++
}

// median size of the files that were counted, in bytes.
func (e *extension) median() int64 {
	below := 0
	for i, n := range e.sizes {
		if below += n; 2*below >= e.counted {
			return int64(i)*sizeStep + sizeStep/2
		}
	}
	return 0
}

// seat gives the places: the group of each one, the first place first.
func seat(extensions map[string]*extension) (seats []*group) {
	var code, others []*extension
	for _, e := range extensions {
		if plainKinds[e.name] {
			others = append(others, e)
		} else {
			code = append(code, e)
		}
	}
	byName := func(a, b *extension) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(code, byName)
	slices.SortFunc(others, byName)
	for len(seats) < 2*MaxTypical {
		first, second := code, others
		if len(seats)%plainPlace == plainPlace-1 {
			first, second = others, code
		}
		e := cmp.Or(next(first), next(second))
		if e == nil {
			break
		}
		var best *group
		for _, g := range e.groups {
			if g.places < g.fit && (best == nil || largerShare(g.fit, g.places, g.folder, best.fit, best.places, best.folder)) {
				best = g
			}
		}
		e.places++
		best.places++
		seats = append(seats, best)
	}
	return seats
}

// next is the extension that gets a place; nil if none has a file for it.
func next(all []*extension) (best *extension) {
	for _, e := range all {
		if e.places < e.fit && (best == nil || largerShare(e.fit, e.places, e.name, best.fit, best.places, best.name)) {
			best = e
		}
	}
	return best
}

// largerShare compares how many files two have for each place that they would have. If it is the same, the name decides.
func largerShare(fit, places int, name string, others, othersPlaces int, othersName string) bool {
	return cmp.Or(cmp.Compare(others*(places+1), fit*(othersPlaces+1)), strings.Compare(name, othersName)) < 0
}

// keep a file if it is one of the best for the places of the group.
func (g *group) keep(f Listed, median int64) {
	apart := func(f Listed) int64 { return max(f.Size-median, median-f.Size) }
	i, _ := slices.BinarySearchFunc(g.best, f, func(have, f Listed) int {
		return cmp.Or(cmp.Compare(apart(have), apart(f)), strings.Compare(have.Path, f.Path))
	})
	if i < g.places {
		g.best = slices.Insert(g.best, i, f)
		g.best = g.best[:min(len(g.best), g.places)]
	}
}

// fit says whether a file can be typical by its path and its size.
func fit(file string, size int64) bool {
	name := strings.ToLower(path.Base(file))
	e := kindOf(file)
	switch {
	case size == 0 || size > MaxPeer || len(file) > MaxPath || e == "other" || unreadable[e] || strings.HasPrefix(file, knowledge.Dir+"/"):
		return false
	case slices.ContainsFunc(notOwn, func(part string) bool { return strings.Contains(name, part) }):
		return false
	}
	for folder := range strings.SplitSeq(strings.ToLower(path.Dir(file)), "/") {
		if foreign[folder] || strings.HasPrefix(folder, ".") && folder != "." {
			return false
		}
	}
	return judge.Escape(file) == file // a name that has to be quoted is not typical
}

// plainKinds are extensions of documents and data.
var plainKinds = set(".adoc", ".cfg", ".conf", ".csv", ".ini", ".json", ".md", ".properties", ".rst", ".toml", ".tsv", ".txt", ".xml", ".yaml", ".yml")

// unreadable are extensions of files that are seldom text, or that keep keys.
var unreadable = set(".7z", ".a", ".avi", ".avif", ".bin", ".blend", ".bmp", ".bz2", ".ckpt", ".class", ".crt", ".db", ".deb", ".dll", ".dmg", ".doc", ".docx",
	".dylib", ".eot", ".exe", ".fbx", ".flac", ".gif", ".glb", ".gz", ".h5", ".ico", ".iso", ".jar", ".jks", ".jpeg", ".jpg", ".kdbx", ".key", ".keystore", ".lock",
	".log", ".m4a", ".map", ".mkv", ".mov", ".mp3", ".mp4", ".npy", ".npz", ".o", ".odt", ".ogg", ".onnx", ".otf", ".p12", ".parquet", ".pdf", ".pem", ".pfx", ".pkl",
	".png", ".ppt", ".pptx", ".psd", ".pt", ".pyc", ".rar", ".rpm", ".safetensors", ".snap", ".so", ".sqlite", ".sum", ".svg", ".tar", ".tflite", ".tgz", ".tif",
	".tiff", ".ttc", ".ttf", ".wasm", ".wav", ".webm", ".webp", ".whl", ".woff", ".woff2", ".xls", ".xlsx", ".xz", ".zip", ".zst")

// foreign are folders of what others have written, of what programs have written, and of data of tests.
var foreign = set("__pycache__", "__snapshots__", "bin", "build", "coverage", "dist", "fixtures", "generated", "node_modules", "obj", "out", "target", "testdata", "third-party", "third_party", "vendor")

// notOwn are parts of the names of files that programs have written, or that keep keys.
var notOwn = []string{".bundle.", ".generated.", ".min.", ".pb.", "_generated.", "_pb2", "credential", "id_rsa", "lock.json", "lock.yaml", "secret", "zz_generated"}

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// generatedIs what programs say at the beginning of files that they write, in lower case. longLine is how long lines of such files are on average, in bytes.
var generatedIs = []string{"@generated", "auto-generated", "autogenerated", "automatically generated", "code generated", "do not edit"}

// pointerIs how a file begins that names the content of another one, which Git LFS keeps.
const pointerIs = "version https://git-lfs.github.com/spec/"

const (
	longLine   = 200
	headOfFile = 1 << 10
)

// Typical says whether a text can be that of a typical file: it is not empty, it is the content itself, and no program has written it.
func Typical(text string) bool {
	head := strings.ToLower(plain.CutBytes(text, headOfFile))
	return strings.TrimSpace(body(text)) != "" && !strings.HasPrefix(text, pointerIs) && len(text) <= longLine*(1+strings.Count(text, "\n")) &&
		!slices.ContainsFunc(generatedIs, func(said string) bool { return strings.Contains(head, said) })
}
