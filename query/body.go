package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/valyala/fasthttp"
)

// gzipFrom is the size from which a body is worth compressing: below it, it fits one packet.
const gzipFrom = 1_200

// Body is an encoded answer with its entity tag, made once and shared by all who ask. Its bytes
// must not be changed.
type Body struct {
	plain   []byte
	tag     []byte
	gzipTag []byte
	gzipped atomic.Pointer[[]byte]
}

// NewBody encodes a value.
func NewBody(v any) (*Body, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return RawBody(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// RawBody takes JSON that is encoded already; the caller gives the bytes away.
func RawBody(encoded []byte) *Body {
	// The tag is a digest of the bytes, so it is strong: replicas with the same response have the same tag.
	sum := sha256.Sum256(encoded)
	tag := base64.RawURLEncoding.EncodeToString(sum[:12])
	return &Body{plain: encoded, tag: []byte(`"` + tag + `"`), gzipTag: []byte(`"` + tag + `-gzip"`)}
}

// JSON returns the encoded answer, which must not be changed.
func (b *Body) JSON() []byte { return b.plain }

// gzip returns the compressed body, made at the first call.
func (b *Body) gzip() []byte {
	if p := b.gzipped.Load(); p != nil {
		return *p
	}
	z := fasthttp.AppendGzipBytesLevel(nil, b.plain, fasthttp.CompressBestSpeed)
	b.gzipped.Store(&z)
	return z
}

// Meta is the part of meta that many answers share.
type Meta struct {
	Count       int              `json:"count" doc:"Rows returned"`
	LastUpdated string           `json:"lastUpdated,omitempty" format:"date-time" doc:"Log time up to which the view behind this response is complete"`
	Clamped     map[string]int64 `json:"clamped,omitempty" doc:"Parameters lowered to their maximum, with the value used"`
}

// FormatTime writes Unix nanoseconds as ISO 8601 in UTC with exactly three decimals, so that times are in the order of their
// texts; empty for 0, which means unknown.
func FormatTime(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

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
