// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package toolreport

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

// files are reports of real tools, and what they say.
var files = map[string]struct {
	format string
	want   Summary
}{
	"go.jsonl": {protocol.ReportGoTest, Summary{
		Tests: 6, Failed: 3, Skipped: 1,
		Failures: []string{"example.com/shop/broken (the package)", "example.com/shop/cart TestAdd/two", "example.com/shop/cart TestAdd"},
	}},
	"node.tap":         {protocol.ReportTAP, Summary{Tests: 4, Failed: 1, Skipped: 2, Failures: []string{"removes"}}},
	"prove.tap":        {protocol.ReportTAP, Summary{Tests: 4, Failed: 1, Skipped: 1, Failures: []string{"First line of the input # valid"}}},
	"bailout.tap":      {protocol.ReportTAP, Summary{Tests: 3, Failed: 1, Failures: []string{"the tests bailed out: No route to host."}}},
	"skipped.tap":      {protocol.ReportTAP, Summary{}},
	"node.junit.xml":   {protocol.ReportJUnit, Summary{Tests: 4, Failed: 1, Skipped: 2, Failures: []string{"test: removes"}}},
	"pytest.junit.xml": {protocol.ReportJUnit, Summary{Tests: 5, Failed: 2, Skipped: 1, Failures: []string{"test_shop: test_bad[2]", "test_shop: test_error"}}},
	"nested.junit.xml": {protocol.ReportJUnit, Summary{Tests: 4, Failed: 1, Skipped: 1, Failures: []string{"shop.Cart: removes"}}},
	"node.lcov":        {protocol.ReportLCOV, Summary{Lines: 8, Covered: 6}},
	"geninfo.lcov":     {protocol.ReportLCOV, Summary{Lines: 4, Covered: 4}},
	"coveragepy.xml":   {protocol.ReportCobertura, Summary{Lines: 5, Covered: 4}},
	"gocover.xml":      {protocol.ReportCobertura, Summary{Lines: 3, Covered: 2}},
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReportsOfTools: what the tools that people use write is understood.
func TestReportsOfTools(t *testing.T) {
	for name, c := range files {
		got, err := Read(c.format, sample(t, name))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if again, err := Read(c.format, append([]byte("\xef\xbb\xbf"), strings.ReplaceAll(string(sample(t, name)), "\n", "\r\n")...)); err != nil || !cmp.Equal(again, c.want) {
			t.Errorf("%s with a byte-order mark and other line ends: %+v, %v", name, again, err)
		}
	}
}

// TestReportsThatAreRefused: what cannot be understood proves nothing, and the error says why.
func TestReportsThatAreRefused(t *testing.T) {
	const lines = `<coverage><packages><package><classes><class filename="a"><lines><line number="1" hits="1"/></lines></class></classes></package></packages></coverage>`
	for name, c := range map[string]struct{ format, text, want string }{
		"empty":                         {protocol.ReportJUnit, " \n", "it is empty"},
		"too large":                     {protocol.ReportTAP, strings.Repeat("#", MaxBytes+1), "more than 8 MiB"},
		"another format":                {"Surefire", "x", `knows no format "Surefire"`},
		"JUnit: no XML":                 {protocol.ReportJUnit, "ok 1", "not well-formed JUnit: it has text outside"},
		"JUnit: cut":                    {protocol.ReportJUnit, "<testsuites><testsuite>", "not well-formed JUnit: XML syntax error on line 1: unexpected EOF"},
		"JUnit: other root":             {protocol.ReportJUnit, lines, `its root element is "coverage"`},
		"JUnit: two roots":              {protocol.ReportJUnit, "<testsuites/><testsuites/>", "more than one root element"},
		"JUnit: nothing":                {protocol.ReportJUnit, "<!-- none -->", "it has no element"},
		"JUnit: tags that cross":        {protocol.ReportJUnit, "<testsuite><a><b></a></b></testsuite>", "syntax error"},
		"JUnit: an entity":              {protocol.ReportJUnit, `<!DOCTYPE testsuites [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuites>&x;</testsuites>`, "declares entities"},
		"JUnit: entities of entities":   {protocol.ReportJUnit, `<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><testsuites/>`, "declares entities"},
		"JUnit: an entity of elsewhere": {protocol.ReportJUnit, `<!DOCTYPE testsuites SYSTEM "http://example.com/a.dtd"><testsuites>&x;</testsuites>`, "invalid character entity &x;"},
		"JUnit: a late document type":   {protocol.ReportJUnit, `<testsuites><!DOCTYPE testsuites></testsuites>`, "declares entities"},
		"JUnit: another encoding":       {protocol.ReportJUnit, `<?xml version="1.0" encoding="ISO-8859-1"?><testsuites/>`, `its encoding is "ISO-8859-1", and only UTF-8 is read`},
		"JUnit: too deep":               {protocol.ReportJUnit, "<testsuites>" + strings.Repeat("<a>", maxDepth), "more than 64 deep"},
		"JUnit: a tag that is too long": {protocol.ReportJUnit, "<testsuites " + strings.Repeat("a='>' ", maxTag/6) + "/>", "a tag has more than 1024 KiB"},
		"Cobertura: no lines":           {protocol.ReportCobertura, "<coverage line-rate='1' lines-valid='9' lines-covered='9'/>", "no lines that tests can cover"},
		"Cobertura: no number":          {protocol.ReportCobertura, strings.Replace(lines, `number="1"`, `number="one"`, 1), `"one" is not the number of a line`},
		"Cobertura: no hits":            {protocol.ReportCobertura, strings.Replace(lines, `hits="1"`, "", 1), `"" is not how often a line ran`},
		"LCOV: text":                    {protocol.ReportLCOV, "all is fine", `line 1: "all is fine" is not a record`},
		"LCOV: cut":                     {protocol.ReportLCOV, "SF:a\nDA:1,1\n", "the last file has no end_of_record"},
		"LCOV: no file":                 {protocol.ReportLCOV, "DA:1,1\n", "line 1: it belongs to no file"},
		"LCOV: two files":               {protocol.ReportLCOV, "SF:a\nSF:b\n", "line 2: a file begins before"},
		"LCOV: no number":               {protocol.ReportLCOV, "SF:a\nDA:1,x\n", `line 2: "x" is not how often`},
		"LCOV: a huge line number":      {protocol.ReportLCOV, "SF:a\nDA:99999999999999,1\n", "is not the number of a line"},
		"LCOV: no lines":                {protocol.ReportLCOV, "SF:a\nend_of_record\n", "no lines that tests can cover"},
		"GoTest: text":                  {protocol.ReportGoTest, "ok  example.com/shop 0.1s\n", "it has no event"},
		"GoTest: no JSON":               {protocol.ReportGoTest, `{"Action":"start","Package":"a"` + "\n", "line 1: unexpected end of JSON input"},
		"GoTest: another JSON":          {protocol.ReportGoTest, `{"tests":9}`, "line 1: it is not an event"},
		"GoTest: cut":                   {protocol.ReportGoTest, `{"Action":"run","Package":"a","Test":"T"}` + "\n" + `{"Action":"pass","Package":"a","Test":"T"}`, "it is not whole"},
		"TAP: text":                     {protocol.ReportTAP, "all is fine\n", "is not TAP: it does not have one plan"},
		"TAP: cut":                      {protocol.ReportTAP, "1..3\nok 1\nok 2\n", "its plan has 3 tests, and 2 of these ran"},
		"TAP: two plans":                {protocol.ReportTAP, "1..1\nok 1\n1..2\n", "does not have one plan"},
		"TAP: an open block":            {protocol.ReportTAP, "1..1\nok 1\n  ---\n  a: b\n", "a YAML block has no end"},
	} {
		got, err := Read(c.format, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if !cmp.Equal(got, Summary{}) {
			t.Errorf("%s: an error, and %+v", name, got)
		}
	}
}

// TestGoTestsThatRunAgain: the last result of a test counts, as gotestsum --rerun-fails has it.
func TestGoTestsThatRunAgain(t *testing.T) {
	const first = `{"Action":"run","Package":"a","Test":"T"}
{"Action":"fail","Package":"a","Test":"T"}
{"Action":"fail","Package":"a"}
`
	got, err := Read(protocol.ReportGoTest, []byte(first+strings.ReplaceAll(first, "fail", "pass")))
	if want := (Summary{Tests: 1}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	panics := `{"Action":"run","Package":"a","Test":"T"}
{"Action":"fail","Package":"a"}`
	got, err = Read(protocol.ReportGoTest, []byte(panics))
	if want := (Summary{Tests: 1, Failed: 1, Failures: []string{"a (the package)"}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("a package that ends at once: %+v, %v", got, err)
	}
}

// TestFailuresAreBounded in number and in length.
func TestFailuresAreBounded(t *testing.T) {
	text := strings.Repeat("not ok - "+strings.Repeat("n", 5000)+"\n", 30) + "1..30\n"
	got, err := Read(protocol.ReportTAP, []byte(text))
	if err != nil || got.Failed != 30 || len(got.Failures) != 20 || len(got.Failures[0]) > maxName {
		t.Errorf("%d failed, %d names: %v", got.Failed, len(got.Failures), err)
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		covered, lines, least int
		covers                bool
		want                  string
	}{
		{799, 1000, 80, false, "79.9%"},
		{7999, 10000, 80, false, "79.9%"},
		{4, 5, 80, true, "80.0%"},
		{0, 0, 1, true, "0%"},
		{1, 1, 100, true, "100.0%"},
	} {
		s := Summary{Covered: c.covered, Lines: c.lines}
		if s.Percent() != c.want || s.Covers(c.least) != c.covers {
			t.Errorf("%d of %d: %s, covers %d%%: %v", c.covered, c.lines, s.Percent(), c.least, s.Covers(c.least))
		}
	}
}

// hostile reports have as much of something as there is room for.
var hostile = map[string]struct {
	format, begin, repeat, end string
}{
	"deep elements":      {protocol.ReportJUnit, "<testsuites>", "<a>", ""},
	"attributes":         {protocol.ReportJUnit, "<testsuites ", "a='' ", "/>"},
	"namespaces":         {protocol.ReportJUnit, "<testsuites ", "xmlns:a='' ", "/>"},
	"an open attribute":  {protocol.ReportJUnit, "<testsuites a='", "b", ""},
	"tests":              {protocol.ReportJUnit, "<testsuites>", "<testcase/>", "</testsuites>"},
	"failed tests":       {protocol.ReportJUnit, "<testsuites>", "<testcase name='a'><error/></testcase>", "</testsuites>"},
	"text":               {protocol.ReportJUnit, "<testsuites>", "&lt;", "</testsuites>"},
	"CDATA":              {protocol.ReportJUnit, "<testsuites><![CDATA[", "]]", "]]></testsuites>"},
	"comments":           {protocol.ReportJUnit, "<testsuites>", "<!---->", "</testsuites>"},
	"a comment":          {protocol.ReportJUnit, "<testsuites><!--", "- ", "--></testsuites>"},
	"a document type":    {protocol.ReportJUnit, "<!DOCTYPE a ", "<a>", "><testsuites/>"},
	"document types":     {protocol.ReportJUnit, "", "<!DOCTYPE a>", "<testsuites/>"},
	"instructions":       {protocol.ReportJUnit, "", "<?a?>", "<testsuites/>"},
	"covered lines":      {protocol.ReportCobertura, "<coverage><class><lines>", "<line number='1' hits='1'/>", "</lines></class></coverage>"},
	"classes":            {protocol.ReportCobertura, "<coverage>", "<class filename='#'/>", "</coverage>"},
	"records":            {protocol.ReportLCOV, "SF:a\n", "DA:#,1\n", "end_of_record\n"},
	"files":              {protocol.ReportLCOV, "", "SF:#\nend_of_record\n", "SF:a\nDA:1,1\nend_of_record\n"},
	"one record":         {protocol.ReportLCOV, "SF:", "a", "\n"},
	"events":             {protocol.ReportGoTest, "", `{"Action":"pass","Test":"#"}` + "\n", ""},
	"packages":           {protocol.ReportGoTest, "", `{"Action":"run","Package":"#"}` + "\n", ""},
	"JSON that is deep":  {protocol.ReportGoTest, `{"Output":`, "[", ""},
	"lines that are not": {protocol.ReportGoTest, "", "\n", `{"Action":"pass"}`},
	"points":             {protocol.ReportTAP, "", "ok\n", "1..1"},
	"failed points":      {protocol.ReportTAP, "", "not ok # skip #\n", "1..1"},
	"subtests":           {protocol.ReportTAP, "", "    ok\n    1..1\n", "1..1"},
	"a line of spaces":   {protocol.ReportTAP, "", " ", "ok"},
	"a long point":       {protocol.ReportTAP, "ok ", "# ", "\n1..1"},
	"blocks":             {protocol.ReportTAP, "", "  ---\n", "1..1"},
}

// fill a report up to the bound. Each # in what is repeated becomes a number of its own.
func fill(begin, repeat, end string, size int) []byte {
	b := []byte(begin)
	for n := 0; len(b)+len(repeat)+8+len(end) < size; n++ {
		if before, after, is := strings.Cut(repeat, "#"); is && !strings.Contains(after, "#") {
			b = append(append(append(b, before...), strconv.Itoa(n)...), after...)
		} else {
			b = append(b, repeat...)
		}
	}
	return append(b, end...)
}

// TestCostIsLinear: the worst report of 8 MiB takes seconds, and about eight times the memory of an eighth of it, whatever it is made of.
func TestCostIsLinear(t *testing.T) {
	for name, c := range hostile {
		allocated := func(size int) uint64 {
			data := fill(c.begin, c.repeat, c.end, size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, _ = Read(c.format, data)
			if took := time.Since(began); took > time.Minute { // what is quadratic takes much longer
				t.Errorf("%s: %s", name, took)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		eighth, whole := allocated(MaxBytes/8), allocated(MaxBytes)
		if whole > 12*eighth+1<<20 || whole > 1<<30 {
			t.Errorf("%s: %d MB for an eighth, %d MB for the whole", name, eighth>>20, whole>>20)
		}
	}
}

// fuzz a format: no text of any kind makes a parser panic, or say something impossible.
func fuzz(f *testing.F, format string) {
	for name, c := range files {
		if c.format == format {
			f.Add(sample(f, name))
		}
	}
	for _, c := range hostile {
		if c.format == format {
			f.Add(fill(c.begin, c.repeat, c.end, 1<<10))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(format, data)
		again, _ := Read(format, data)
		switch {
		case !cmp.Equal(s, again):
			t.Fatalf("%+v and then %+v", s, again)
		case err != nil && !cmp.Equal(s, Summary{}):
			t.Fatalf("an error, and %+v", s)
		case s.Failed < 0, s.Skipped < 0, s.Failed+s.Skipped > s.Tests, s.Covered < 0, s.Covered > s.Lines, len(s.Failures) != min(s.Failed, maxFailures), s.Tests > len(data), s.Lines > len(data):
			t.Fatalf("impossible: %+v", s)
		}
	})
}

func FuzzJUnit(f *testing.F)     { fuzz(f, protocol.ReportJUnit) }
func FuzzGoTest(f *testing.F)    { fuzz(f, protocol.ReportGoTest) }
func FuzzTAP(f *testing.F)       { fuzz(f, protocol.ReportTAP) }
func FuzzLCOV(f *testing.F)      { fuzz(f, protocol.ReportLCOV) }
func FuzzCobertura(f *testing.F) { fuzz(f, protocol.ReportCobertura) }
