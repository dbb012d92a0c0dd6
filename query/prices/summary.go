package prices

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// SummaryBody answers GET /api/v1/prices/summary.
type SummaryBody struct {
	Data SummaryData `json:"data"`
	Meta SummaryMeta `json:"meta"`
}

// SummaryData holds every coin with a price.
type SummaryData struct {
	Prices    map[string]*Aggregated `json:"prices" doc:"Prices by symbol"`
	Count     int                    `json:"count"`
	Timestamp string                 `json:"timestamp" format:"date-time" doc:"Log time up to which prices are computed"`
}

// SummaryMeta describes the answer.
type SummaryMeta struct {
	query.Meta
	Staleness
	Shadowed []string `json:"shadowed,omitempty" doc:"Ids of coins whose symbol belongs to a higher-ranked coin; request them by id"`
}

// summary is the last encoded answer and what it was encoded from. While the price cache's version is unchanged,
// entries only grow older: then the numbers of stale and critical ones decide which they are.
type summary struct {
	version         uint64
	stale, critical int
	foreign         *foreign
	answer          query.Answer
}

func (u *Unit) all() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/prices/summary", ID: "summarizePrices", Tag: "prices",
		Summary:     "Current prices of all coins",
		Description: "The order of the members has no meaning. Prices of reference sources are updated once per minute.",
		Body:        SummaryBody{}, Hot: true, Handle: u.getSummary,
	}
}

func (u *Unit) getSummary(_ context.Context, r *query.Request) (query.Answer, error) {
	if err := u.started(); err != nil {
		return query.Answer{}, err
	}
	snapshot := u.catalog.Snapshot()
	foreign, err := u.foreignAt(snapshot, r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	// Read before the entries: a change meanwhile makes the next request encode again.
	made := &summary{version: u.priceCache.Version(), foreign: foreign}
	u.priceCache.Entries(func(e *views.Entry) {
		fresh := u.priceCache.Freshness(e, r.Now)
		if fresh.Stale {
			made.stale++
		}
		if fresh.Critical {
			made.critical++
		}
	})
	current := u.summary.Load()
	if current != nil && current.version == made.version && current.stale == made.stale && current.critical == made.critical && current.foreign == foreign {
		return current.answer, nil
	}
	if err := u.encodeSummary(made, snapshot, r); err != nil {
		return query.Answer{}, err
	}
	u.summary.Store(made)
	return made.answer, nil
}

// encodeSummary joins the entries' own encoded prices, so that a change costs one entry's encoding.
func (u *Unit) encodeSummary(made *summary, snapshot *views.Snapshot, r *query.Request) error {
	var body bytes.Buffer
	var failed error
	foreign := made.foreign
	meta := SummaryMeta{Staleness: foreign.staleness, Shadowed: slices.Clone(foreign.shadowed)}
	meta.Count = foreign.count
	newest := u.priceCache.Now()
	body.WriteString(`{"data":{"prices":{`)
	body.Write(foreign.members)
	made.answer.Simulated = foreign.simulated
	u.priceCache.Entries(func(e *views.Entry) {
		coin := snapshot.ByID(e.Coin.ID)
		if foreign.coins[e.Coin.ID] {
			return
		}
		if !snapshot.Leads(coin) {
			meta.Shadowed = append(meta.Shadowed, e.Coin.ID)
			return
		}
		fresh := u.priceCache.Freshness(e, r.Now)
		spot := views.Spot{Price: e.Price.Price, Time: e.Price.Time, Source: schemas.PriceSourceMedian, Entry: e, Volume24h: &e.Price.Volume24H, Freshness: fresh}
		text, err := u.fragments.Get(e, fresh, views.OthersKey{}, func() ([]byte, error) { return member(coin, spot) })
		if err != nil {
			failed = fmt.Errorf("encoding the price of %s: %w", e.Coin.ID, err)
			return
		}
		if meta.Count > 0 {
			body.WriteByte(',')
		}
		body.Write(text)
		meta.Count++
		meta.count(fresh)
		made.answer.Simulated = made.answer.Simulated || e.Price.Simulated
	})
	if failed != nil {
		return failed
	}
	meta.LastUpdated = query.FormatTime(newest)
	tail, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("encoding meta: %w", err)
	}
	body.WriteString(`},"count":` + strconv.Itoa(meta.Count) + `,"timestamp":"` + query.FormatTime(newest) + `"},"meta":`)
	body.Write(tail)
	body.WriteByte('}')
	made.answer.Body = query.RawBody(body.Bytes())
	return nil
}

// foreign are the prices that reference sources report, encoded once a minute: there may be many times as many as of venues, and
// they change no faster.
type foreign struct {
	version uint64
	minute  int64
	// members are those of the map of prices.
	members []byte
	count   int
	// coins are all that are served so, also those that are left out as shadowed.
	coins     map[string]bool
	shadowed  []string
	staleness Staleness
	simulated bool
}

func (u *Unit) foreignAt(snapshot *views.Snapshot, now time.Time) (*foreign, error) {
	minute := now.Unix() / 60
	if current := u.foreign.Load(); current != nil && current.minute == minute && current.version == snapshot.CoinsVersion {
		return current, nil
	}
	made := &foreign{version: snapshot.CoinsVersion, minute: minute, coins: map[string]bool{}}
	for _, coin := range snapshot.Coins {
		spot, ok := u.priceCache.Spot(snapshot, coin, now)
		if !ok || spot.Entry != nil {
			continue
		}
		made.coins[coin.ID] = true
		if !snapshot.Leads(coin) {
			made.shadowed = append(made.shadowed, coin.ID)
			continue
		}
		text, err := member(coin, spot)
		if err != nil {
			return nil, fmt.Errorf("encoding the price of %s: %w", coin.ID, err)
		}
		if made.count > 0 {
			made.members = append(made.members, ',')
		}
		made.members = append(made.members, text...)
		made.count++
		made.staleness.count(spot.Freshness)
		made.simulated = made.simulated || spot.Simulated
	}
	u.foreign.Store(made)
	return made, nil
}

// member is one member of the map of prices.
func member(coin *views.CatalogCoin, spot views.Spot) ([]byte, error) {
	name, err := json.Marshal(coin.Symbol)
	if err != nil {
		return nil, err
	}
	price, err := json.Marshal(aggregated(coin, spot))
	if err != nil {
		return nil, err
	}
	return append(append(name, ':'), price...), nil
}
