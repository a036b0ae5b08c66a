// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/kube/inert"
)

// apiPages are the pages of docs/reference/api, one for each kind.
func apiPages() []page {
	features, rules := inert.Paths()
	refused := map[string][]string{"Feature": features}
	for _, of := range []string{"spec.defaults.", "spec.overrides."} {
		for _, path := range rules {
			refused["SupervisorPolicy"] = append(refused["SupervisorPolicy"], of+path)
		}
	}
	of := func(kind reflect.Type, crd, about string) page {
		return page{"api/" + strings.ToLower(kind.Name()) + ".md", func(root string) ([]byte, error) {
			return kindPage(filepath.Join(root, "config/crd/bases", crd), kind, about, refused[kind.Name()])
		}}
	}
	return []page{
		of(reflect.TypeFor[v1alpha1.Checkpoint](), "tidewaiter.dev_checkpoints.yaml", "[Checkpoints](../../concepts/checkpoints.md) explains the kind."),
		of(reflect.TypeFor[v1alpha1.Feature](), "tidewaiter.dev_features.yaml",
			"[Features](../../concepts/features.md) explains the kind, and a [sample](../../../config/samples/feature-every-field.yaml) has every field that you can set."),
		of(reflect.TypeFor[v1alpha1.SupervisorPolicy](), "tidewaiter.dev_supervisorpolicies.yaml",
			"[Policies](../../concepts/policies.md) explains the kind. [Policy values](../policy.md) lists what applies if no policy sets a value, and how policies merge."),
		of(reflect.TypeFor[v1alpha1.Template](), "tidewaiter.dev_templates.yaml", "[Templates](../../concepts/templates.md) explains the kind."),
	}
}

// kindPage is the page of a kind: what its CRD says, with the fields in the order of the Go type. The fields at the paths refused are marked:
// the API server refuses them, because nothing acts on them.
func kindPage(path string, kind reflect.Type, about string, refused []string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("%s has %d versions, and the page shows one", crd.Name, len(crd.Spec.Versions))
	}
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	p := kindWriter{refused: slices.Clone(refused), fixed: map[string]bool{}, shown: map[reflect.Type]string{}}
	p.head(crd.Spec, version, about)
	for _, part := range members(kind) {
		property, ok := schema.Properties[part.name]
		if !ok || len(property.Properties) == 0 { // every object has apiVersion, kind and metadata
			continue
		}
		f, err := newField(part.name, part.of, property, true)
		if err != nil {
			return nil, err
		}
		if err := p.section(f, "##"); err != nil {
			return nil, err
		}
	}
	p.columns(version.AdditionalPrinterColumns)
	if len(p.refused) > 0 {
		return nil, fmt.Errorf("no rule refuses %s, which internal/kube/inert lists", strings.Join(p.refused, ", "))
	}
	return []byte(p.String()), nil
}

// kindWriter writes the page of a kind.
type kindWriter struct {
	strings.Builder
	// refused are the paths of fields that nothing acts on. The page takes out each one that it shows.
	refused []string
	// fixed are the paths of fields that cannot change, by the rules of objects that the page shows already.
	fixed map[string]bool
	// shown is where the page shows the fields of a type.
	shown map[reflect.Type]string
}

// head is what kubectl knows of the kind.
func (p *kindWriter) head(crd apiextensionsv1.CustomResourceDefinitionSpec, version apiextensionsv1.CustomResourceDefinitionVersion, about string) {
	schema := version.Schema.OpenAPIV3Schema
	fmt.Fprintf(p, "<!-- Made from config/crd by `make reference`. Do not edit. -->\n# %s\n\n%s\n\n%s\n\n", crd.Names.Kind, prose(schema.Description), about)
	row := func(name string, values ...string) { fmt.Fprintf(p, "| %s | %s |\n", name, quoted(values)) }
	p.WriteString("| | |\n|---|---|\n")
	row("apiVersion", crd.Group+"/"+version.Name)
	row("kind", crd.Names.Kind)
	row("Names for kubectl", slices.Concat([]string{crd.Names.Plural, crd.Names.Singular}, crd.Names.ShortNames)...)
	row("Categories", crd.Names.Categories...)
	fmt.Fprintf(p, "| Scope | %s |\n", crd.Scope)
	if version.Subresources != nil && version.Subresources.Status != nil {
		row("Subresources", "status")
	}
	var selectable []string
	for _, f := range version.SelectableFields {
		selectable = append(selectable, strings.TrimPrefix(f.JSONPath, "."))
	}
	row("Field selectors", selectable...)
	p.rules(schema.XValidations)
}

