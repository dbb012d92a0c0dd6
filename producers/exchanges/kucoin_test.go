package exchanges

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
)

// The topics of trades and tickers take a list of symbols (3470072w0, 3470063w0), up to 100; the topic of snapshots takes one
// (3470065w0, "get snapshot data for a single symbol"). A connection may send 100 messages in 10 s.
func TestKucoinAsksForOneSnapshotATopic(t *testing.T) {
	v := kucoin()
	var markets []adapter.Instrument
	for i := range v.Limits.MarketsPerSocket {
		markets = append(markets, adapter.Instrument{Symbol: fmt.Sprintf("C%d-USDT", i)})
	}
	for kind, messages := range map[string][][]byte{"subscribe": v.Subscribe(markets), "unsubscribe": v.Unsubscribe(markets)} {
		asked := map[string]int{}
		for _, m := range messages {
			var request struct {
				Type, Topic string
				Response    bool
			}
			if err := json.Unmarshal(m, &request); err != nil || request.Type != kind || !request.Response {
				t.Fatalf("%s: %v", m, err)
			}
			topic, list, _ := strings.Cut(request.Topic, ":")
			names := strings.Split(list, ",")
			if most := map[string]int{"/market/match": 100, "/market/ticker": 100, "/market/snapshot": 1}[topic]; len(names) > most {
				t.Errorf("%s of %s names %d symbols, the documentation allows %d", kind, topic, len(names), most)
			}
			for _, name := range names {
				asked[topic+":"+name]++
			}
		}
		if len(asked) != 3*len(markets) || len(asked) > 300 {
			t.Errorf("%s: %d topics, want three of each of %d markets, and 300 at most", kind, len(asked), len(markets))
		}
		for topic, n := range asked {
			if n != 1 {
				t.Errorf("%s: %s is named %d times", kind, topic, n)
			}
		}
	}
	// Room for the pings that go out beside the subscriptions.
	if perTenSeconds := v.Limits.Messages * 10; perTenSeconds+2 > 100 {
		t.Errorf("%g messages in 10 s, and pings, want 100 at most", perTenSeconds)
	}
}
