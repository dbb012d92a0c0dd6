package provider

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
)

// AppendTime spells a time in Unix nanoseconds, in UTC.
func AppendTime(b []byte, t int64, layout string) []byte {
	return time.Unix(0, t).UTC().AppendFormat(b, layout)
}

// SpellTime spells a time in Unix nanoseconds, in UTC.
func SpellTime(t int64, layout string) string { return string(AppendTime(nil, t, layout)) }

// AppendUUID spells the n-th random UUID of a seed, version 4.
func AppendUUID(b []byte, s market.Seed, n int64) []byte {
	var id [16]byte
	for half := range 2 {
		bits := s.At(2*n + int64(half))
		for i := range 8 {
			id[8*half+i] = byte(bits >> (8 * i))
		}
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, id[[...]int{0, 4, 6, 8, 10}[i]:end])
	}
	return b
}

// Respond answers with JSON.
func Respond(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // a venue's side made something that is not JSON
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// Nullable is a number that may be unknown.
type Nullable float64

// MarshalJSON spells an unknown number null.
func (n Nullable) MarshalJSON() ([]byte, error) {
	x := float64(n)
	format := byte('f')
	switch size := math.Abs(x); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case size != 0 && size < 1e-6, size >= 1e21:
		format = 'e'
	}
	return strconv.AppendFloat(make([]byte, 0, 24), x, format, -1, 64), nil
}
