package exchanges

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// What venues send, and what becomes of it when bytes of it change, is read as encoding/json reads it.
func TestFramesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	random := streamtest.Rand(t)
	pieces := []string{"{", "}", "[", "]", ",", ":", `"`, "null", "true", "1e5", "-0", "01", "1.", `\u00e9`, "\xff", `\`, " ", "\x00", `\ud800`, "1e999", "{}", "[]", `"a"`}
	type shape struct {
		Name  string          `json:"s"`
		Price json.Number     `json:"p"`
		Data  json.RawMessage `json:"data"`
		Rows  [][2]string     `json:"b"`
		At    int64           `json:"E"`
		On    *bool           `json:"on"`
	}
	mutations := 0
	for _, v := range List() {
		for _, line := range sampleLines(t, v.Slug) {
			verb, rest, _ := strings.Cut(line, " ")
			if verb == "rest" {
				_, rest, _ = strings.Cut(rest, " ")
			}
			if rest == "" || verb != "ws" && verb != "rest" || len(rest) > mostFast {
				continue
			}
			for range 20 {
				b := rest
				for range random.IntN(3) {
					at, piece := random.IntN(len(b)), pieces[random.IntN(len(pieces))]
					switch random.IntN(4) {
					case 0:
						b = b[:at] + string([]byte{byte(random.Uint32())}) + b[at+1:]
					case 1:
						b = b[:at] + piece + b[at:]
					case 2:
						b = b[:at] + piece + b[min(len(b), at+len(piece)):]
					case 3:
						b = b[:at+1]
					}
				}
				mutations++
				for _, into := range []func() any{func() any { return new(any) }, func() any { return new(shape) }, func() any { return new([]shape) }} {
					want, got := into(), into()
					wantErr, gotErr := json.Unmarshal([]byte(b), want), parse([]byte(b), got)
					if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !reflect.DeepEqual(want, got) {
						t.Fatalf("%s: of %q\nencoding/json reads %+v, %v,\nparse %+v, %v", v.Slug, b, want, wantErr, got, gotErr)
					}
				}
			}
		}
	}
	if mutations < 1000 {
		t.Errorf("compared only %d", mutations)
	}
}

// Brackets without end are unreadable, in frames of any length, and end nothing else.
func TestDeepNestingIsUnreadable(t *testing.T) {
	for _, n := range []int{mostFast - 6, mostFast, 20_000, adapter.MaxFrame} {
		var v struct{ A int }
		if err := parse([]byte(`{"b":`+strings.Repeat("[", n)), &v); err == nil {
			t.Errorf("%d brackets are read as %v", n, v)
		}
	}
}
