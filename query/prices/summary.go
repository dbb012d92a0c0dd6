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
	Timestamp string                 `json:"timestamp" format:"date-time" doc:"Log time up to which prices are computed; with asOf the time of the newest of them"`
}

// SummaryMeta describes the answer.
type SummaryMeta struct {
	query.Meta
	Staleness
	Shadowed []string `json:"shadowed,omitempty" doc:"Ids of coins whose symbol belongs to a higher-ranked coin; request them by id"`
	NotKept  []string `json:"notKept,omitempty" doc:"With asOf, ids of coins that are left out: our venues' price was older than ten minutes, and a reference source may have reported another"`
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
		Summary:     "Prices of all coins, current or as of a past time",
		Description: "The order of the members has no meaning. Prices of reference sources are updated once per minute; with asOf there are none.",
		Params:      []query.Param{summaryAsOfParam},
		Body:        SummaryBody{}, NotFound: true, Hot: true, Handle: u.getSummary,
	}
}

func (u *Unit) getSummary(ctx context.Context, r *query.Request) (query.Answer, error) {
	if err := u.started(); err != nil {
		return query.Answer{}, err
	}
	snapshot := u.catalog.Snapshot()
	if at, past := r.Time("asOf"); past {
		return u.summaryAsOf(ctx, snapshot, at)
	}
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
	var spots []views.Spot
	u.priceCache.Entries(func(e *views.Entry) {
		if !foreign.coins[e.Coin.ID] {
			spots = append(spots, views.Spot{Price: e.Price.Price, Time: e.Price.Time, Source: schemas.PriceSourceMedian, Entry: e, Volume24h: &e.Price.Volume24H, Freshness: u.priceCache.Freshness(e, r.Now)})
		}
	})
	// An entry's own encoded price is kept, so that a change costs one entry's encoding.
	encoded := func(coin *views.CatalogCoin, spot views.Spot) ([]byte, error) {
		return u.fragments.Get(spot.Entry, spot.Freshness, views.OthersKey{}, func() ([]byte, error) { return member(coin, spot) })
	}
	if err := made.encode(snapshot, spots, u.priceCache.Now(), encoded, SummaryMeta{}); err != nil {
		return query.Answer{}, err
	}
	u.summary.Store(made)
	return made.answer, nil
}

// summaryAsOf is the summary of the prices that venues made as they were served at an instant.
func (u *Unit) summaryAsOf(ctx context.Context, snapshot *views.Snapshot, at time.Time) (query.Answer, error) {
	coins := u.priceCache.Coins().All()
	entries, err := u.priceCache.AsOf(ctx, u.history, coins, at)
	if err != nil {
		return query.Answer{}, query.FaultOfPast(err, at)
	}
	made, newest, meta := &summary{foreign: &foreign{}}, int64(0), SummaryMeta{}
	var spots []views.Spot
	for _, coin := range coins {
		switch spot, kept := u.priceCache.SpotOf(entries[coin.ID], at); {
		case kept:
			spots, newest = append(spots, spot), max(newest, spot.Entry.Latest.Time)
		case entries[coin.ID] != nil:
			meta.NotKept = append(meta.NotKept, coin.ID)
		}
	}
	if len(spots) == 0 {
		return query.Answer{}, query.NotFound("our venues had no price by %s that was younger than %s", query.FormatTime(at.UnixNano()), schemas.OwnPriceFor)
	}
	if err := made.encode(snapshot, spots, newest, member, meta); err != nil {
		return query.Answer{}, err
	}
	return made.answer, nil
}

// encode joins the prices of venues, of which encoded gives one as a member of the map, and those of reference sources; newest is the time of the whole.
func (made *summary) encode(snapshot *views.Snapshot, spots []views.Spot, newest int64, encoded func(*views.CatalogCoin, views.Spot) ([]byte, error), meta SummaryMeta) error {
	var body bytes.Buffer
	foreign := made.foreign
	meta.Staleness, meta.Shadowed, meta.Count = foreign.staleness, slices.Clone(foreign.shadowed), foreign.count
	body.WriteString(`{"data":{"prices":{`)
	body.Write(foreign.members)
	made.answer.Simulated = foreign.simulated
	for _, spot := range spots {
		coin := snapshot.ByID(spot.Entry.Coin.ID)
		if !snapshot.Leads(coin) {
			meta.Shadowed = append(meta.Shadowed, coin.ID)
			continue
		}
		text, err := encoded(coin, spot)
		if err != nil {
			return fmt.Errorf("encoding the price of %s: %w", coin.ID, err)
		}
		if meta.Count > 0 {
			body.WriteByte(',')
		}
		body.Write(text)
		meta.Count++
		meta.count(spot.Freshness)
		made.answer.Simulated = made.answer.Simulated || spot.Entry.Price.Simulated
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
