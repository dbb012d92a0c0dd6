package command

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeYAML prints a value as a document of YAML with the fields of its JSON, in their order.
func writeYAML(to io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil { // JSON is YAML
		return err
	}
	asBlocks(&document)
	var out bytes.Buffer
	out.WriteString("---\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	_, err = to.Write(out.Bytes())
	return err
}

// oldBooleans are words that YAML 1.1 reads as booleans, and parsers of it are common; the encoder quotes for YAML 1.2.
var oldBooleans = []string{"y", "n", "yes", "no", "on", "off"}

// asBlocks takes the braces, brackets and quotation marks of JSON away; the encoder quotes what needs it.
func asBlocks(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && slices.Contains(oldBooleans, strings.ToLower(n.Value)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		asBlocks(child)
	}
}

// csvTable prints objects as records of CSV (RFC 4180), below a header with the names of their fields. Values that are no scalars are JSON.
type csvTable struct {
	to      *csv.Writer
	columns []string
	begun   bool
}

func newCSVTable(to io.Writer) *csvTable { return &csvTable{to: csv.NewWriter(to)} }

// columnsOf makes the fields of a struct the columns, also those that its values leave out.
func (t *csvTable) columnsOf(v any) {
	if of := reflect.TypeOf(v); len(t.columns) == 0 && of != nil {
		t.columns = fieldNames(of)
	}
}

func fieldNames(of reflect.Type) (names []string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			names = append(names, fieldNames(f.Type)...)
		case name == "":
			names = append(names, f.Name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// field is a field of an object of JSON.
type field struct {
	name  string
	value json.RawMessage
}

// fieldsOf are the fields of an object in their order.
func fieldsOf(object json.RawMessage) (fields []field, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.Join(errors.New("csv needs objects"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := field{name: fmt.Sprint(name)}
		if err := d.Decode(&f.value); err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func (t *csvTable) write(v any) error {
	t.columnsOf(v)
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	object, err := fieldsOf(text)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(object, func(f field) bool { return f.name == "data" && len(f.value) > 0 && f.value[0] == '{' }); i >= 0 {
		if object, err = fieldsOf(object[i].value); err != nil { // an answer of the REST interface
			return err
		}
	}
	objects := [][]field{object}
	if rows, ok := rowsOf(object); ok && !t.begun {
		if objects, t.columns = rows, nil; len(rows) == 0 {
			return nil
		}
	}
	if len(t.columns) == 0 {
		for _, o := range objects {
			for _, f := range o {
				if !slices.Contains(t.columns, f.name) {
					t.columns = append(t.columns, f.name)
				}
			}
		}
	}
	if !t.begun {
		t.begun = true
		_ = t.to.Write(t.columns) // Error returns it
	}
	for _, o := range objects {
		if err := t.record(o); err != nil {
			return err
		}
	}
	t.to.Flush()
	return t.to.Error()
}

// rowsOf is the one list of objects that an object has among its fields.
func rowsOf(object []field) (rows [][]field, ok bool) {
	for _, f := range object {
		var elements []json.RawMessage
		if len(f.value) == 0 || f.value[0] != '[' || json.Unmarshal(f.value, &elements) != nil {
			continue
		}
		var found [][]field
		for _, e := range elements {
			fields, err := fieldsOf(e)
			if err != nil {
				break
			}
			found = append(found, fields)
		}
		if len(found) < len(elements) {
			continue // of scalars
		}
		if ok {
			return nil, false
		}
		rows, ok = found, true
	}
	return rows, ok
}

func (t *csvTable) record(object []field) error {
	record := make([]string, len(t.columns))
	for _, f := range object {
		i := slices.Index(t.columns, f.name)
		if i < 0 {
			return fmt.Errorf("csv has no column for the field %q, which the objects before did not have; use --output json", f.name)
		}
		record[i] = cell(f.value)
	}
	return t.to.Write(record)
}

// cell is a string without its quotation marks, nothing for null, else the JSON.
func cell(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil { // null is nothing too
		return text
	}
	var short bytes.Buffer
	if json.Compact(&short, value) != nil {
		return string(value)
	}
	return short.String()
}
