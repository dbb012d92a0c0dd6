package main

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Specification is what the data file holds.
type Specification struct {
	Operations []Operation `json:"operations"`
	// Resources are the fields of each resource, by its name.
	Resources map[string][]Field `json:"resources"`
	// Tools are the operations that tools call, as "METHOD path", by tool.
	Tools map[string]string `json:"tools"`
}

// Operation is one row of a table of operations.
type Operation struct {
	Method     string      `json:"method"`
	Path       string      `json:"path"`
	Parameters []Parameter `json:"parameters,omitempty"`
	// Response is what its answer holds; empty where the specification does not show it.
	Response []Field `json:"response,omitempty"`
}

// Parameter is one parameter of an operation. In is path, query or body. Type is empty where the specification names none.
type Parameter struct {
	Name     string   `json:"name"`
	In       string   `json:"in"`
	Type     string   `json:"type,omitempty"`
	Required bool     `json:"required,omitempty"`
	Default  string   `json:"default,omitempty"`
	Values   []string `json:"values,omitempty"`
	// Most is the largest number it may be; 0 where the specification names none.
	Most int `json:"most,omitempty"`
}

// Field is a member of an object; without a name it is the whole answer. Type is string, integer, number, boolean, object,
// array or map, or empty where the specification names none. Resources name what it holds, or each of its elements, or else
// Fields are the members of that. Resources has more than one name where an answer has one of several forms.
type Field struct {
	Name     string `json:"name,omitempty"`
	Type     string `json:"type,omitempty"`
	Nullable bool   `json:"nullable,omitempty"`
	Required bool   `json:"required,omitempty"`
	// Resources are resolved at the end; until then words are what the page says of the field.
	Resources []string `json:"resources,omitempty"`
	words     string
	Fields    []Field `json:"fields,omitempty"`
}

// convert reads the page: every table by the head of its first column, and the resources that are written as a list of
// fields instead.
func convert(text string) (Specification, error) {
	found := Specification{Resources: map[string][]Field{}, Tools: map[string]string{}}
	var chapter, section, head string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := row(line)
		if cells == nil {
			head = ""
		}
		switch {
		case strings.HasPrefix(line, "## "):
			chapter, section = strings.TrimPrefix(line, "## "), ""
		case strings.HasPrefix(line, "### "):
			section, _, _ = strings.Cut(strings.TrimPrefix(line, "### "), ";")
			if section = strings.ReplaceAll(section, "`", ""); strings.Count(section, "(") > strings.Count(section, ")") {
				section += ")"
			}
		case cells != nil && head == "":
			head = cells[0]
			if head == "Field" && section == "" {
				section = chapter
			}
		case cells != nil && strings.Trim(line, "|-: ") == "":
		case head == "Method and path" && len(cells) == 3:
			found.Operations = append(found.Operations, operation(cells, found.Operations))
		case head == "Field" && len(cells) >= 2:
			found.Resources[section] = append(found.Resources[section], fieldOfRow(cells))
		case head == "Tool" && len(cells) == 2:
			found.Tools[cells[0]] = cells[1]
		case cells == nil && section != "" && strings.HasPrefix(chapter, "Resources"):
			for label, fields := range labelled(line) {
				name := section
				if label != "" {
					name += ": " + label
				}
				if len(found.Resources[name]) == 0 {
					found.Resources[name] = fields
				}
			}
		}
	}
	if len(found.Operations) == 0 || len(found.Resources) == 0 {
		return found, errors.New("the page has no table of operations (\"Method and path\") or no resources: is it the specification?")
	}
	resources := slices.Sorted(maps.Keys(found.Resources))
	for i := range found.Operations {
		o := &found.Operations[i]
		resolve(o.Response, resources)
		o.Response = slices.DeleteFunc(o.Response, func(f Field) bool { return f.Name == "" && len(f.Resources) == 0 })
	}
	for _, fields := range found.Resources {
		resolve(fields, resources)
	}
	inherit(&found)
	for _, o := range found.Operations {
		// A list that is called only "array" is of what the path names.
		path := regexp.MustCompile(`\{\w+\}|/api/v\d+`).ReplaceAllString(o.Path, "")
		walk(o.Response, func(f *Field) {
			if f.Type == "array" && len(f.Resources)+len(f.Fields) == 0 {
				f.Resources = named(path, resources)
			}
		})
	}
	return found, nil
}

