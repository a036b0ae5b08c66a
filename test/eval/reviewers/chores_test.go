// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package reviewers

import (
	"regexp"
	"strings"
)

// chore is a task in Go for a model that has seen the declarations of the package, but not how the code around them is written. Its package keeps to a convention.
type chore struct {
	name string
	// request to the model: what to add to the package.
	request string
	// declared in the package, which the model sees, and neighbour, which the reviewer compares with. Both have their imports between parentheses after the package.
	declared, neighbour string
	// uses is a declaration that compiles only if the request is met.
	uses string
	// convention of the package in words, as a document of the project has it.
	convention string
	// keeps matches code that keeps to the convention, and breaks code that does not; nil if there is no such pattern.
	keeps, breaks *regexp.Regexp
	// follows and departs are answers of the scripted model. Both meet the request; the second one departs from the convention in the line with the text at.
	follows, departs, at string
}

// keepsTo says whether code keeps to the convention of the chore.
func (c chore) keepsTo(code string) bool {
	return (c.keeps == nil || c.keeps.MatchString(code)) && (c.breaks == nil || !c.breaks.MatchString(code))
}

// source is a file of the package of a chore.
func source(imports, code string) string {
	if imports != "" {
		imports = "import (\n\t\"" + strings.ReplaceAll(imports, " ", "\"\n\t\"") + "\"\n)\n\n"
	}
	return "package p\n\n" + imports + strings.TrimSpace(code) + "\n"
}

