package answertest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// spellRecord writes a record of the log as its kind and every field that is set, in the order of the schema.
func spellRecord(rec *eventsv1.ReferenceRecord) string {
	m := rec.ProtoReflect()
	body := m.WhichOneof(m.Descriptor().Oneofs().ByName("body"))
	return string(body.Name()) + " " + spellFields(m.Get(body).Message())
}

func spellFields(m protoreflect.Message) string {
	var words []string
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		if !m.Has(field) {
			continue
		}
		value := m.Get(field)
		if !field.IsList() {
			words = append(words, string(field.Name())+"="+spellValue(field, value))
			continue
		}
		var items []string
		for i := range value.List().Len() {
			items = append(items, spellValue(field, value.List().Get(i)))
		}
		words = append(words, string(field.Name())+"=["+strings.Join(items, ", ")+"]")
	}
	return strings.Join(words, " ")
}

func spellValue(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	switch name := string(field.Name()); {
	case field.Kind() == protoreflect.MessageKind:
		return "(" + spellFields(value.Message()) + ")"
	case strings.HasSuffix(name, "_time") || name == "next_update":
		return time.Unix(0, value.Int()).UTC().Format(time.RFC3339Nano)
	case field.Kind() == protoreflect.StringKind && strings.ContainsAny(value.String(), " =[](),\"\n"):
		return strconv.Quote(value.String())
	default:
		return fmt.Sprint(value.Interface())
	}
}
