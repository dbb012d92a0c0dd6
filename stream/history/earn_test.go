package history_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// earned is a record of earn.v1; its minute takes the place of the offset.
func earned(minute int64, rec *eventsv1.EarnRecord) logged {
	rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: minute}
	return logged{rows.Place{Topic: schemas.TopicEarn, Offset: minute}, rec}
}

func earnVariant(v *eventsv1.EarnVariant) logged {
	return earned(v.Time, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Variant{Variant: v}})
}

func earnFixing(f *eventsv1.EarnFixing) logged {
	return earned(f.Time, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: f}})
}

// correction is what an operator writes: it has no mark.
func correction(offset int64, f *eventsv1.EarnFixing) logged {
	return logged{rows.Place{Topic: schemas.TopicEarn, Offset: offset}, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: f}}}
}

func earnChange(c *eventsv1.EarnChange) logged {
	return earned(c.Time, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Change{Change: c}})
}

func TestEarnProductsComeBackAsTheyStood(t *testing.T) {
	store := newStore(t)
	full := &eventsv1.EarnVariant{
		ProductId: "bybit:tether:lending", VariantId: "bybit-earn:430:30d", Provider: "bybit", ProviderName: "Bybit", Segment: "cefi", CoinId: "tether", Symbol: "USDT", Category: "lending",
		Source: "bybit-earn", Pool: "430", ProviderSymbol: "USDT", Chain: "c", Name: "n", Term: "30d", Status: "open", Apr: 1, Apy: 2, RewardApy: proto.Float64(0.5), BaseApy: 1.5, MaxApy: 3,
		Compounding: "daily", Tiers: []*eventsv1.EarnTier{{From: "0", To: "200", Apr: 2, Apy: 3}, {From: "200", Apr: 1, Apy: 1.5}}, TvlUsd: proto.Float64(7), MinAmount: "0.5", MaxAmount: "1000",
		LockupDays: proto.Float64(30), NoticeDays: proto.Float64(1), Payout: "daily", Promo: true, Served: []string{"DE", "FR"}, Refused: []string{"US"}, Confidence: 0.855, Collection: "api",
		Simulated: true, Interval: 600e9, Time: noon, Heard: noon - 1,
	}
	closed := proto.CloneOf(full)
	closed.Status, closed.Time, closed.Confidence = "closed", noon+90*aMinute, 0
	other := &eventsv1.EarnVariant{ProductId: "bybit:tether:lending", VariantId: "bybit-earn:431", CoinId: "tether", Status: "open", Time: noon + 60*aMinute, Apy: -1}
	insert(t, store, earnVariant(full), earnVariant(closed), earnVariant(other))
	for _, test := range []struct {
		minute int64
		want   []*eventsv1.EarnVariant
	}{{-1, nil}, {0, []*eventsv1.EarnVariant{full}}, {89, []*eventsv1.EarnVariant{full, other}}, {90, []*eventsv1.EarnVariant{closed, other}}} {
		got, err := read.From(store).EarnVariantsAt(t.Context(), "bybit:tether:lending", at(test.minute*60))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range append(got, test.want...) {
			v.Heard = max(v.Heard, 0) // 0 in the log is 1970 in a table
		}
		if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("at minute %d: want(-), got(+):\n%s", test.minute, diff)
		}
	}
	for since, want := range map[int64]int{90: 2, 91: 1} {
		if got, err := read.From(store).EarnVariants(t.Context(), at(since*60)); err != nil || len(got) != want {
			t.Errorf("closed since minute %d: got %d variants, %v, want %d", since, len(got), err, want)
		}
	}
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_earn_products WHERE variant_id = 'bybit-earn:430:30d'",
		`('bybit:tether:lending','bybit-earn:430:30d','closed','bybit','Bybit','cefi','tether','USDT','lending','bybit-earn','430','USDT','c','n','30d',true,1,2,0.5,1.5,3,'daily',`+
			`[('0','200',2,3),('200','',1,1.5)],7,0.5,1000,30,1,'daily',true,['DE','FR'],['US'],0,'api',true,600,'2026-03-01 11:59:59.999999999','2026-03-01 13:30:00','2026-03-01 13:31:00.000000000')`)
}

