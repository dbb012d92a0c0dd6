package earn_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newWorld understands, beside what all scripts do, records of the earn fold as text: variant, change and fixing, made in the
// minute of the clock, and correction, a fixing that an operator wrote.
func newWorld(t testing.TB) *querytest.World {
	coins := querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,", "tether,USDT,Tether,3,stablecoin,USD,", "usd-coin,USDC,USDC,4,stablecoin,USD,",
		"other-tether,USDT,Other Tether,5,token,,")
	w := querytest.NewWorld(t, coins)
	w.Open(enginetest.Database(t))
	keep := func(mark bool, make func(text string, minute int64) *eventsv1.EarnRecord) func([]string) {
		return func(words []string) {
			minute := w.Now.Truncate(time.Minute).UnixNano()
			rec, offset := make(strings.Join(words[1:], " "), minute), w.Offset()
			if mark {
				rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: minute}
			}
			var b history.Batch
			b.Add(history.Place{Topic: schemas.TopicEarn, Offset: offset}, rec)
			w.Must(w.Store.Insert(t.Context(), &b, ""))
		}
	}
	read := func(text string, into proto.Message) {
		said := into.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(text), said); err != nil {
			t.Fatalf("script: reading %q: %v", text, err)
		}
		proto.Merge(into, said)
	}
	w.Lines["variant"] = keep(true, func(text string, minute int64) *eventsv1.EarnRecord {
		v := &eventsv1.EarnVariant{}
		read(text, v)
		v.ProductId, v.VariantId = schemas.EarnProductID(v.Provider, v.CoinId, v.Category), schemas.EarnVariantID(v.Source, v.Pool, v.Term)
		v.Segment, v.Collection, v.Interval, v.Time = schemas.EarnSegment(v.Provider), schemas.EarnAPI, int64(time.Hour), minute
		if v.Heard == 0 {
			v.Heard = minute
		}
		if v.MaxApy == 0 {
			v.Apr, v.BaseApy, v.MaxApy = v.Apy, v.Apy, v.Apy
		}
		return &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Variant{Variant: v}}
	})
	w.Lines["change"] = keep(true, func(text string, minute int64) *eventsv1.EarnRecord {
		c := &eventsv1.EarnChange{Time: minute, Category: schemas.RateLending}
		read(text, c)
		return &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Change{Change: c}}
	})
	fixing := func(text string, minute int64) *eventsv1.EarnRecord {
		f := &eventsv1.EarnFixing{Time: minute, MethodologyVersion: schemas.EarnMethodology}
		read(text, f)
		return &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: f}}
	}
	w.Lines["fixing"], w.Lines["correction"] = keep(true, fixing), keep(false, fixing)
	w.Serve(earn.New(coins, w.Catalog, w.Store).Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newWorld(t).Run })
}
