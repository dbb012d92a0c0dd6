package simulator

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// What more than one venue spells alike.

func side(buy bool) string {
	if buy {
		return "buy"
	}
	return "sell"
}

func appendTime(b []byte, t int64, layout string) []byte {
	return time.Unix(0, t).UTC().AppendFormat(b, layout)
}

func spellTime(t int64, layout string) string { return string(appendTime(nil, t, layout)) }

// number is a JSON number with no zeros at its end.
func number(d Decimal) json.Number { return json.Number(d.Short()) }

// appendUUID spells the n-th random UUID of a seed, version 4.
func appendUUID(b []byte, s seed, n int64) []byte {
	var id [16]byte
	for half := range 2 {
		bits := s.at(2*n + int64(half))
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

// respond answers with JSON.
func respond(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // a venue's side made something that is no JSON
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// instant reads RFC 3339, with or without a zone, or Unix seconds; an empty text is absent.
func instant(text string, absent time.Time) (t time.Time, ok bool) {
	if text == "" {
		return absent, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return t, false
}