// row splits a line of a table into its cells; nil for another line.
func row(line string) []string {
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// fieldOfRow reads "| Field | Type | Required | Notes |", of which the last two may be missing.
func fieldOfRow(cells []string) Field {
	f := Field{Name: strings.Trim(cells[0], "`")}
	describe(&f, cells[1])
	if len(cells) > 2 {
		f.Required = cells[2] == "yes"
	}
	return f
}

var types = regexp.MustCompile(`\b(?:string\[\]|(?:string|integer|numbers?|boolean|object|arrays?|map)\b)`)

// describe reads the type of a field from the words after its name.
func describe(f *Field, words string) {
	f.Nullable = strings.Contains(words, "or null")
	if strings.Contains(words, "required") {
		f.Required = true
	}
	switch found := types.FindString(words); found {
	case "":
		switch {
		case strings.Contains(words, "ISO 8601"):
			f.Type = "string"
		case regexp.MustCompile(`\b0 to 100\b`).MatchString(words):
			f.Type = "number"
		}
	case "string[]", "arrays":
		f.Type = "array"
	case "numbers":
		f.Type = "number"
	default:
		f.Type = found
	}
	if strings.Contains(words, "ISO 8601") && strings.Contains(words, "; integer") {
		f.Type = "" // of two types, by where it is
	}
	f.words = words
}

// label begins a form of a resource: words, perhaps with an explanation in brackets, a colon, and the first field.
var label = regexp.MustCompile("(?:^|\\. )([A-Z][A-Za-z -]*)(?: \\([^)]*\\))?: `")

// labelled splits a paragraph into its forms and yields the fields of each; the form without a label is "".
func labelled(line string) map[string][]Field {
	forms := map[string][]Field{}
	add := func(name, text string) {
		if end := strings.Index(outsideBrackets(text), ". "); end >= 0 {
			text = text[:end]
		}
		if fields := shape(text); len(fields) > 1 || len(fields) == 1 && name != "" {
			forms[name] = fields
		}
	}
	starts := label.FindAllStringSubmatchIndex(line, -1)
	first := line
	if len(starts) > 0 {
		first = line[:starts[0][0]]
	}
	if strings.HasPrefix(first, "`") {
		add("", first)
	}
	for i, at := range starts {
		end := len(line)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		add(line[at[2]:at[3]], line[at[1]-1:end])
	}
	return forms
}

// shape reads a list of fields in the page's notation: `name` words, `name` {`member` words, …}. Braces without a name before
// them group forms of one answer, whose fields are those of all forms.
func shape(text string) []Field {
	var fields []Field
	var several []bool // whether the words give a type to the fields before too: "`min`, `max` (numbers)"
	for {
		name, rest, ok := nextName(text)
		if !ok {
			break
		}
		words, inner, after := describing(rest)
		f := Field{Name: name}
		describe(&f, words)
		if inner != "" {
			f.Fields = shape(inner)
			if f.Type == "" {
				f.Type = "object"
			}
		}
		if fieldName.MatchString(name) {
			fields, several = append(fields, f), append(several, strings.Contains(words, "numbers"))
		}
		text = after
	}
	for i := len(fields) - 2; i >= 0; i-- {
		if several[i+1] && fields[i].Type == "" {
			fields[i].Type, several[i] = fields[i+1].Type, true
		}
		if forAll.MatchString(fields[i+1].words) {
			fields[i].Required, fields[i].words = true, fields[i].words+fields[i+1].words
		}
	}
	return fields
}

// forAll are the words that make all fields up to theirs required.
var forAll = regexp.MustCompile(`\) required|(both|all|all four) required`)

// fieldName leaves out values and expressions that are in backquotes, such as `<BASE>/<QUOTE>`.
var fieldName = regexp.MustCompile(`^_?[a-z][A-Za-z0-9_]*$`)

// nextName finds the next name in backquotes outside of round brackets, and what follows it.
func nextName(text string) (name, rest string, ok bool) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == '`' && depth == 0:
			return strings.Cut(text[i+1:], "`")
		}
	}
	return "", "", false
}

// describing splits what follows a name: the words that describe it, with brackets, the members in braces, and the rest.
func describing(text string) (words, inner, after string) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth > 0:
		case r == '{':
			inner, after = inBraces(text[i:])
			return text[:i], inner, after
		case strings.ContainsRune("`,}.", r):
			return text[:i], "", text[i:]
		}
	}
	return text, "", ""
}

