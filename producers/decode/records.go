package decode

import (
	"fmt"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// records prints what a response has in addition to rates: one line a thing, of a protocol one more for each chain.
func (a *answers) records(records []*eventsv1.ReferenceRecord) error {
	for i := 0; i < len(records); i++ {
		var lines []any
		switch b := records[i].Body.(type) {
		case *eventsv1.ReferenceRecord_Coin:
			l := a.coin(b.Coin)
			// A coin's page can hold its market too, next to it.
			if i+1 < len(records) && records[i+1].GetCoinMarket().GetSourceId() == b.Coin.SourceId {
				i++
				l.market(records[i].GetCoinMarket())
			}
			lines = []any{l}
		case *eventsv1.ReferenceRecord_CoinMarket:
			l := a.coin(&eventsv1.Coin{SourceId: b.CoinMarket.SourceId, Symbol: b.CoinMarket.Symbol, Name: b.CoinMarket.Name})
			l.market(b.CoinMarket)
			lines = []any{l}
		case *eventsv1.ReferenceRecord_Global:
			lines = []any{a.global(b.Global)}
		case *eventsv1.ReferenceRecord_CoinPast:
			lines = a.coinPast(b.CoinPast)
		case *eventsv1.ReferenceRecord_Stablecoin:
			lines = []any{a.stablecoin(b.Stablecoin)}
		case *eventsv1.ReferenceRecord_FearGreed:
			lines = []any{a.fearGreed(b.FearGreed)}
		case *eventsv1.ReferenceRecord_ChainTvl:
			lines = []any{a.chain(b.ChainTvl)}
		case *eventsv1.ReferenceRecord_DefiPast:
			lines = []any{a.defiPast(b.DefiPast)}
		case *eventsv1.ReferenceRecord_Protocol:
			lines = a.protocol(b.Protocol)
		case *eventsv1.ReferenceRecord_Rate:
			lines = []any{a.rate(b.Rate)}
		default:
			return fmt.Errorf("printing a record: no line is made of %T", b)
		}
		for _, line := range lines {
			if err := a.out.Encode(line); err != nil {
				return fmt.Errorf("printing a record: %w", err)
			}
		}
	}
	return nil
}
