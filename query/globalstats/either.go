package globalstats

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// SentimentOf is a Sentiment, or with all ranks SentimentData.
type SentimentOf struct{ value any }

// MarshalJSON writes what is reported.
func (s SentimentOf) MarshalJSON() ([]byte, error) { return json.Marshal(s.value) }

// Schema describes it to the OpenAPI document.
func (SentimentOf) Schema(registry huma.Registry) *huma.Schema {
	return either(registry, reflect.TypeFor[Sentiment](), reflect.TypeFor[SentimentData]())
}

// MoversOf is a Segment, a FlatSegment, or with all ranks MoversData.
type MoversOf struct{ value any }

// MarshalJSON writes what is reported.
func (m MoversOf) MarshalJSON() ([]byte, error) { return json.Marshal(m.value) }

// Schema describes it to the OpenAPI document.
func (MoversOf) Schema(registry huma.Registry) *huma.Schema {
	return either(registry, reflect.TypeFor[Segment](), reflect.TypeFor[FlatSegment](), reflect.TypeFor[MoversData]())
}

func either(registry huma.Registry, types ...reflect.Type) *huma.Schema {
	s := &huma.Schema{}
	for _, t := range types {
		s.AnyOf = append(s.AnyOf, registry.Schema(t, true, t.Name()))
	}
	return s
}
