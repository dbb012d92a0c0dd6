package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// activeMarkets counts the markets that the fresh prices of a minute were made of again: of each coin those of its newest candle, which
// ended at most some minutes before. The state of the fold is not needed for it: what it remembers of a candle counts no longer than that.
func (w *work) activeMarkets(ctx context.Context, m *wholeMarket, n *Node) error {
	topic, _ := schemas.TopicNamed(schemas.TopicCandles)
	oldest := m.at - int64(schemas.OwnPriceFor)
	type newest struct {
		candle *eventsv1.Candle
		at     Place
	}
	byCoin, whole := map[string]newest{}, true
	for p := range topic.Partitions {
		first, err := w.scan(ctx, topic.Name, p, oldest-minute, endless, func(rec *kgo.Record) bool {
			record, err := schemas.DecodeRecord(topic.Name, rec.Value)
			if err != nil {
				return true
			}
			if pulse := record.GetPulse(); pulse != nil {
				return pulse.Watermark < m.at+int64(schemas.AllowedLateness)
			}
			of, ok := record.(*eventsv1.CandleRecord)
			c := of.GetCandle()
			if !ok || c == nil || c.Start+minute < oldest || c.Start+minute > m.at || !(c.Close > 0) {
				return true
			}
			if known, ok := byCoin[c.CoinId]; !ok || c.Start > known.candle.Start { // of two of a minute the first counts
				byCoin[c.CoinId] = newest{c, place(topic.Name, p, rec.Offset)}
			}
			return true
		})
		if err != nil {
			why := lacks(err)
			if why == "" {
				return err
			}
			n.notReproduced("not computed again: " + why)
			return nil
		}
		whole = whole && w.reachesBack(ctx, topic.Name, p, first)
	}
	again := uint32(0)
	for coin, of := range byCoin {
		again += of.candle.Accepted
		n.Inputs = append(n.Inputs, stated("accepted-markets/"+coin, counted(of.candle.Accepted), "", of.candle.Start+minute, of.at))
	}
	slices.SortFunc(n.Inputs, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(*b.Value, *a.Value), strings.Compare(a.Number, b.Number))
	})
	if n.fewer(true); whole {
		n.compare(counted(again))
	} else {
		n.notReproduced("not computed again: the log no longer has all candles of the minutes before")
	}
	return nil
}
