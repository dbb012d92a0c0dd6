package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Statistics of how a stablecoin kept its peg over 30 days.
const (
	meanBps = "meanBps"
	p95Bps  = "p95Bps"
	samples = "samples"
)

const (
	// pegsRead is within how many minutes before they are served statistics were read, and pegsClosed how many minutes before that the last
	// minute began that had closed.
	pegsRead, pegsClosed = 3, 4
	// servedWithin is how long after it was served something is recorded.
	servedWithin = 30 * time.Second
)

// keptPeg is how a stablecoin kept its peg: as it was served, and as it follows from the closes of minutes.
type keptPeg struct {
	served *eventsv1.ServedPeg
	// record is where the log has what was served; nil where it has it not, or not yet.
	record *Place
	again  schemas.PegScore
	// newest is the close of the last minute that counts.
	newest pegClose
}

type pegClose struct {
	end           time.Time
	price, target float64
}

// pegScore explains how stable a stablecoin is.
func (w *work) pegScore(ctx context.Context, coin stablecoin, depth int) (*Node, error) {
	kept, err := w.keptPeg(ctx, coin)
	if err != nil {
		return nil, err
	}
	now, err := w.nowBps(ctx, coin, depth-1)
	if err != nil {
		return nil, err
	}
	if now.Value == nil {
		return nil, query.NotFound("%s has no score: its price or what a unit of its peg costs is not known", coin.ID)
	}
	s := kept.served
	score := schemas.PegScoreOf(s.MeanBps, s.P95Bps, *now.Value, int(s.Samples))
	n := &Node{Number: "peg/" + coin.ID + "/stabilityScore", Value: &score.Score, Time: now.Time}
	n.Method = &Method{Name: "peg-score", Version: 1, Formula: "100 - 0.5 x meanBps - 0.3 x p95Bps - 0.2 x nowBps, and never below 0"}
	again := schemas.PegScoreOf(kept.again.MeanBps, kept.again.P95Bps, *now.Value, kept.again.Samples)
	n.compare(&again.Score)
	for _, field := range []string{meanBps, p95Bps, samples} {
		in, err := w.pegStatistic(ctx, coin, field, depth-1)
		if err != nil {
			return nil, err
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.Inputs = append(n.Inputs, now)
	return n, nil
}

// pegStatistic explains one of the statistics of 30 days.
func (w *work) pegStatistic(ctx context.Context, coin stablecoin, field string, depth int) (*Node, error) {
	kept, err := w.keptPeg(ctx, coin)
	if err != nil {
		return nil, err
	}
	served := schemas.PegScoreOf(kept.served.MeanBps, kept.served.P95Bps, 0, int(kept.served.Samples))
	n := &Node{Number: "peg/" + coin.ID + "/" + field, Value: statistic(served, field), Unit: bps}
	formula := map[string]string{meanBps: "mean of the distances from the peg at the closes of the live minutes of 30 days", samples: "number of live minutes of 30 days with a close and a target",
		p95Bps: "95th percentile, by nearest rank, of the distances from the peg at the closes of the live minutes of 30 days"}[field]
	if field == samples {
		n.Unit = ""
	}
	n.Method = &Method{Name: "peg-statistics", Version: 1, Formula: formula}
	n.compare(statistic(kept.again, field))
	if !*n.Reproduced {
		n.Note = "minutes were closed, restated or left the tables since the statistics were read"
	}
	if kept.record != nil {
		n.Records = []Place{*kept.record}
	}
	if kept.newest.end.IsZero() {
		return n, nil
	}
	n.Time = query.FormatTime(kept.newest.end.UnixNano())
	start := kept.newest.end.Add(-time.Minute)
	in := headline(candleNumber(coin.ID, "1m", start)+"/close", &kept.newest.price, usd, start.UnixNano())
	if w.expands(depth - 1) {
		if in, err = w.candle(ctx, coin.CatalogCoin, "1m", start, "close", depth-1); err != nil {
			return nil, err
		}
	}
	n.Inputs = []*Node{in}
	if rest := kept.again.Samples - 1; rest > 0 {
		n.LeftOut = &LeftOut{Count: rest}
	}
	return n, nil
}

func statistic(s schemas.PegScore, field string) *float64 {
	switch field {
	case meanBps:
		return &s.MeanBps
	case p95Bps:
		return &s.P95Bps
	}
	return known(float64(s.Samples))
}

// keptPeg finds the statistics that were served and works them out again of the closes of minutes.
func (w *work) keptPeg(ctx context.Context, coin stablecoin) (*keptPeg, error) {
	if held := w.pegs[coin.ID]; held != nil {
		return held, nil
	}
	at, current := w.now, w.Pegs.Current
	if w.past {
		at, current = w.asOf, w.Pegs.At
	}
	byCoin, err := current(ctx, at)
	if err != nil {
		if w.past {
			err = query.FaultOfPast(err, at)
		}
		return nil, err
	}
	kept := &keptPeg{served: byCoin[coin.ID]}
	if kept.served == nil || coin.Own.Peg == "" {
		return nil, query.NotFound("%s has no score: none of our venues has traded it for 30 days", coin.ID)
	}
	if err := w.servedPeg(ctx, kept, at); err != nil {
		return nil, err
	}
	closes, err := w.pegCloses(ctx, coin, at)
	if err != nil {
		return nil, err
	}
	kept.fold(closes, at)
	w.pegs[coin.ID] = kept
	return kept, nil
}

// servedPeg finds the record of what was served: the last one before an instant that has it.
func (w *work) servedPeg(ctx context.Context, kept *keptPeg, at time.Time) error {
	s := kept.served
	_, err := w.scan(ctx, schemas.TopicServed, 0, at.UnixNano()-(pegsRead+1)*minute, at.Add(servedWithin).UnixNano(), func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicServed, r.Value)
		served, ok := record.(*eventsv1.ServedRecord)
		if err != nil || !ok {
			return true
		}
		for _, step := range served.Steps {
			if step.Time > at.UnixNano() {
				continue
			}
			for _, c := range step.GetPegs().GetCoins() {
				if c.CoinId == s.CoinId && c.MeanBps == s.MeanBps && c.P95Bps == s.P95Bps && c.Samples == s.Samples {
					held := place(schemas.TopicServed, 0, r.Offset)
					kept.record = &held
				}
			}
		}
		return true
	})
	return err
}

