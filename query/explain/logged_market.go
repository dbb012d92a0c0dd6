package explain

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// loggedMarket is what the log has of the whole market as of the end of a minute: each coin's last row, which was written within the hour
// before, and the last summary, nil where there is none.
type loggedMarket struct {
	at        int64
	rows      map[string]*eventsv1.Market
	places    map[string]Place
	summary   *eventsv1.Summary
	summaryAt *Place
	logic     uint32 // the version of the fold that wrote the summary
}

// loggedMarket reads the market as of the end of a minute.
func (w *work) loggedMarket(ctx context.Context, at int64) (*loggedMarket, error) {
	if w.logged != nil && w.logged.at == at {
		return w.logged, nil
	}
	m := &loggedMarket{at: at, rows: map[string]*eventsv1.Market{}, places: map[string]Place{}}
	_, err := w.scan(ctx, schemas.TopicMarkets, 0, at-int64(stateEvery), at, func(rec *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicMarkets, rec.Value)
		market, ok := record.(*eventsv1.MarketRecord)
		if err != nil || !ok {
			return true
		}
		held := place(schemas.TopicMarkets, 0, rec.Offset)
		switch body := market.Body.(type) {
		case *eventsv1.MarketRecord_Market:
			m.rows[body.Market.CoinId], m.places[body.Market.CoinId] = body.Market, held
		case *eventsv1.MarketRecord_Summary:
			m.summary, m.summaryAt, m.logic = body.Summary, &held, market.Mark.GetLogicVersion()
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	w.logged = m
	return m, nil
}

// total is the market cap of the whole market; nil where there is no summary.
func (m *loggedMarket) total() *Node {
	if m.summary == nil {
		return nil
	}
	of := wholeMarket{at: m.summary.Time, summaryAt: m.summaryAt, logic: m.logic}
	return of.node("global/totalMarketCap", &m.summary.TotalMarketCap, usd, globalFields[0].formula)
}