// inBraces splits a text that begins with a brace into what the braces hold and the rest.
func inBraces(text string) (inner, after string) {
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[1:i], text[i+1:]
			}
		}
	}
	return text[1:], ""
}

// operation reads a row of a table of operations. Those before it are what "same" refers to.
func operation(cells []string, before []Operation) Operation {
	method, path, _ := strings.Cut(cells[0], " ")
	o := Operation{Method: method, Path: path, Response: shape(cells[2])}
	// Words before the first name, and without one all words, state what the whole answer is.
	if leading, _, _ := strings.Cut(outsideBrackets(cells[2]), "`"); !strings.Contains(leading, "{") && strings.TrimSpace(leading) != "" {
		o.Response = append(o.Response, Field{words: leading})
	}
	for _, match := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		o.Parameters = append(o.Parameters, Parameter{Name: match[1], In: "path", Type: "string", Required: true, Values: valuesBefore(before, match[1], cells[1])})
	}
	elsewhere := "query"
	if method == "POST" {
		elsewhere = "body"
	}
	for _, clause := range clauses(cells[1]) {
		if match := byDefault.FindStringSubmatch(clause); match != nil && len(o.Parameters) > 0 && strings.HasPrefix(strings.TrimSpace(clause), "default") {
			o.Parameters[len(o.Parameters)-1].Default = match[1]
			continue
		}
		oneOf := strings.Contains(clause, "one of")
		for {
			name, rest, ok := nextName(clause)
			if !ok {
				break
			}
			// `name`: `value`, `value` lists the values; otherwise the next name in backquotes is the next parameter.
			words, listed := rest, strings.HasPrefix(rest, ":")
			if next := strings.IndexByte(outsideBrackets(rest), '`'); next >= 0 && !listed {
				words = rest[:next]
			}
			p := Parameter{Name: name, In: elsewhere}
			readParameter(&p, words)
			p.Required = p.Required && !oneOf
			if len(p.Values) == 0 {
				p.Values = valuesBefore(before, name, cells[1])
			}
			clause = rest[len(words):]
			if at := slices.IndexFunc(o.Parameters, func(known Parameter) bool { return known.Name == name }); at < 0 {
				o.Parameters = append(o.Parameters, p)
			} else if len(p.Values) > 0 {
				o.Parameters[at].Values = p.Values
			}
		}
	}
	return o
}

// clauses splits a text at its semicolons outside of round brackets.
func clauses(text string) (list []string) {
	for {
		end := strings.IndexByte(outsideBrackets(text), ';')
		if end < 0 {
			return append(list, text)
		}
		list, text = append(list, text[:end]), text[end+1:]
	}
}

// outsideBrackets blanks what is in round brackets; every byte keeps its place.
func outsideBrackets(text string) string {
	out, depth := []byte(text), 0
	for i, c := range out {
		if c == '(' {
			depth++
		}
		if depth > 0 {
			out[i] = ' '
		}
		if c == ')' {
			depth--
		}
	}
	return string(out)
}

var (
	inQuotes  = regexp.MustCompile("`([^`]+)`")
	byDefault = regexp.MustCompile("default `?([A-Za-z0-9_]+)`?")
	atMost    = regexp.MustCompile(`(?:max|1 to) (\d+)`)
)

// readParameter reads the words after the name of a parameter.
func readParameter(p *Parameter, words string) {
	p.Type = types.FindString(words)
	if p.Type == "string[]" {
		p.Type = "array"
	}
	p.Required = strings.Contains(words, "required")
	if strings.Contains(words, "tool-style") && strings.Contains(words, "reference style") {
		p.Type = "" // of two types, by the view
		return
	}
	if match := atMost.FindStringSubmatch(words); match != nil {
		p.Most, _ = strconv.Atoi(match[1]) // digits
	}
	values := words
	if match := byDefault.FindStringSubmatch(words); match != nil {
		p.Default = match[1]
		values = strings.Replace(words, match[0], "", 1)
	}
	for _, match := range inQuotes.FindAllStringSubmatch(values, -1) {
		p.Values = append(p.Values, match[1])
	}
	switch {
	case p.Type != "":
	case len(p.Values) > 0 || strings.Contains(words, "ISO") || strings.Contains(words, "comma-separated"):
		p.Type = "string"
	case regexp.MustCompile(`^[0-9]+$`).MatchString(p.Default):
		p.Type = "integer"
	}
}

