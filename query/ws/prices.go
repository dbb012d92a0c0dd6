package ws

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// pricePoint is one published price as memory holds it, in 32 bytes.
type pricePoint struct {
	price, volume float64
	// previous is the coin's price before it in the log; 0 where that is unknown.
	previous float64
	second   uint32
	// rank is the coin's, source a place in the names of sources.
	rank, source uint16
}

func (t pricePoint) at() int64   { return int64(t.second) }
func (t pricePoint) order() int  { return int(t.rank) }
func (t pricePoint) weight() int { return 1 }

// maxSources bounds the names of sources; there are some dozens.
const maxSources = 4096

// priceLine is the timeline of published prices.
type priceLine struct {
	*line[pricePoint]
	// last is the newest price of each coin, by rank-1; 0 before the first.
	last []float64

	mu     sync.RWMutex
	names  []string
	places map[string]uint16
}

// newPriceLine keeps at most so many bytes of prices in memory.
func newPriceLine(h *Hub, partitions, coins, bytes int) *priceLine {
	l := &priceLine{last: make([]float64, coins), names: []string{""}, places: map[string]uint16{"": 0}}
	l.line = &line[pricePoint]{hub: h, ring: newRing[pricePoint](partitions, bytes), step: 1, filled: make(chan struct{}),
		wants: func(of wanted, t pricePoint) bool { return of.coins.has(int(t.rank)) },
		batch: func(found []pricePoint) entries { return pricePoints{l, found} },
		scan:  l.scanStore,
	}
	return l
}

func (l *priceLine) code() byte   { return 0 }
func (l *priceLine) name() string { return "" }

// apply takes a price of the coin with a rank.
func (l *priceLine) apply(partition int32, rank int, p *eventsv1.Price) {
	second := p.Time / int64(time.Second)
	if int(partition) >= l.partitions() || p.Reason != "" || second <= 0 || second > math.MaxUint32 || rank > math.MaxUint16 {
		return
	}
	l.ring.add(partition, pricePoint{
		price: p.Price, volume: p.Volume24H, previous: l.last[rank-1], second: uint32(second), rank: uint16(rank), source: l.nameSource(p.Source),
	})
	l.last[rank-1] = p.Price
}

// nameSource is where the name of a source is held; that of one too many is lost.
func (l *priceLine) nameSource(source string) uint16 {
	l.mu.RLock()
	at, ok := l.places[source]
	l.mu.RUnlock()
	if ok {
		return at
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.places[source]; ok {
		return at
	}
	if len(l.names) >= maxSources {
		return 0
	}
	at = uint16(len(l.names))
	l.names, l.places[source] = append(l.names, source), at
	return at
}

// source is the name of a price's source.
func (l *priceLine) source(place uint16) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.names[place]
}

// seedSeconds is how long before a page the price before it is looked for: an unchanged one is published again within it.
const seedSeconds = int64(schemas.PriceRepeat/time.Second) + 1

func (l *priceLine) scanStore(ctx context.Context, r *pastReader, first, last int64, until position, of wanted, visit func(int32, pricePoint)) (rows, most int, err error) {
	most = pageMost
	if r.before == nil {
		r.before = make([]float64, len(l.last))
		first, most = first-seedSeconds, most+int(seedSeconds)*len(l.last)
	}
	coins := l.hub.deps.Prices.Coins()
	err = l.hub.deps.Past.Prices(ctx, first, last, l.hub.named(of.coins), most, func(p PastPrice) {
		rows++
		coin, known := coins.ByID(p.CoinID)
		if !known || !of.coins.has(coin.Rank) || int(p.Partition) >= len(until) || p.Second > until[p.Partition] {
			return // memory has what is newer
		}
		visit(p.Partition, l.fromStore(p, coin.Rank, r.before))
	})
	return rows, most, err
}

// fromStore is a price from the store as memory holds it; before are the prices before it, by rank-1.
func (l *priceLine) fromStore(p PastPrice, rank int, before []float64) pricePoint {
	t := pricePoint{price: p.Price, volume: p.Volume, previous: before[rank-1], second: uint32(p.Second), rank: uint16(rank), source: l.nameSource(p.Source)}
	before[rank-1] = p.Price
	return t
}

// pricePoints are prices of one second.
type pricePoints struct {
	line *priceLine
	list []pricePoint
}

func (p pricePoints) count() int { return len(p.list) }

func (p pricePoints) append(out []byte) []byte {
	coins := p.line.hub.deps.Prices.Coins().All()
	for i, t := range p.list {
		if i > 0 {
			out = append(out, ',')
		}
		previous := t.previous
		if previous == 0 {
			previous = t.price
		}
		out = appendElement(appendCoin(out, coins[t.rank-1]), t.price, t.volume, int64(t.second)*1000, p.line.source(t.source), previous)
		out = append(out, '}')
	}
	return out
}

// encode writes a frame of delivery all. It has no number, since each price comes once: the cursor says how far.
func (l *priceLine) encode(b batch) []byte {
	out := append(open(make([]byte, 0, 160+180*b.count()), typeUpdate), `,"data":[`...)
	return appendTail(append(b.entries.append(out), ']'), b.second*int64(time.Second))
}

// seed remembers the prices that the price cache was filled with.
func (l *priceLine) seed(cache *views.PriceCache) {
	cache.Entries(func(e *views.Entry) { l.last[e.Coin.Rank-1] = e.Price.Price })
}
