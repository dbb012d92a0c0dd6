// Package earn answers what can be earned with which coin, where and on which terms: products and their variants as they are
// or was at any time, each term that changed, and the benchmark of flexible deposits of USD stablecoins with its daily fixings.
// All of it is read from history, as the fold of earn products published it.
package earn

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	tag = "earn"
	day = 24 * time.Hour
)

// History is what earn products are read from.
type History interface {
	// EarnVariants returns the current variants, those that are not offered any more only if they ended since.
	EarnVariants(ctx context.Context, since time.Time) ([]*eventsv1.EarnVariant, error)
	views.EarnHistory
	views.EarnListHistory
}

const (
	// readFor is how long what was read is reused: rates are reported every few minutes.
	readFor = 10 * time.Second
	// patience bounds one reading of history, which all who ask at that time wait for.
	patience = 10 * time.Second
	// closedFor is how long a product stays in lists after it was closed.
	closedFor = 90 * day
	// staleAfter is the age from which the whole is stale: each variant that is offered is written once an hour.
	staleAfter = time.Hour + views.StatisticsStaleAfter
)

// Unit answers the endpoints of earn products.
type Unit struct {
	catalog *views.Catalog
	coins   *schemas.CoinTable
	history History
	// venues are the exchanges by slug.
	venues map[string]views.Provider
	// states and fixings are by the time they were read at, in steps of readFor.
	states  *otter.Cache[int64, *state]
	fixings *otter.Cache[int64, []*eventsv1.EarnFixing]
}

// New makes the unit. The table says which coins are stablecoins, the venues which countries an exchange serves.
func New(coins *schemas.CoinTable, catalog *views.Catalog, history History, venues []views.Provider) *Unit {
	u := &Unit{catalog: catalog, coins: coins, history: history, venues: map[string]views.Provider{},
		states: otter.Must(&otter.Options[int64, *state]{MaximumSize: 2, ExpiryCalculator: otter.ExpiryWriting[int64, *state](2 * readFor)}),
		fixings: otter.Must(&otter.Options[int64, []*eventsv1.EarnFixing]{
			MaximumSize: 2, ExpiryCalculator: otter.ExpiryWriting[int64, []*eventsv1.EarnFixing](2 * readFor),
		}),
	}
	for _, v := range venues {
		u.venues[v.Slug] = v
	}
	return u
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{
		{
			Method: http.MethodGet, Path: "/api/v1/earn/benchmark", ID: "getEarnBenchmark", Tool: "stablecoin_earn_benchmark", Tag: tag,
			Summary: "Benchmark yield of flexible USD stablecoin deposits",
			Description: "The median over providers of each provider's mean, fixed daily at 00:00 UTC. A fixing never changes; a correction supersedes it. " +
				"Before the first fixing the values are provisional: the current ones.",
			Params: []query.Param{
				{Name: "segment", Kind: query.Text, Allowed: schemas.EarnSegments, Default: schemas.EarnOverall, Doc: "Segment: exchanges (cefi), protocols (defi) or all."},
				{Name: "history_days", Kind: query.Integer, Default: "30", Min: 1, Max: maxDays, Doc: "Days of history. The plan may allow less; meta.clamped is then set."},
				asOfParam,
			},
			Body: BenchmarkBody{}, Handle: u.getBenchmark,
		},
		{
			Method: http.MethodGet, Path: "/api/v1/earn/products", ID: "listEarnProducts", Tool: "list_earn_products", Tag: tag,
			Summary:     "Earn products: yields that providers pay for coins, with all variants and terms",
			Description: "Open products first, sorted by confidence, then by rate; closed ones last.",
			Params: []query.Param{
				coinParam, {Name: "category", Kind: query.Text, Allowed: schemas.EarnCategories, Doc: "Only this category."}, providerParam,
				{Name: "min_confidence", Kind: query.Number, OrZero: true, Most: 1, Doc: "Only variants of at least this confidence."},
				{Name: "limit", Kind: query.Integer, Default: "50", ToolDefault: "20", Min: 1, Max: maxProducts, Doc: "Maximum number of products."},
				{Name: "offset", Kind: query.Integer, Default: "0", Min: 0, Max: maxOffset, Doc: "Products to skip."},
				asOfParam,
			},
			Body: ProductsBody{}, NotFound: true, Handle: u.getProducts,
		},
		{
			Method: http.MethodGet, Path: "/api/v1/earn/products/{productId}", ID: "getEarnProduct", Tool: "get_earn_product", Tag: tag,
			Summary:     "One earn product, current or as of a past time",
			Description: "Open variants come first, by confidence, then by rate.",
			NotFound:    true,
			Params: []query.Param{
				{Name: "productId", In: query.Path, Kind: query.Text, Required: true, MaxLength: 256, Example: "aave-v3:usd-coin:lending", Doc: "provider:coin:category, as in the list of products."},
				asOfParam,
			},
			Body: ProductBody{}, Handle: u.getProduct,
		},
		{
			Method: http.MethodGet, Path: "/api/v1/earn/changes", ID: "listEarnChanges", Tool: "get_earn_changes", ToolSet: query.FullTools, Tag: tag,
			Summary:     "Changes of the terms of earn products, newest first",
			Description: "Openings and closings, caps, lock-ups, minimums, tiers, payouts, promotions and countries. Changes of the rate alone are not listed.",
			Params: []query.Param{
				coinParam, providerParam,
				{Name: "since", Kind: query.Time, Example: "2026-01-31T12:00:00Z", Doc: "Start of the range; default 7 days ago."},
				{Name: "limit", Kind: query.Integer, Default: "50", Min: 1, Max: maxChanges, Doc: "Maximum number of changes."},
				asOfParam,
			},
			Body: ChangesBody{}, Handle: u.getChanges,
		},
	}
}