func TestACorrectionOfAFixingLiesBesideIt(t *testing.T) {
	store := newStore(t)
	quotes := []*eventsv1.EarnQuote{{Provider: "aave-v3", Segment: "defi", Apy: 4, TvlUsd: 10, Variants: 2}, {Provider: "okx", Segment: "cefi", Apy: 3, Variants: 1}}
	first := &eventsv1.EarnFixing{Date: "2026-03-01", Segment: "overall", Median: 3.5, TvlWeighted: proto.Float64(4), ProviderCount: 2, TvlUsd: 10, Quotes: quotes, MethodologyVersion: 1, Time: noon}
	cefi := &eventsv1.EarnFixing{Date: "2026-03-01", Segment: "cefi", Median: 3, ProviderCount: 1, Quotes: quotes[1:], MethodologyVersion: 1, Time: noon, Simulated: true}
	again := &eventsv1.EarnFixing{Date: "2026-03-01", Segment: "overall", Median: 4, TvlWeighted: proto.Float64(4), ProviderCount: 1, TvlUsd: 10, Quotes: quotes[:1], MethodologyVersion: 1,
		Revision: 1, Supersedes: "2026-03-01/overall/0", Reason: "okx sent nonsense", Time: noon + aMinute}
	before := &eventsv1.EarnFixing{Date: "2026-02-28", Segment: "overall", Time: noon - 1440*aMinute}
	insert(t, store, earnFixing(first), earnFixing(cefi), correction(7, again), earnFixing(before))
	got, err := read.From(store).EarnFixingsOf(t.Context(), at(0))
	if err != nil {
		t.Fatal(err)
	}
	want := []*eventsv1.EarnFixing{cefi, first, again}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("of the day: want(-), got(+):\n%s", diff)
	}
	if got, err = read.From(store).EarnFixings(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&eventsv1.EarnFixing{}, "quotes")); diff != "" {
		t.Errorf("from the day on: want(-), got(+):\n%s", diff)
	}
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_earn_benchmark WHERE date > '2026-02-28' ORDER BY segment, revision",
		`('2026-03-01','cefi',0,true,'','','2026-03-01 12:00:00',3,NULL,1,0,[('okx','cefi',3,0,1)],1,true,'2026-03-01 12:01:00.000000000')`,
		`('2026-03-01','overall',0,false,'','','2026-03-01 12:00:00',3.5,4,2,10,[('aave-v3','defi',4,10,2),('okx','cefi',3,0,1)],1,false,'2026-03-01 12:01:00.000000000')`,
		`('2026-03-01','overall',1,true,'2026-03-01/overall/0','okx sent nonsense','2026-03-01 12:01:00',4,4,1,10,[('aave-v3','defi',4,10,2)],1,false,'2026-03-01 12:02:00.000000000')`)
	// As docs/formulas.md says it.
	checkRows(t, store, `SELECT toString((segment, arraySort(arrayMap(q -> q.3, quotes)) AS a, intDiv(length(a) + 1, 2) AS i, (a[i] + a[length(a) + 1 - i]) / 2,
		arraySum(q -> q.3 * q.4, quotes) / nullIf(arraySum(q -> q.4, quotes), 0))) FROM default.v_earn_benchmark WHERE revision = 0 AND date > '2026-02-28' ORDER BY segment`,
		"('cefi',[3],1,3,NULL)", "('overall',[3,4],1,3.5,4)")
}

func TestEarnChangesAreTheNewest(t *testing.T) {
	store := newStore(t)
	var records []logged
	for i := range int64(6) {
		records = append(records, earnChange(&eventsv1.EarnChange{ProductId: fmt.Sprint("p", i%2), VariantId: "v", Provider: []string{"okx", "gate"}[i%2], CoinId: []string{"tether", "dai"}[i/3],
			Symbol: "S", Category: "lending", Field: "cap", Before: fmt.Sprint(i), After: fmt.Sprint(i + 1), Time: noon + i*aMinute, Simulated: true}))
	}
	insert(t, store, records...)
	for _, test := range []struct {
		filter read.EarnFilter
		limit  int
		want   string
	}{
		{read.EarnFilter{Since: at(0)}, 10, "5 4 3 2 1 0"},
		{read.EarnFilter{Since: at(120)}, 3, "5 4 3"},
		{read.EarnFilter{Since: at(120), Until: at(240)}, 10, "4 3 2"},
		{read.EarnFilter{Since: at(0), CoinID: "tether"}, 10, "2 1 0"},
		{read.EarnFilter{Since: at(0), CoinID: "tether", Provider: "okx"}, 10, "2 0"},
	} {
		changes, err := read.From(store).EarnChanges(t.Context(), test.filter, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range changes {
			got += " " + c.Before
		}
		if got != " "+test.want {
			t.Errorf("%+v: got%s, want %s", test.filter, got, test.want)
		}
	}
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_earn_changes WHERE before = '5'", `('2026-03-01 12:05:00','p1','v','gate','dai','S','lending','cap','5','6',true,'2026-03-01 12:06:00.000000000')`)
}