// columns that kubectl shows.
func (p *kindWriter) columns(all []apiextensionsv1.CustomResourceColumnDefinition) {
	p.WriteString("\n## Columns\n\n`kubectl get` shows these columns:\n\n| Column | Value | Shown |\n|---|---|---|\n")
	for _, c := range all {
		shown := "always"
		if c.Priority > 0 {
			shown = "with `-o wide`"
		}
		fmt.Fprintf(p, "| %s | `%s` | %s |\n", c.Name, strings.TrimPrefix(c.JSONPath, "."), shown)
	}
}

// rules are the messages of the CEL rules of an object, as a list.
func (p *kindWriter) rules(all apiextensionsv1.ValidationRules) {
	if len(all) == 0 {
		return
	}
	p.WriteString("\nRules:\n\n")
	for _, rule := range all {
		fmt.Fprintf(p, "* %s\n", prose(rule.Message))
	}
}

// field of a kind, with all that is below it.
type field struct {
	// path from the object; [] stands for any entry of a list.
	path string
	// of is the type; of a list or map that of its entries, of a pointer that of what it points to.
	of       reflect.Type
	schema   apiextensionsv1.JSONSchemaProps
	required bool
	// entries has the schema of the entries of a list or map; nil if the field is neither.
	entries *apiextensionsv1.JSONSchemaProps
	fields  []field
}

// newField reads a field and what is below it, in the order of the Go type.
func newField(path string, of reflect.Type, schema apiextensionsv1.JSONSchemaProps, required bool) (field, error) {
	f := field{path: path, of: entry(of), schema: schema, required: required}
	switch {
	case schema.Items != nil:
		f.entries = schema.Items.Schema
	case schema.AdditionalProperties != nil:
		f.entries = schema.AdditionalProperties.Schema
	}
	object := f.object()
	if len(object.Properties) == 0 || f.of == reflect.TypeFor[metav1.Condition]() {
		return f, nil
	}
	for _, member := range members(f.of) {
		property, ok := object.Properties[member.name]
		if !ok {
			return f, fmt.Errorf("the CRD does not have %s.%s: run make manifests", path, member.name)
		}
		child, err := newField(f.below()+"."+member.name, member.of, property, slices.Contains(object.Required, member.name))
		if err != nil {
			return f, err
		}
		f.fields = append(f.fields, child)
	}
	if len(f.fields) != len(object.Properties) {
		return f, fmt.Errorf("the CRD has %d fields in %s, and the Go type %d: run make manifests", len(object.Properties), path, len(f.fields))
	}
	return f, nil
}

// object is the schema of the fields of f: its own, or that of its entries.
func (f field) object() apiextensionsv1.JSONSchemaProps {
	if f.entries != nil {
		return *f.entries
	}
	return f.schema
}

// below is the path of what has the fields of f.
func (f field) below() string {
	if f.entries != nil {
		return f.path + "[]"
	}
	return f.path
}

// size is the number of fields below f.
func (f field) size() int {
	n := len(f.fields)
	for _, child := range f.fields {
		n += child.size()
	}
	return n
}

// Sizes in fields. A section has at most fitting, unless its object has that many of its own. An object of at most inlined never has a section.
const (
	fitting = 30
	inlined = 6
)