// chores are all of them.
func chores() []chore {
	is := regexp.MustCompile
	const store = "type Store struct{ Users, Orders map[string]string }"
	return []chore{
		{
			"error-wrapping", "Add the method Order(id string) (string, error) to Store. It returns s.Orders[id], or an error that has ErrUnknown in its chain.",
			source("errors", store+"\n\nvar ErrUnknown = errors.New(\"unknown\")"),
			source("fmt", "func (s *Store) User(id string) (string, error) {\n\tif u, ok := s.Users[id]; ok {\n\t\treturn u, nil\n\t}\n\treturn \"\", fmt.Errorf(\"user %s: %w\", id, ErrUnknown)\n}"),
			"var _ func(string) (string, error) = (&Store{}).Order",
			"An error says which object it is about: wrap it with fmt.Errorf, the kind and the id of the object, and %w.", is(`Errorf\("order[^"]*%w`), nil,
			source("fmt", "func (s *Store) Order(id string) (string, error) {\n\tif o, ok := s.Orders[id]; ok {\n\t\treturn o, nil\n\t}\n\treturn \"\", fmt.Errorf(\"order %s: %w\", id, ErrUnknown)\n}"),
			source("", "func (s *Store) Order(id string) (string, error) {\n\tif o, ok := s.Orders[id]; ok {\n\t\treturn o, nil\n\t}\n\treturn \"\", ErrUnknown\n}"), "\treturn \"\", ErrUnknown",
		},
		{
			"quoted-ids", "Add the method Order(id string) (string, error) to Store. It returns s.Orders[id], or an error that names the id.",
			source("", store),
			source("fmt", "func (s *Store) User(id string) (string, error) {\n\tif u, ok := s.Users[id]; ok {\n\t\treturn u, nil\n\t}\n\treturn \"\", fmt.Errorf(\"no user %q\", id)\n}"),
			"var _ func(string) (string, error) = (&Store{}).Order",
			"Errors quote what callers have passed, with %q.", is(`%q`), nil,
			source("fmt", "func (s *Store) Order(id string) (string, error) {\n\tif o, ok := s.Orders[id]; ok {\n\t\treturn o, nil\n\t}\n\treturn \"\", fmt.Errorf(\"no order %q\", id)\n}"),
			source("fmt", "func (s *Store) Order(id string) (string, error) {\n\tif o, ok := s.Orders[id]; ok {\n\t\treturn o, nil\n\t}\n\treturn \"\", fmt.Errorf(\"no order %s\", id)\n}"), "no order %s",
		},
		{
			"sentinels", "Add func Take(n int) error. It returns an error if n is less than 0, which callers can tell from others.",
			source("", "type Box struct{ Items int }"),
			source("errors", "// ErrEmpty: there is nothing to give.\nvar ErrEmpty = errors.New(\"empty\")\n\nfunc Give(n int) error {\n\tif n == 0 {\n\t\treturn ErrEmpty\n\t}\n\treturn nil\n}"),
			"var _ func(int) error = Take",
			"Callers tell errors apart by variables of the package whose names begin with Err.", is(`\bErr[A-Z]\w*\s*=`), nil,
			source("errors", "var ErrNegative = errors.New(\"negative\")\n\nfunc Take(n int) error {\n\tif n < 0 {\n\t\treturn ErrNegative\n\t}\n\treturn nil\n}"),
			source("errors", "func Take(n int) error {\n\tif n < 0 {\n\t\treturn errors.New(\"negative\")\n\t}\n\treturn nil\n}"), "errors.New(",
		},
		{
			"error-prefix", "Add func CheckName(name string) error. It returns an error if the name is empty.",
			source("", "type Shop struct{ Name string }"),
			source("errors", "func CheckStreet(street string) error {\n\tif street == \"\" {\n\t\treturn errors.New(\"shop: the street is empty\")\n\t}\n\treturn nil\n}"),
			"var _ func(string) error = CheckName",
			"The text of an error begins with \"shop: \".", is(`"shop: `), nil,
			source("errors", "func CheckName(name string) error {\n\tif name == \"\" {\n\t\treturn errors.New(\"shop: the name is empty\")\n\t}\n\treturn nil\n}"),
			source("errors", "func CheckName(name string) error {\n\tif name == \"\" {\n\t\treturn errors.New(\"the name is empty\")\n\t}\n\treturn nil\n}"), "the name is empty",
		},
		{
			"package-slices", "Add func Ordered(names []string) []string. It returns the names in alphabetical order and leaves its argument as it is.",
			source("", "type Row struct{ Name string }"),
			source("slices", "func Largest(numbers []int) int {\n\tif len(numbers) == 0 {\n\t\treturn 0\n\t}\n\treturn slices.Max(numbers)\n}"),
			"var _ func([]string) []string = Ordered",
			"Lists are sorted, copied and searched with the package slices. The package sort is not used.", is(`slices\.`), is(`"sort"`),
			source("slices", "func Ordered(names []string) []string { return slices.Sorted(slices.Values(names)) }"),
			source("sort", "func Ordered(names []string) []string {\n\tall := append([]string(nil), names...)\n\tsort.Strings(all)\n\treturn all\n}"), "sort.Strings",
		},
		{
			"named-limits", "Add func ValidTitle(title string) bool. A title has 1 to 80 bytes.",
			source("", "type Page struct{ Name, Title string }"),
			source("", "// maxName bounds a name, in bytes.\nconst maxName = 64\n\nfunc ValidName(name string) bool { return name != \"\" && len(name) <= maxName }"),
			"var _ func(string) bool = ValidTitle",
			"A limit is a constant whose name begins with max.", is(`max[A-Z]\w*\s*=\s*80`), nil,
			source("", "// maxTitle bounds a title, in bytes.\nconst maxTitle = 80\n\nfunc ValidTitle(title string) bool { return title != \"\" && len(title) <= maxTitle }"),
			source("", "func ValidTitle(title string) bool { return title != \"\" && len(title) <= 80 }"), "<= 80",
		},
		{
			"receivers", "Add the method Len() int to Store. It returns the number of its users.",
			source("", store),
			source("", "func (st *Store) Empty() bool { return len(st.Users) == 0 }"),
			"var _ func() int = (&Store{}).Len",
			"The receiver of the methods of Store has the name st.", is(`func \(st \*?Store\)`), nil,
			source("", "func (st *Store) Len() int { return len(st.Users) }"),
			source("", "func (s *Store) Len() int { return len(s.Users) }"), "(s *Store)",
		},
		{
			"comments", "Add func Count(text string) int. It returns the number of words in a text.",
			source("", "type Text string"),
			source("strings", "// Lines of a text, without those that are empty.\nfunc Lines(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == '\\n' }) }"),
			"var _ func(string) int = Count",
			"An exported function has a comment that begins with its name.", is(`(?m)^// Count\b`), nil,
			source("strings", "// Count the words of a text.\nfunc Count(text string) int { return len(strings.Fields(text)) }"),
			source("strings", "func Count(text string) int { return len(strings.Fields(text)) }"), "func Count",
		},
		{
			"utc", "Add func Ended(seconds int64) time.Time. It returns the time that is so many seconds after the Unix epoch.",
			source("", "type Run struct{ Began, Ended int64 }"),
			source("time", "func Began(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }"),
			"var _ = Ended(1).Unix",
			"Times are in UTC.", is(`\.UTC\(\)`), nil,
			source("time", "func Ended(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }"),
			source("time", "func Ended(seconds int64) time.Time { return time.Unix(seconds, 0) }"), "time.Unix(",
		},
		{
			"builders", "Add func Table(rows []string) string. It returns each row between <tr> and </tr>, one after the other.",
			source("", "type Cell string"),
			source("strings", "func List(items []string) string {\n\tvar b strings.Builder\n\tfor _, i := range items {\n\t\tb.WriteString(\"<li>\" + i + \"</li>\")\n\t}\n\treturn b.String()\n}"),
			"var _ func([]string) string = Table",
			"A text that grows in a loop is a strings.Builder.", is(`strings\.Builder`), is(`\+= `),
			source("strings", "func Table(rows []string) string {\n\tvar b strings.Builder\n\tfor _, r := range rows {\n\t\tb.WriteString(\"<tr>\" + r + \"</tr>\")\n\t}\n\treturn b.String()\n}"),
			source("", "func Table(rows []string) (all string) {\n\tfor _, r := range rows {\n\t\tall += \"<tr>\" + r + \"</tr>\"\n\t}\n\treturn all\n}"), "all += ",
		},
		{
			"joined-errors", "Add func CheckOrder(name, street string) error. It returns an error that names each of the two that is empty.",
			source("", "type Order struct{ Name, Street string }"),
			source("errors", "func CheckUser(name, mail string) error {\n\tvar all []error\n\tif name == \"\" {\n\t\tall = append(all, errors.New(\"name is empty\"))\n\t}\n\tif mail == \"\" {\n\t\tall = append(all, errors.New(\"mail is empty\"))\n\t}\n\treturn errors.Join(all...)\n}"),
			"var _ func(string, string) error = CheckOrder",
			"What is wrong with several fields is one error, made with errors.Join.", is(`errors\.Join`), nil,
			source("errors", "func CheckOrder(name, street string) error {\n\tvar all []error\n\tif name == \"\" {\n\t\tall = append(all, errors.New(\"name is empty\"))\n\t}\n\tif street == \"\" {\n\t\tall = append(all, errors.New(\"street is empty\"))\n\t}\n\treturn errors.Join(all...)\n}"),
			source("errors strings", "func CheckOrder(name, street string) error {\n\tvar empty []string\n\tif name == \"\" {\n\t\tempty = append(empty, \"name\")\n\t}\n\tif street == \"\" {\n\t\tempty = append(empty, \"street\")\n\t}\n\tif len(empty) > 0 {\n\t\treturn errors.New(strings.Join(empty, \", \") + \" is empty\")\n\t}\n\treturn nil\n}"), "strings.Join(empty",
		},
		{
			"early-returns", "Add func Price(n int) int. The price of n boxes is 10 each for up to 9 boxes, and 8 each for more.",
			source("", "type Box struct{ Price int }"),
			source("", "func Fee(n int) int {\n\tif n > 100 {\n\t\treturn 0\n\t}\n\treturn 5\n}"),
			"var _ func(int) int = Price",
			"A function returns early. There is no else.", nil, is(`\belse\b`),
			source("", "func Price(n int) int {\n\tif n > 9 {\n\t\treturn 8 * n\n\t}\n\treturn 10 * n\n}"),
			source("", "func Price(n int) (sum int) {\n\tif n > 9 {\n\t\tsum = 8 * n\n\t} else {\n\t\tsum = 10 * n\n\t}\n\treturn sum\n}"), "} else {",
		},
		{
			"copies", "Add the method Rows() []string to Sheet. It returns its rows.",
			source("", "type Sheet struct{ names, rows []string }"),
			source("slices", "func (s *Sheet) Names() []string { return slices.Clone(s.names) }"),
			"var _ func() []string = (&Sheet{}).Rows",
			"A method returns a copy of a list that its object keeps.", is(`slices\.Clone|append\(\[\]|copy\(`), nil,
			source("slices", "func (s *Sheet) Rows() []string { return slices.Clone(s.rows) }"),
			source("", "func (s *Sheet) Rows() []string { return s.rows }"), "return s.rows",
		},
		{
			"locks", "Add the method Add(n int) to Counter. It adds n to c.n.",
			source("sync", "type Counter struct {\n\tmu sync.Mutex\n\tn  int\n}"),
			source("", "func (c *Counter) Sum() int {\n\tc.mu.Lock()\n\tdefer c.mu.Unlock()\n\treturn c.n\n}"),
			"var _ func(int) = (&Counter{}).Add",
			"A lock is given back with defer, in the line after the one that takes it.", is(`Lock\(\)\n\s*defer c\.mu\.Unlock`), nil,
			source("", "func (c *Counter) Add(n int) {\n\tc.mu.Lock()\n\tdefer c.mu.Unlock()\n\tc.n += n\n}"),
			source("", "func (c *Counter) Add(n int) {\n\tc.mu.Lock()\n\tc.n += n\n\tc.mu.Unlock()\n}"), "\tc.mu.Unlock()",
		},
		{
			"letter-case", "Add the method HasTag(tag string) bool to Post. It says whether the post has the tag.",
			source("", "type Post struct{ Author string; Tags []string }"),
			source("strings", "func (p *Post) By(name string) bool { return strings.EqualFold(p.Author, name) }"),
			"var _ func(string) bool = (&Post{}).HasTag",
			"Names and tags are the same in upper and lower case: compare them with strings.EqualFold.", is(`EqualFold`), nil,
			source("slices strings", "func (p *Post) HasTag(tag string) bool {\n\treturn slices.ContainsFunc(p.Tags, func(t string) bool { return strings.EqualFold(t, tag) })\n}"),
			source("slices", "func (p *Post) HasTag(tag string) bool { return slices.Contains(p.Tags, tag) }"), "slices.Contains(",
		},
		{
			"log-keys", "Add the method Stop() to Worker. It logs that the worker stops, with the package log/slog.",
			source("", "type Worker struct{ Name string }"),
			source("log/slog", "func (w *Worker) Start() { slog.Info(\"start\", \"worker\", w.Name) }"),
			"var _ func() = (&Worker{}).Stop",
			"Each line of the log has the name of the worker under the key worker.", is(`"worker", w\.Name`), nil,
			source("log/slog", "func (w *Worker) Stop() { slog.Info(\"stop\", \"worker\", w.Name) }"),
			source("log/slog", "func (w *Worker) Stop() { slog.Info(\"stop \" + w.Name) }"), "slog.Info(",
		},
		{
			"bounded-reads", "Add func ReadNote(r io.Reader) (string, error). It returns what the reader has.",
			source("", "type Note string"),
			source("io", "// maxTitle bounds a title, in bytes.\nconst maxTitle = 200\n\nfunc ReadTitle(r io.Reader) (string, error) {\n\ttext, err := io.ReadAll(io.LimitReader(r, maxTitle))\n\treturn string(text), err\n}"),
			"var _ = ReadNote",
			"What comes from outside is read with io.LimitReader.", is(`io\.LimitReader`), nil,
			source("io", "// maxNote bounds a note, in bytes.\nconst maxNote = 4000\n\nfunc ReadNote(r io.Reader) (string, error) {\n\ttext, err := io.ReadAll(io.LimitReader(r, maxNote))\n\treturn string(text), err\n}"),
			source("io", "func ReadNote(r io.Reader) (string, error) {\n\ttext, err := io.ReadAll(r)\n\treturn string(text), err\n}"), "io.ReadAll(r)",
		},
		{
			"json-names", "Add the type Address with the fields Street and ZipCode, both of them texts, for documents in JSON.",
			source("", "type Document struct{}"),
			source("", "type Person struct {\n\tFirstName string `json:\"first_name\"`\n\tLastName  string `json:\"last_name\"`\n}"),
			"var _ = Address{Street: \"\", ZipCode: \"\"}",
			"Names in JSON are in lower case, with underscores between words.", is(`json:"zip_code`), nil,
			source("", "type Address struct {\n\tStreet  string `json:\"street\"`\n\tZipCode string `json:\"zip_code\"`\n}"),
			source("", "type Address struct {\n\tStreet  string `json:\"street\"`\n\tZipCode string `json:\"zipCode\"`\n}"), "zipCode",
		},
		{
			"paths", "Add func PageFile(folder, name string) string. It returns the path of the file of a page, which has the name of the page with .html at the end.",
			source("", "type Site struct{ Folder string }"),
			source("path/filepath", "func ImageFile(folder, name string) string { return filepath.Join(folder, name+\".png\") }"),
			"var _ func(string, string) string = PageFile",
			"Paths are made with filepath.Join.", is(`filepath\.Join`), nil,
			source("path/filepath", "func PageFile(folder, name string) string { return filepath.Join(folder, name+\".html\") }"),
			source("", "func PageFile(folder, name string) string { return folder + \"/\" + name + \".html\" }"), "folder + ",
		},
		{
			"switches", "Add func Size(n int) string. It returns small for up to 9, medium for up to 99, and large for more.",
			source("", "type Parcel struct{ Boxes int }"),
			source("", "func Speed(n int) string {\n\tswitch {\n\tcase n > 50:\n\t\treturn \"fast\"\n\tcase n > 5:\n\t\treturn \"steady\"\n\t}\n\treturn \"slow\"\n}"),
			"var _ func(int) string = Size",
			"A choice between more than two cases is a switch.", is(`switch \{`), is(`else if`),
			source("", "func Size(n int) string {\n\tswitch {\n\tcase n > 99:\n\t\treturn \"large\"\n\tcase n > 9:\n\t\treturn \"medium\"\n\t}\n\treturn \"small\"\n}"),
			source("", "func Size(n int) (size string) {\n\tif n > 99 {\n\t\tsize = \"large\"\n\t} else if n > 9 {\n\t\tsize = \"medium\"\n\t} else {\n\t\tsize = \"small\"\n\t}\n\treturn size\n}"), "else if n > 9",
		},
	}
}
