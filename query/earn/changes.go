package earn

import (
	"context"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	maxChanges = 1000
	// changesFor is how far back changes are served by default.
	changesFor = 7 * day
)

// ChangesBody answers GET /api/v1/earn/changes.
type ChangesBody struct {
	Changes []Change    `json:"changes" doc:"Newest first"`
	Meta    ChangesMeta `json:"meta"`
}

// ChangesMeta describes changes.
type ChangesMeta struct {
	query.Meta
	Since     string `json:"since" format:"date-time" doc:"Start of the range"`
	Truncated bool   `json:"truncated,omitempty" doc:"There are further, older changes in the range"`
}

// Change is a term that changed.
type Change struct {
	Time      string `json:"time" format:"date-time" doc:"End of the minute in which it was reported"`
	ProductID string `json:"productId" doc:"The product, as provider:coin:category"`
	VariantID string `json:"variantId,omitempty" doc:"Absent if the whole product opened or closed"`
	Provider  string `json:"provider"`
	CoinID    string `json:"coinId"`
	Symbol    string `json:"symbol"`
	Category  string `json:"category" enum:"lending,staking" doc:"Whether the coin is lent or staked"`
	Field     string `json:"field" enum:"status,cap,min,lockup,notice,tiers,payout,promo,countries" doc:"The term that changed; of tiers only the bounds are compared"`
	Before    string `json:"before,omitempty" doc:"Absent if there was none"`
	After     string `json:"after,omitempty" doc:"Absent if there is none now"`
}

func (u *Unit) getChanges(ctx context.Context, r *query.Request) (query.Answer, error) {
	at, past := r.Time("asOf")
	last := "asOf"
	if !past {
		at, last = r.Now, "the current time"
	}
	since, given := r.Time("since")
	if !given {
		since = at.Add(-changesFor).Truncate(time.Second)
	}
	if since.After(at) {
		return query.Answer{}, query.Invalid("since", "is after %s, %s", last, query.FormatTime(at.UnixNano()))
	}
	filter := views.EarnFilter{Provider: strings.ToLower(r.Text("provider")), Since: since}
	if r.Has("symbol") {
		filter.CoinID = u.coinID(r.Text("symbol"))
	}
	limit := int(r.Integer("limit"))
	var changes []*eventsv1.EarnChange
	var err error
	if past {
		changes, err = views.EarnChangesAsOf(ctx, u.history, filter, limit+1, at)
	} else {
		changes, err = u.history.EarnChanges(ctx, filter, limit+1)
	}
	if err != nil {
		return query.Answer{}, query.FaultOfPast(err, at)
	}
	body, simulated := ChangesBody{Changes: []Change{}}, false
	if len(changes) > limit {
		changes, body.Meta.Truncated = changes[:limit], true
	}
	for _, c := range changes {
		body.Changes = append(body.Changes, Change{
			Time: query.FormatTime(c.Time), ProductID: c.ProductId, VariantID: c.VariantId, Provider: c.Provider, CoinID: c.CoinId, Symbol: c.Symbol,
			Category: c.Category, Field: c.Field, Before: c.Before, After: c.After,
		})
		simulated = simulated || c.Simulated
	}
	body.Meta.Count, body.Meta.Clamped, body.Meta.Since = len(body.Changes), r.Clamped(), query.FormatTime(since.UnixNano())
	if len(changes) > 0 {
		body.Meta.LastUpdated = query.FormatTime(changes[0].Time)
	}
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}