// section shows an object or a list of objects. If it is large, its large parts have sections of their own.
func (p *kindWriter) section(f field, level string) error {
	fmt.Fprintf(p, "\n%s %s\n\n%s\n", level, f.below(), prose(f.schema.Description))
	same := p.same(f)
	if same != "" {
		fmt.Fprintln(p, same)
	}
	p.rules(f.object().XValidations)
	if same != "" {
		return nil
	}
	if err := p.note(f); err != nil {
		return err
	}
	link := anchor(f.path)
	p.shown[f.of] = fmt.Sprintf("[`%s`](#%s)", f.path, link)
	p.WriteString("\n| Field | Type | Values | Description |\n|---|---|---|---|\n")
	var parts []field
	for _, child := range f.fields {
		if f.size() <= fitting || child.size() <= inlined {
			if err := p.rows(f.below(), link, child); err != nil {
				return err
			}
			continue
		}
		parts = append(parts, child)
		var rules apiextensionsv1.ValidationRules // its section shows them; here only that nothing acts on it
		if slices.Contains(p.refused, child.path) {
			rules = child.schema.XValidations
		}
		p.row(f.below(), child, rules, fmt.Sprintf("[Fields](#%s)", anchor(child.path)))
	}
	for _, part := range parts {
		if err := p.section(part, "###"); err != nil {
			return err
		}
	}
	return nil
}

// rows are the row of a field, and the rows of the fields below it.
func (p *kindWriter) rows(section, link string, f field) error {
	same := ""
	if len(f.fields) > 1 {
		same = p.same(f)
	}
	p.row(section, f, f.object().XValidations, same)
	if len(f.fields) == 0 || same != "" {
		return nil
	}
	if err := p.note(f); err != nil {
		return err
	}
	p.shown[f.of] = fmt.Sprintf("[`%s`](#%s)", f.path, link)
	for _, child := range f.fields {
		if err := p.rows(section, link, child); err != nil {
			return err
		}
	}
	return nil
}

// same says where the page shows the fields of f already; empty if it does not.
func (p *kindWriter) same(f field) string {
	at, ok := p.shown[f.of]
	if !ok {
		return ""
	}
	p.refused = slices.DeleteFunc(p.refused, func(path string) bool { return strings.HasPrefix(path, f.path+".") })
	return "It has the same fields as " + at + "."
}

// row of a field, with the rules of its object if the page shows them here.
func (p *kindWriter) row(section string, f field, rules apiextensionsv1.ValidationRules, more string) {
	about := f.kind()
	if f.required {
		about += ", required"
	}
	fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", strings.TrimPrefix(f.path, section+"."), about, strings.Join(p.values(f, rules), "<br>"), strings.TrimSpace(inCell(f.schema.Description)+" "+more))
}

// immutable is what a rule says of a field of its object that cannot change.
var immutable = regexp.MustCompile(`^(\S+) is fixed at creation`)

// note takes down which fields cannot change by the rules of an object.
func (p *kindWriter) note(f field) error {
	for _, rule := range f.object().XValidations {
		if !strings.Contains(rule.Rule, "oldSelf") || rule.Rule == "self == oldSelf" {
			continue // the message of the latter says it all
		}
		m := immutable.FindStringSubmatch(rule.Message)
		if m == nil {
			return fmt.Errorf("the rule %q of %s compares with oldSelf: its message must begin with FIELD is fixed at creation", rule.Message, f.path)
		}
		p.fixed[f.path+"."+m[1]] = true
	}
	return nil
}

// values are the default of a field, its bounds and its rules.
func (p *kindWriter) values(f field, rules apiextensionsv1.ValidationRules) []string {
	lines := bounds(f.schema)
	if d := f.schema.Default; d != nil {
		lines = append(lines, fmt.Sprintf("default `%s`", strings.Trim(string(d.Raw), `"`)))
	}
	if p.fixed[f.path] {
		lines = append(lines, "fixed at creation")
	}
	if f.entries != nil {
		if len(f.fields) == 0 {
			lines = append(lines, each(bounds(*f.entries))...)
		}
		lines = append(lines, p.messages(f.path, f.schema.XValidations)...)
		return append(lines, each(p.messages(f.path, rules))...)
	}
	return append(lines, p.messages(f.path, rules)...)
}