var (
	coinParam     = query.CoinParam("symbol", query.Query, "USDC")
	asOfParam     = query.AsOfParam("Point in time. The last minute that had ended at least 60 seconds before is answered; default: now.")
	providerParam = query.Param{Name: "provider", Kind: query.Text, MaxLength: 64, Example: "aave-v3", Doc: "Only this provider, by slug."}
)

// state is all products at one reading.
type state struct {
	products []*product
	variants []*eventsv1.EarnVariant
	// time is the end of the newest minute of which anything was published, 0 for none.
	time int64
}

// state is at most some seconds old.
func (u *Unit) state(ctx context.Context, now time.Time) (*state, error) {
	// What is read for all who wait must not end with the first of them.
	return u.states.Get(context.WithoutCancel(ctx), now.UnixNano()/int64(readFor), otter.LoaderFunc[int64, *state](func(ctx context.Context, _ int64) (*state, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		variants, err := u.history.EarnVariants(ctx, now.Add(-closedFor))
		if err != nil {
			return nil, err
		}
		return newState(variants), nil
	}))
}

// stateAt is the state that a request asks for, and of when: as of an instant, or now.
func (u *Unit) stateAt(ctx context.Context, r *query.Request) (s *state, at time.Time, err error) {
	at, past := r.Time("asOf")
	if !past {
		s, err = u.state(ctx, r.Now)
		return s, r.Now, err
	}
	variants, err := views.EarnProductsAsOf(ctx, u.history, closedFor, at)
	if err != nil {
		return nil, at, query.FaultOfPast(err, at)
	}
	return newState(variants), at, nil
}

func newState(variants []*eventsv1.EarnVariant) *state {
	s := &state{variants: variants, products: group(variants)}
	for _, v := range variants {
		s.time = max(s.time, v.Time)
	}
	return s
}

// coinID is the id of the coin that a name means. A name that nothing is called by is taken for an id, which no product has.
func (u *Unit) coinID(name string) string {
	if coin, ok := u.catalog.Snapshot().Find(name); ok {
		return coin.ID
	}
	return strings.ToLower(name)
}

// product is a product with its variants: those that are offered first, of these the best.
type product struct {
	id       string
	status   string
	variants []*eventsv1.EarnVariant
}

// group makes products of variants that are sorted by product.
func group(variants []*eventsv1.EarnVariant) []*product {
	var products []*product
	for _, v := range variants {
		if n := len(products); n == 0 || products[n-1].id != v.ProductId {
			products = append(products, &product{id: v.ProductId})
		}
		p := products[len(products)-1]
		p.variants = append(p.variants, v)
	}
	for _, p := range products {
		p.status = schemas.EarnStatus(p.variants)
		slices.SortFunc(p.variants, func(a, b *eventsv1.EarnVariant) int {
			return cmp.Or(cmp.Compare(statusOrder(a.Status), statusOrder(b.Status)), cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(b.Apy, a.Apy),
				strings.Compare(a.VariantId, b.VariantId))
		})
	}
	slices.SortFunc(products, comparing)
	return products
}

// comparing puts what is offered first, of that the most reliable, and of equals the best. A product is as its first variant.
func comparing(a, b *product) int {
	x, y := a.variants[0], b.variants[0]
	return cmp.Or(cmp.Compare(statusOrder(a.status), statusOrder(b.status)), cmp.Compare(y.Confidence, x.Confidence), cmp.Compare(y.Apy, x.Apy), strings.Compare(a.id, b.id))
}

func statusOrder(status string) int {
	return slices.Index([]string{schemas.EarnOpen, schemas.EarnSilent, schemas.EarnReplaced, schemas.EarnClosed}, status)
}
