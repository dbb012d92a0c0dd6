package prices

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/marketlog/marketlog/query"
)

// SummaryBody answers GET /api/v1/prices/summary.
type SummaryBody struct {
	Data SummaryData `json:"data"`
	Meta SummaryMeta `json:"meta"`
}

// SummaryData holds every coin with a price.
type SummaryData struct {
	Prices    map[string]*Aggregated `json:"prices" doc:"By symbol"`
	Count     int                    `json:"count"`
	Timestamp string                 `json:"timestamp" format:"date-time"`
}

// SummaryMeta tells about the answer.
type SummaryMeta struct {
	query.Meta
	Staleness
	Shadowed []string `json:"shadowed,omitempty" doc:"Ids of coins whose symbol means a higher ranked one; ask for them by id"`
}

// summary is the last encoded answer and what it was encoded from. While the board's version stands,
// entries only grow older: then the numbers of stale and critical ones tell which they are.
type summary struct {
	version         uint64
	stale, critical int
	answer          query.Answer
}

func (u *Unit) all() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/prices/summary", ID: "summarizePrices", Tag: "prices",
		Summary: "Current prices of all coins", Body: SummaryBody{}, Hot: true, Handle: u.getSummary,
	}
}

func (u *Unit) getSummary(_ context.Context, r *query.Request) (query.Answer, error) {
	if err := u.started(); err != nil {
		return query.Answer{}, err
	}
	// Read before the entries: a change meanwhile makes the next request encode anew.
	made := &summary{version: u.board.Version()}
	u.board.Entries(func(e *query.Entry) {
		fresh := u.board.Freshness(e, r.Now)
		if fresh.Stale {
			made.stale++
		}
		if fresh.Critical {
			made.critical++
		}
	})
	if held := u.summary.Load(); held != nil && held.version == made.version && held.stale == made.stale && held.critical == made.critical {
		return held.answer, nil
	}
	if err := u.encodeSummary(made, r); err != nil {
		return query.Answer{}, err
	}
	u.summary.Store(made)
	return made.answer, nil
}

// encodeSummary joins the entries' own encoded prices, so that a change costs one entry's encoding.
func (u *Unit) encodeSummary(made *summary, r *query.Request) error {
	var body bytes.Buffer
	var failed error
	meta := SummaryMeta{}
	newest := u.board.Now()
	body.WriteString(`{"data":{"prices":{`)
	u.board.Entries(func(e *query.Entry) {
		if !u.board.Leads(e.Coin) {
			meta.Shadowed = append(meta.Shadowed, e.Coin.ID)
			return
		}
		fresh := u.board.Freshness(e, r.Now)
		fragment, err := u.fragments.Get(e, fresh, func() ([]byte, error) { return fragment(e, fresh) })
		if err != nil {
			failed = fmt.Errorf("encoding the price of %s: %w", e.Coin.ID, err)
			return
		}
		if meta.Count > 0 {
			body.WriteByte(',')
		}
		body.Write(fragment)
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

// fragment is one member of the map of prices.
func fragment(e *query.Entry, fresh query.Freshness) ([]byte, error) {
	name, err := json.Marshal(e.Coin.Symbol)
	if err != nil {
		return nil, err
	}
	price, err := json.Marshal(aggregated(e, fresh))
	if err != nil {
		return nil, err
	}
	return append(append(name, ':'), price...), nil
}