// each says that lines are about each entry of a list or map.
func each(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, "each: "+line)
	}
	return all
}

// messages of the rules of a field.
func (p *kindWriter) messages(path string, rules apiextensionsv1.ValidationRules) []string {
	var all []string
	for _, rule := range rules {
		message := inCell(rule.Message)
		if i := slices.Index(p.refused, path); i >= 0 && strings.HasPrefix(message, "this version does not act on ") {
			p.refused = slices.Delete(p.refused, i, i+1)
			message = "**Refused**: " + message
		}
		all = append(all, message)
	}
	return all
}

// bounds of a value.
func bounds(s apiextensionsv1.JSONSchemaProps) []string {
	var lines []string
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			values = append(values, strings.Trim(string(value.Raw), `"`))
		}
		lines = append(lines, quoted(values))
	}
	between := func(low, high any, unit string) {
		switch {
		case low != nil && high != nil && low == high:
			lines = append(lines, fmt.Sprint("exactly ", low, unit))
		case low != nil && high != nil:
			lines = append(lines, fmt.Sprint(low, " to ", high, unit))
		case low != nil:
			lines = append(lines, fmt.Sprint("at least ", low, unit))
		case high != nil:
			lines = append(lines, fmt.Sprint("at most ", high, unit))
		}
	}
	between(number(s.Minimum), number(s.Maximum), "")
	between(number(s.MinLength), number(s.MaxLength), " characters")
	between(number(s.MinItems), number(s.MaxItems), " entries")
	between(number(s.MinProperties), number(s.MaxProperties), " entries")
	if s.Pattern != "" && !s.XIntOrString { // the type says what a quantity is
		lines = append(lines, "`"+cell(s.Pattern)+"`")
	}
	switch {
	case len(s.XListMapKeys) > 0:
		lines = append(lines, "one entry for each "+quoted(s.XListMapKeys))
	case s.XListType != nil && *s.XListType == "set":
		lines = append(lines, "no entry twice")
	}
	return lines
}

// number is a bound; nil if there is none.
func number[T int64 | float64](n *T) any {
	if n == nil {
		return nil
	}
	return int64(*n)
}

// kind of a value.
func (f field) kind() string {
	switch {
	case f.of == reflect.TypeFor[metav1.Condition]():
		return "list of [conditions](../conditions.md)"
	case f.schema.Items != nil:
		return "list of " + kindOf(f.of, *f.entries) + "s"
	case f.entries != nil:
		return "map to " + kindOf(f.of, *f.entries)
	}
	return kindOf(f.of, f.schema)
}

func kindOf(t reflect.Type, schema apiextensionsv1.JSONSchemaProps) string {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return "duration"
	case reflect.TypeFor[metav1.Time]():
		return "time"
	case reflect.TypeFor[resource.Quantity]():
		return "quantity"
	}
	return schema.Type
}

// member of a Go struct.
type member struct {
	name string
	of   reflect.Type
}

// members of a struct, by their names in JSON.
func members(t reflect.Type) []member {
	var all []member
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			all = append(all, members(f.Type)...)
		} else {
			all = append(all, member{name, f.Type})
		}
	}
	return all
}

// entry is the type of the entries of a list or map, or of what a pointer points to; any other type is its own.
func entry(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// anchor of a heading, as forges make them.
func anchor(heading string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(heading))
}

// prose is a comment as Markdown.
func prose(text string) string {
	return strings.NewReplacer("*", `\*`, "<", "&lt;").Replace(text)
}

// inCell is a comment in a table.
func inCell(text string) string {
	return cell(strings.NewReplacer("\n\n", "<br>", "\n", " ").Replace(prose(text)))
}
