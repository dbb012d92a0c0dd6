package views

import (
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

func priceRecord(coin string, offset, second int64, price float64, reason string) stream.TailRecord {
	return stream.TailRecord{Partition: 3, Offset: offset, Marked: &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: offset},
		Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: coin, Time: second * int64(time.Second), Price: price, Reason: reason}}}}
}

func TestPriceCacheNeverGoesBack(t *testing.T) {
	b := NewPriceCache(schemas.Coins())
	bitcoin, _ := b.Coins().ByID("bitcoin")
	for _, c := range []struct {
		what   string
		rec    stream.TailRecord
		price  float64
		time   int64
		reason string
	}{
		{"the first", priceRecord("bitcoin", 10, 100, 1, ""), 1, 100, ""},
		{"an older one", priceRecord("bitcoin", 9, 99, 2, ""), 1, 100, ""},
		{"the same again", priceRecord("bitcoin", 10, 100, 3, ""), 1, 100, ""},
		{"a newer one", priceRecord("bitcoin", 11, 101, 4, ""), 4, 101, ""},
		{"one without a price", priceRecord("bitcoin", 12, 300, 0, "no_fresh_inputs"), 4, 101, "no_fresh_inputs"},
		{"an older price behind it", priceRecord("bitcoin", 11, 101, 5, ""), 4, 101, "no_fresh_inputs"},
		{"a price again", priceRecord("bitcoin", 13, 301, 6, ""), 6, 301, ""},
	} {
		if err := b.Apply(c.rec); err != nil {
			t.Fatal(err)
		}
		e := b.Entry(bitcoin)
		if e.Price.Price != c.price || e.Price.Time != c.time*int64(time.Second) || e.Latest.Reason != c.reason {
			t.Errorf("after %s: price %g of %d, reason %q; want %g of %d, %q", c.what, e.Price.Price, e.Price.Time/int64(time.Second), e.Latest.Reason, c.price, c.time, c.reason)
		}
	}
	version := b.Version()
	if err := b.Apply(priceRecord("no-such-coin", 14, 302, 1, "")); err != nil || b.Version() == version && b.Now() != 302*int64(time.Second) {
		t.Errorf("a coin outside the table: %v, now %d", err, b.Now())
	}
	ethereum, _ := b.Coins().ByID("ethereum")
	if err := b.Apply(priceRecord("ethereum", 15, 303, 0, "no_consensus")); err != nil || b.Entry(ethereum) != nil {
		t.Errorf("a coin that never had a price has an entry (%v)", err)
	}
}

func TestAChangeIsEncodedOnceForAllReaders(t *testing.T) {
	b := NewPriceCache(schemas.Coins())
	memo := NewEntryCache[int](b)
	bitcoin, _ := b.Coins().ByID("bitcoin")
	made := 0
	read := func(fresh Freshness) int {
		n, err := memo.Get(b.Entry(bitcoin), fresh, OthersKey{}, func() (int, error) { made++; return made, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for change := range int64(3) {
		if err := b.Apply(priceRecord("bitcoin", change, change, 1, "")); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if n := read(Freshness{}); n != int(change)+1 {
				t.Fatalf("after %d changes a reader gets encoding %d", change+1, n)
			}
		}
	}
	if n := read(Freshness{Stale: true}); n != 4 {
		t.Errorf("a price that became stale is answered with encoding %d, want a new one", n)
	}
}

func TestPriceCacheIsReadWhileItChanges(t *testing.T) {
	b := NewPriceCache(schemas.Coins())
	bitcoin, _ := b.Coins().ByID("bitcoin")
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			last := int64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if e := b.Entry(bitcoin); e != nil {
					if e.Price.Time < last || e.Price.Price != float64(e.Price.Time/int64(time.Second)) {
						t.Errorf("read price %g of %d after %d", e.Price.Price, e.Price.Time, last)
						return
					}
					last = e.Price.Time
				}
			}
		})
	}
	for i := range int64(2000) {
		if err := b.Apply(priceRecord("bitcoin", i, i, float64(i), "")); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
}
