package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

func TestPricesOfASpanComeBySecondAndOnce(t *testing.T) {
	store := newStore(t)
	if got, err := read.From(store).OldestPrice(t.Context(), time.Unix(0, noon)); err != nil || got > 0 {
		t.Errorf("the oldest price of an empty table is %d, %v, want none", got, err)
	}
	first := noon / int64(time.Second)
	batch := &rows.Batch{}
	add := func(offset int64, coin string, second int64, price float64, reason string) {
		record := &eventsv1.PriceRecord{
			Mark: &eventsv1.Mark{LogicVersion: 1, Partition: 3, Offset: offset},
			Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: coin, Time: second * int64(time.Second), Price: price, Volume24H: 7, Source: "kraken", Reason: reason}},
		}
		batch.Add(rows.Place{Topic: schemas.TopicPrices, Partition: 3, Offset: offset}, record)
	}
	for i := range int64(4) {
		add(10+2*i, "ethereum", first+i, float64(20+i), "")
		add(11+2*i, "bitcoin", first+i, float64(10+i), "")
	}
	add(30, "solana", first+2, 0, "no_fresh_inputs")
	for range 2 { // a killed sink inserts twice
		if err := batch.Insert(t.Context(), store, ""); err != nil {
			t.Fatal(err)
		}
	}
	span := func(after, until int64, coins []string, most int) (all []read.SpanPrice) {
		t.Helper()
		if err := read.From(store).PricesBetween(t.Context(), after, until, coins, most, func(p read.SpanPrice) { all = append(all, p) }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	row := func(coin string, i int64, price float64) read.SpanPrice {
		return read.SpanPrice{CoinID: coin, Source: "kraken", Price: price, Volume24h: 7, Second: first + i, Partition: 3}
	}
	for _, test := range []struct {
		after, until int64
		coins        []string
		most         int
		want         []read.SpanPrice
	}{
		{first, first + 2, nil, 100, []read.SpanPrice{row("bitcoin", 1, 11), row("ethereum", 1, 21), row("bitcoin", 2, 12), row("ethereum", 2, 22)}},
		{first, first + 2, nil, 3, []read.SpanPrice{row("bitcoin", 1, 11), row("ethereum", 1, 21), row("bitcoin", 2, 12)}},
		{first - 9, first + 9, []string{"ethereum", "solana"}, 2, []read.SpanPrice{row("ethereum", 0, 20), row("ethereum", 1, 21)}},
		{first + 3, first + 9, nil, 100, nil},
	} {
		if got := span(test.after, test.until, test.coins, test.most); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v", test, got)
		}
	}
	// Whole days are dropped: from the start of the oldest one that is kept, or the oldest price, nothing lacks.
	if got, err := read.From(store).OldestPrice(t.Context(), time.Unix(first, 0).AddDate(0, 0, 30)); err != nil || got != first {
		t.Errorf("a month later the oldest price is %d, %v, want %d", got, err, first)
	}
	kept, err := store.KeptSince(t.Context(), "prices", time.Unix(first, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read.From(store).OldestPrice(t.Context(), time.Unix(first, 0)); err != nil || got != kept.Unix() || got >= first {
		t.Errorf("all is kept from %d on, %v, want %d", got, err, kept.Unix())
	}
	before, err := read.From(store).PricesView(t.Context())
	if err != nil || before == "" {
		t.Fatalf("the view is %q, %v", before, err)
	}
	uuid, err := shadow.Of(store).Create(t.Context(), "prices", 1)
	if err == nil {
		err = shadow.Of(store).Exchange(t.Context(), "prices", 1, uuid)
	}
	if after, failed := read.From(store).PricesView(t.Context()); err != nil || failed != nil || after == before || after != uuid {
		t.Errorf("after a replay the view is %q, %v %v, want %q", after, err, failed, uuid)
	}
}