// valuesBefore are the values that an operation before gave to a parameter of the same name, where the row says "same".
func valuesBefore(before []Operation, name, cell string) []string {
	if !strings.Contains(cell, "same") {
		return nil
	}
	for _, o := range slices.Backward(before) {
		for _, p := range o.Parameters {
			if p.Name == name {
				return p.Values
			}
		}
	}
	return nil
}

// resolve finds the resources that the words of each field name.
func resolve(fields []Field, resources []string) {
	for i := range fields {
		f := &fields[i]
		resolve(f.Fields, resources)
		phrase := strings.TrimSpace(outsideBrackets(f.words))
		if strings.Contains(f.words, "(aggregated price)") || phrase == "" {
			phrase = strings.Trim(f.words, "() ")
		}
		if len(f.Fields) > 0 {
			continue
		}
		if _, elements, ok := strings.Cut(phrase, "array of "); ok {
			phrase = elements
		} else if _, elements, ok := strings.Cut(phrase, " to "); ok && f.Type == "map" {
			phrase = elements
		} else if f.Type != "" && f.Type != "object" {
			continue
		}
		f.Resources = named(phrase, resources)
		if len(f.Resources) > 0 && f.Type == "" {
			f.Type = "object"
			if f.Name != "" && strings.HasSuffix(phrase, "s") {
				f.Type = "array"
			}
		}
	}
}

// named are the resources that a phrase names best: those with more than half of its words, or half of them and all of the
// name of a form, and the fewest others.
func named(phrase string, resources []string) (best []string) {
	wanted := wordsOf(types.ReplaceAllString(phrase, ""))
	most := 0
	for _, name := range resources {
		section, form, _ := strings.Cut(name, ": ")
		matching := func(has []string) (n int) {
			for _, w := range wanted {
				if slices.Contains(has, w) {
					n++
				}
			}
			return n
		}
		n, ofForm := matching(wordsOf(name)), wordsOf(types.ReplaceAllString(form, ""))
		whole := len(ofForm) > 0 && matching(ofForm) == len(ofForm)
		if 2*n < len(wanted) || 2*n == len(wanted) && !whole {
			continue
		}
		// The whole name of a form counts more than a word, and every word that is not asked for a little less.
		score := 100*n - len(wordsOf(outsideBrackets(section)))
		switch {
		case whole:
			score += 50
		case form != "":
			score--
		}
		if score > most {
			best, most = nil, score
		}
		if score == most {
			best = append(best, name)
		}
	}
	return best
}

// inherit gives to the fields without a type the one that all others of their name have, and to lists and maps the one of the
// last operation before.
func inherit(s *Specification) {
	lists := map[string]Field{}
	for i := range s.Operations {
		walk(s.Operations[i].Response, func(f *Field) {
			if (f.Type == "array" || f.Type == "map") && len(f.Resources) > 0 {
				lists[f.Name] = *f
			} else if like, ok := lists[f.Name]; ok && f.Type == "" {
				f.Type, f.Resources = like.Type, like.Resources
			}
		})
	}
	known, various := map[string]Field{}, map[string]bool{}
	each := func(visit func(*Field)) {
		for i := range s.Operations {
			walk(s.Operations[i].Response, visit)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
			walk(s.Resources[name], visit)
		}
	}
	each(func(f *Field) {
		if f.Type == "" || f.Name == "" {
			return
		}
		if other, ok := known[f.Name]; ok && (other.Type != f.Type || !slices.Equal(other.Resources, f.Resources) || len(f.Fields) > 0) {
			various[f.Name] = true
		}
		known[f.Name] = *f
	})
	each(func(f *Field) {
		if like, ok := known[f.Name]; ok && f.Type == "" && !various[f.Name] {
			f.Type, f.Resources, f.Fields = like.Type, like.Resources, like.Fields
		}
	})
}

// walk visits fields and their members.
func walk(fields []Field, visit func(*Field)) {
	for i := range fields {
		visit(&fields[i])
		walk(fields[i].Fields, visit)
	}
}

// wordsOf are the words of a phrase, in the singular, in lower case.
func wordsOf(phrase string) (words []string) {
	for _, w := range regexp.MustCompile(`[A-Za-z&]+`).FindAllString(strings.ToLower(phrase), -1) {
		switch {
		case strings.HasSuffix(w, "ies"):
			w = strings.TrimSuffix(w, "ies") + "y"
		case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
			w = strings.TrimSuffix(w, "s")
		}
		words = append(words, w)
	}
	return words
}
