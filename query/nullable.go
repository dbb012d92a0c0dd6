package query

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Nullable is an object that is null in a response where there is none. Elsewhere what is unknown
// is left out.
type Nullable[T any] struct{ Value *T }

// MarshalJSON writes the object or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// Schema describes it to the OpenAPI document, which cannot mark a reference as nullable.
func (Nullable[T]) Schema(registry huma.Registry) *huma.Schema {
	t := reflect.TypeFor[T]()
	return &huma.Schema{AnyOf: []*huma.Schema{registry.Schema(t, true, t.Name()), {Type: "null"}}}
}
