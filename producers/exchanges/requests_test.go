package exchanges

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
)

// Requests are written as text: whatever a venue calls a market, and however many there are, each message is JSON and names no more than
// the venue allows, and no text of a symbol is taken for a part of the request.
func TestRequestsAreJSONWhateverASymbolIs(t *testing.T) {
	odd := []string{`A"B`, `A\`, "<verb>", "<topics>", "A\nB", "Ä-ẞ", ""}
	for _, v := range List() {
		var markets []adapter.Instrument
		for i := range v.Limits.MarketsPerSocket {
			markets = append(markets, adapter.Instrument{Symbol: odd[i%len(odd)]})
		}
		messages := v.Subscribe(markets)
		if v.Unsubscribe != nil {
			messages = append(messages, v.Unsubscribe(markets)...)
		}
		if len(messages) == 0 {
			t.Errorf("%s asks for nothing", v.Slug)
		}
		for _, m := range messages {
			if !json.Valid(m) || strings.Contains(string(m), "<") {
				t.Errorf("%s: %.300s is not JSON, or has a part that was not filled in", v.Slug, m)
			}
		}
	}
}

func TestBatchesNameEachTopicOnce(t *testing.T) {
	r := requests{Most: 3, Topics: []string{`"a.<symbol>"`, `"b.<lower>"`}, Messages: []string{`{"<verb>":[<topics>],"id":<n>}`}}
	var got []string
	for _, m := range r.with("sub")([]adapter.Instrument{{Symbol: "X"}, {Symbol: "Y"}}) {
		got = append(got, string(m))
	}
	want := `{"sub":["a.X","b.x","a.Y"],"id":1} {"sub":["b.y"],"id":2}`
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
