package yields

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defillamaYields reads what the pools of some five hundred projects earn, and what borrowers pay them. /pools and /chart are
// described on https://defillama.com/docs/api; /lendBorrow, which its own pages read, is declared in src/api/routes/pools.js of
// https://github.com/DefiLlama/yield-server, which says what all fields are: src/queries/yield.js and
// src/handlers/triggerEnrichment.js. It counts once an hour.
//
// Rates are APYs in percent. The server cuts most negative ones to 0, and where it knows neither part of a rate it returns 0
// too, the sum of two nulls: no rate is known then.
//
// The terms are those of DefiLlama's other values: see its declaration in producers/reference. They ask beside that that no
// interface but the official public one be used, and /lendBorrow is not described as one of it.
func defillamaYields() poll.Source {
	pools := &llamaPools{}
	return poll.Source{
		Slug: "defillama-yields", Name: "DefiLlama yields", Version: 1, Aliases: []string{"yields.llama.fi"},
		URL:         "https://yields.llama.fi",
		License:     "personal, non-commercial use; republished in no form without its permission",
		Terms:       "https://defillama.com/terms",
		Attribution: "Data: DefiLlama, https://defillama.com",
		Off:         "its terms allow personal, non-commercial use and no republishing without its permission",
		OwnUse:      "its terms allow no republishing without its permission",
		Kinds:       []string{poll.KindRate},
		Feeds: []poll.Feed{
			{Name: "pools",
				Evidence: producers.Recorded("defillama/pools-2026-09-02-reshaped.json").But("the names of the fields were put back by hand"),
				Interval: time.Hour, Requests: poll.Fixed("/pools")},
			{Name: "borrowing",
				Evidence: producers.Guessed("https://github.com/DefiLlama/yield-server/blob/master/src/api/routes/pools.js").And(
					github("OlympusDAO/olympus-frontend", "HEAD", "src/hooks/useGetLendBorrowStats.ts")).But(
					"the code of the server was read; no page describes it"),
				Interval: time.Hour, Requests: poll.Fixed("/lendBorrow")},
		},
		Past: &poll.Past{
			Evidence: producers.Documented("https://defillama.com/docs/api").AfterSearching(
				"yields.llama.fi/chart/; what was found reads apy and tvlUsd by timestamp, in code of a repository that is not known"),
			Listing: []string{"/pools"}, Series: byValue, Interval: 24 * time.Hour,
			Path: func(s poll.Series, _, _ time.Time) string { return "/chart/" + s.ID },
			// Answers are kept for up to an hour, and the last count of a day comes in its last hour.
			Settle: 2 * time.Hour,
		},
		Moves:    time.Hour,            // counted once an hour
		Requests: 60, Per: time.Minute, // no limit is published; throttling reportedly begins at 300
		MaxBody: 64 << 20, // the pools have some 12 MB
		Decode:  pools.decode,
	}
}

// llamaPools are the pools that were listed last, by their ids: what borrowers pay, and what a pool paid in the past, is served
// by the id alone.
type llamaPools struct {
	listed atomic.Pointer[map[string]llamaPool]
}

// llamaPool is what a pool is, whatever it pays.
type llamaPool struct {
	Project string   `json:"project"`
	Chain   string   `json:"chain"`
	Symbol  string   `json:"symbol"`
	Meta    string   `json:"poolMeta"`
	Tokens  []string `json:"underlyingTokens"`
	// Exposure is single or multi; ILRisk is yes where the value of the coins can part.
	Exposure string `json:"exposure"`
	ILRisk   string `json:"ilRisk"`
}

// rate is a rate of the pool, without its value.
func (p *llamaPool) rate(id, category string) *eventsv1.Rate {
	return &eventsv1.Rate{
		Project: p.Project, Chain: p.Chain, Pool: id, Symbol: p.Symbol, Category: category, RawUnit: "apy_percent", Name: p.Meta,
		Tokens: addresses(p.Tokens...),
	}
}

// category goes by the project. Of one that the table does not have, the row shows only that it keeps several coins.
func (p *llamaPool) category() string {
	category := schemas.RateProjectCategory(p.Project)
	if category == "" && (p.Exposure == "multi" || p.ILRisk == "yes") {
		return schemas.RateLiquidity
	}
	return category
}

func (l *llamaPools) decode(path string, body []byte, out *poll.Readings) error {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return l.borrowing(body, out)
	}
	var response struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return producers.Unreadable("parsing: %w", err)
	}
	switch {
	case response.Data != nil && len(response.Data) == 0 && llamaCharted(path) != "":
		return nil // the pool was not counted yet
	case len(response.Data) == 0:
		return producers.Unreadable("no data in it; it says %.200s", answer.ErrorText(answer.Keys(body)))
	case answer.Has(answer.Keys(response.Data[0]), "timestamp"):
		return l.chart(path, response.Data, out)
	case !answer.SomeRow(response.Data, "pool", "apy"):
		return producers.Unreadable("rows, and none of them is a pool with an apy")
	}
	pools := make(map[string]llamaPool, len(response.Data))
	answer.EachRow(response.Data, out, func(row json.RawMessage, out *poll.Readings) error { return readLlamaPool(row, pools, out) })
	l.listed.Store(&pools)
	return nil
}

