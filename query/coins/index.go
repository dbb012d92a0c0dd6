package coins

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// index is what requests need of a catalog's coins, made once for all who ask while these stay the same. Coins are
// named by their place in coins.
type index struct {
	number    uint64
	snapshot  *views.Snapshot
	past      *past
	simulated bool
	updated   string // when the newest minute ended
	// stale means that this was longer ago than rowsStaleAfter.
	stale bool
	// asOf means that it is of a past instant, and made for one request.
	asOf  bool
	coins []*views.CatalogCoin
	// ranked means that coins before it have a rank.
	ranked int
	// priced are the coins with a market row.
	priced []int32
	masks  []mask

	mu         sync.Mutex
	orders     map[orderKey][]int32
	categories func() *categories
	createdAt  func() []int64
}

type orderKey struct {
	by     string
	desc   bool
	priced bool
}

var indexes atomic.Uint64

// rowsStaleAfter is the age from which rows are stale: three times their interval.
const rowsStaleAfter = 3 * time.Minute

// index is that of the newest snapshot, by the query's clock. Where it is not there yet, its first reader makes it; for
// those who read meanwhile, the one before is the newest: of 20,000 coins, all readers in the same moment would make the same.
func (u *Unit) index(now time.Time) *index {
	return u.indexed.Get(func(ix *index) bool { return ix.of(u.catalog.Snapshot(), u.past.Load(), now) }, func() *index {
		snapshot := u.catalog.Snapshot()
		ix := newIndex(snapshot, u.past.Load())
		ix.stale = staleRows(snapshot, now)
		return ix
	})
}

// indexOf is the index that a request asks for: that of the instant of its asOf, else the newest one.
func (u *Unit) indexOf(ctx context.Context, r *query.Request) (*index, error) {
	at, asOf := r.Time("asOf")
	if !asOf {
		return u.index(r.Now), nil
	}
	snapshot, err := u.served.Coins.At(ctx, at)
	if err != nil {
		return nil, query.FaultOfPast(err, at)
	}
	return indexAsOf(snapshot, at), nil
}

// indexAsOf is the index of the coins as they were served at an instant.
func indexAsOf(snapshot *views.Snapshot, at time.Time) *index {
	ix := newIndex(snapshot, &past{})
	ix.stale, ix.asOf = staleRows(snapshot, at), true
	return ix
}

// of reports whether an index is that of a snapshot at a time of the query's clock.
func (ix *index) of(snapshot *views.Snapshot, past *past, now time.Time) bool {
	return ix.past == past && ix.snapshot.CoinsVersion == snapshot.CoinsVersion && ix.snapshot.Time == snapshot.Time &&
		ix.stale == staleRows(snapshot, now)
}

// staleRows reports whether the fold of markets has ended no minute for long; before its first there is none to be stale.
func staleRows(snapshot *views.Snapshot, now time.Time) bool {
	return snapshot.Time > 0 && now.UnixNano()-snapshot.Time > int64(rowsStaleAfter)
}

func newIndex(snapshot *views.Snapshot, past *past) *index {
	ix := &index{
		number: indexes.Add(1), snapshot: snapshot, past: past, simulated: snapshot.Simulated, coins: snapshot.Coins,
		updated: query.FormatTime(snapshot.Time), orders: map[orderKey][]int32{},
	}
	ix.ranked, _ = slices.BinarySearchFunc(ix.coins, 0, func(c *views.CatalogCoin, _ int) int {
		if c.Rank > 0 {
			return -1
		}
		return 0
	})
	ix.masks = make([]mask, len(ix.coins))
	for i, coin := range ix.coins {
		ix.masks[i] = maskOf(coin.Folded)
		if coin.Market != nil {
			ix.priced = append(ix.priced, int32(i))
		}
	}
	ix.categories = sync.OnceValue(ix.categorize)
	ix.createdAt = sync.OnceValue(ix.datings)
	return ix
}

// value is what coins are ordered by; what is not known comes last in either direction.
type value func(*views.CatalogCoin) (number float64, text string, known bool)

func number(v *float64) (float64, string, bool) {
	if v == nil {
		return 0, "", false
	}
	return *v, "", true
}

var values = map[string]value{
	"market_cap_rank": func(c *views.CatalogCoin) (float64, string, bool) { return float64(c.Rank), "", c.Rank > 0 },
	"name":            func(c *views.CatalogCoin) (float64, string, bool) { return 0, views.Fold(c.Name), true },
	"symbol":          func(c *views.CatalogCoin) (float64, string, bool) { return 0, c.Symbol, true },
	"market_cap":      func(c *views.CatalogCoin) (float64, string, bool) { return number(c.Market.MarketCap) },
	"current_price":   func(c *views.CatalogCoin) (float64, string, bool) { return c.Market.Price, "", true },
	"total_volume":    func(c *views.CatalogCoin) (float64, string, bool) { return number(c.Market.Volume24H) },
	"price_change_percentage_1h": func(c *views.CatalogCoin) (float64, string, bool) {
		return number(c.Market.Change1H)
	},
	"price_change_percentage_24h": func(c *views.CatalogCoin) (float64, string, bool) {
		return number(c.Market.Change24H)
	},
	"price_change_percentage_7d": func(c *views.CatalogCoin) (float64, string, bool) {
		return number(c.Market.Change7D)
	},
	"price_change_percentage_30d": func(c *views.CatalogCoin) (float64, string, bool) {
		return number(c.Market.Change30D)
	},
}

// order returns the coins, all or those with a market row, in an order; ties are by rank. The list is shared.
func (ix *index) order(key orderKey) []int32 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if held, ok := ix.orders[key]; ok {
		return held
	}
	list := slices.Clone(ix.priced)
	if !key.priced {
		list = make([]int32, len(ix.coins))
		for i := range list {
			list[i] = int32(i)
		}
	}
	if key.by != "market_cap_rank" || key.desc {
		ix.sort(list, values[key.by], key.desc)
	}
	ix.orders[key] = list
	return list
}

func (ix *index) sort(list []int32, by value, desc bool) {
	type ranked struct {
		number float64
		text   string
		known  bool
		place  int32
	}
	keyed := make([]ranked, len(list))
	for i, place := range list {
		n, text, known := by(ix.coins[place])
		keyed[i] = ranked{n, text, known, place}
	}
	slices.SortFunc(keyed, func(a, b ranked) int {
		if a.known != b.known {
			if a.known {
				return -1
			}
			return 1
		}
		c := cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.text, b.text))
		if desc {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.place, b.place))
	})
	for i, k := range keyed {
		list[i] = k.place
	}
}

// page is the part of a list that a page has.
func page[T any](list []T, number, size int64) []T {
	// Neither overflows: both are bounded by their declarations.
	from := min((number-1)*size, int64(len(list)))
	return list[from:min(from+size, int64(len(list)))]
}

// datings are when coins began as a source dates it, Unix nanoseconds; 0 for unknown.
func (ix *index) datings() []int64 {
	beginnings := make([]int64, len(ix.coins))
	for i, coin := range ix.coins {
		beginnings[i] = created(coin)
	}
	return beginnings
}

// created is not when anything of the coin was first received: of nearly all that is when the instance was started.
func created(coin *views.CatalogCoin) int64 {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, coin.CreatedAt); err == nil {
			return at.UnixNano()
		}
	}
	return 0
}

// unixNano is 0 for the zero time, which means unknown.
func unixNano(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixNano()
}