// pegCloses are the closes of the live minutes of a stablecoin that statistics which were served at an instant may be of, oldest first, with what a unit
// of its peg cost on the day of each.
func (w *work) pegCloses(ctx context.Context, coin stablecoin, at time.Time) ([]pegClose, error) {
	from := at.Add(-schemas.PegScoreSpan - (pegsRead+1)*time.Minute).Truncate(time.Minute)
	minutes, err := w.History.Candles(ctx, coin.ID, from, at)
	if err != nil {
		return nil, err
	}
	targets := map[int64]float64{}
	if coin.peg != schemas.USD {
		days, err := w.pegSeries(ctx, coin.Own, from.Truncate(oneDay), at.Truncate(time.Minute).Add(time.Minute), oneDay)
		if err != nil {
			return nil, err
		}
		for _, day := range days {
			targets[day.Time.Add(-time.Second).Truncate(oneDay).Unix()] = day.Target
		}
	}
	var closes []pegClose
	for _, c := range minutes {
		start := time.Unix(0, c.Start).UTC()
		target := 1.0
		if coin.peg != schemas.USD {
			target = targets[start.Truncate(oneDay).Unix()]
		}
		if target > 0 {
			closes = append(closes, pegClose{start.Add(time.Minute), c.Close, target})
		}
	}
	return closes, nil
}

// fold works the statistics out again. They were read in one of the last minutes before an instant, when the last minutes had not closed yet: those are
// taken of which they follow, or else the newest.
func (k *keptPeg) fold(closes []pegClose, at time.Time) {
	for back := range pegsRead {
		read := at.Truncate(time.Minute).Add(-time.Duration(back) * time.Minute)
		for open := range pegsClosed {
			last := read.Add(-time.Duration(open) * time.Minute)
			first, _ := slices.BinarySearchFunc(closes, read.Add(-schemas.PegScoreSpan+time.Second), byEnd)
			next, _ := slices.BinarySearchFunc(closes, last.Add(time.Second), byEnd)
			if next <= first || next-first != int(k.served.Samples) && k.again.Samples > 0 {
				continue
			}
			again := scored(closes[first:next])
			if same := again.MeanBps == k.served.MeanBps && again.P95Bps == k.served.P95Bps && again.Samples == int(k.served.Samples); same || k.again.Samples == 0 {
				k.again, k.newest = again, closes[next-1]
				if same {
					return
				}
			}
		}
	}
}

func byEnd(c pegClose, end time.Time) int { return c.end.Compare(end) }

// scored are the statistics of closes. They are added up from the nearest to the peg on, as the tables do it.
func scored(closes []pegClose) schemas.PegScore {
	distances := make([]float64, len(closes))
	for i, c := range closes {
		deviation := schemas.PegDeviationBps(c.price, c.target)
		distances[i] = max(deviation, -deviation)
	}
	slices.SortFunc(distances, cmp.Compare[float64])
	score, _ := schemas.NewPegScore(distances)
	return score
}