// llamaAPY is a rate and its parts.
type llamaAPY struct {
	APY    producers.Num `json:"apy"`
	Base   producers.Num `json:"apyBase"`
	Reward producers.Num `json:"apyReward"`
	TVL    producers.Num `json:"tvlUsd"`
}

// into completes a rate.
func (a *llamaAPY) into(rate *eventsv1.Rate) *eventsv1.Rate {
	rate.TvlUsd = string(a.TVL)
	if a.APY == "0" && a.Base == "" && a.Reward == "" {
		return rate
	}
	rate.Raw, rate.Reward = string(a.APY), string(a.Reward)
	return rate
}

func readLlamaPool(row json.RawMessage, pools map[string]llamaPool, out *poll.Readings) error {
	var p struct {
		ID string `json:"pool"`
		llamaPool
		llamaAPY
	}
	var f answer.Fields
	if !f.Parse(row, &p) {
		return f.Err
	}
	pools[p.ID] = p.llamaPool
	out.Rate(p.into(p.rate(p.ID, p.category())))
	return nil
}

// borrowing reads what borrowers pay, less what they are rewarded with. Where a coin is minted or lent by another market it
// is mintedCoin that is owed, and the pool's own is what is pledged.
func (l *llamaPools) borrowing(body []byte, out *poll.Readings) error {
	rows, err := answer.Rows(body)
	if err != nil {
		return err
	}
	if !answer.SomeRow(rows, "pool", "apyBaseBorrow") {
		return producers.Unreadable("a list, and none of its rows is of a pool that lends")
	}
	pools := l.listed.Load()
	if pools == nil {
		return producers.Unreadable("which pools these are is not known before /pools was read")
	}
	answer.EachRow(rows, out, func(row json.RawMessage, out *poll.Readings) error { return readLlamaBorrowing(row, *pools, out) })
	return nil
}

func readLlamaBorrowing(row json.RawMessage, pools map[string]llamaPool, out *poll.Readings) error {
	var b struct {
		ID         string        `json:"pool"`
		Base       producers.Num `json:"apyBaseBorrow"`
		Reward     producers.Num `json:"apyRewardBorrow"`
		SupplyUSD  producers.Num `json:"totalSupplyUsd"`
		BorrowUSD  producers.Num `json:"totalBorrowUsd"`
		LTV        producers.Num `json:"ltv"`
		Borrowable *bool         `json:"borrowable"`
		Minted     string        `json:"mintedCoin"`
	}
	var f answer.Fields
	if !f.Parse(row, &b) {
		return f.Err
	}
	pool, known := pools[b.ID]
	if !known { // too small to be listed with the others
		return nil
	}
	rate := pool.rate(b.ID, schemas.RateBorrowing)
	rate.Raw, rate.TvlUsd, rate.MaxLtv = string(b.Base), string(b.BorrowUSD), string(b.LTV)
	if net := difference(b.Base, b.Reward); net != "" {
		rate.Raw, rate.Reward = net, difference("0", b.Reward)
	}
	if b.Minted != "" {
		rate.Name = pool.Symbol
		if pool.Meta != "" {
			rate.Name += " " + pool.Meta
		}
		rate.Symbol, rate.Tokens, rate.CollateralUsd = b.Minted, nil, string(b.SupplyUSD)
	}
	if b.Borrowable != nil && !*b.Borrowable {
		rate.MaxAmount = "0"
	}
	out.Rate(rate)
	return nil
}

// llamaCharted is the pool whose chart a path asks for, empty if it asks for something else.
func llamaCharted(path string) string {
	parts := answer.Endpoint(path)
	if len(parts) < 2 || parts[len(parts)-2] != "chart" {
		return ""
	}
	return parts[len(parts)-1]
}

// chart reads what a pool paid at the end of each day, and its newest value.
func (l *llamaPools) chart(path string, rows []json.RawMessage, out *poll.Readings) error {
	id := llamaCharted(path)
	if id == "" {
		return producers.Unreadable("a chart does not say of which pool it is, and its path is not known")
	}
	var pool llamaPool
	if pools := l.listed.Load(); pools != nil {
		pool = (*pools)[id]
	}
	if pool.Project == "" {
		return producers.Unreadable("which project the pool %.40q is of is not known before /pools was read", id)
	}
	answer.EachRow(rows, out, func(row json.RawMessage, out *poll.Readings) error {
		var day struct {
			Time string `json:"timestamp"`
			llamaAPY
		}
		var f answer.Fields
		if !f.Parse(row, &day) {
			return f.Err
		}
		rate := day.into(pool.rate(id, pool.category()))
		rate.Past, rate.EventTime = true, f.Time("timestamp", day.Time)
		if rate.EventTime == 0 {
			f.Fail(producers.Unreadable("no timestamp in it"))
		}
		if f.Err != nil {
			return f.Err
		}
		out.Rate(rate)
		return nil
	})
	return nil
}
