package schemas

import (
	"math"
	"slices"
	"time"
)

// PegDeviationBps is how far a price lies from its peg, both in the same currency, in signed basis points: above it is
// positive.
func PegDeviationBps(price, peg float64) float64 { return (price - peg) / peg * 10_000 }

// PegScoreSpan is the span that a stability score looks back over.
const PegScoreSpan = 30 * 24 * time.Hour

// PegScore says how well a stablecoin keeps its peg, with all that it is made of.
type PegScore struct {
	// Score is from 0 to 100, higher is more stable: 100 less half the mean, 0.3 of the 95th percentile and
	// 0.2 of the newest, all of absolute basis points, and never below 0.
	Score float64
	// MeanBps, P95Bps and NowBps are absolute.
	MeanBps, P95Bps, NowBps float64
	// Samples are the deviations that it was made from.
	Samples int
}

// NewPegScore scores the deviations at the closes of minutes over PegScoreSpan, oldest first, in basis points of any
// sign. The percentile is by nearest rank. It is not ok without any.
func NewPegScore(deviationsBps []float64) (s PegScore, ok bool) {
	if len(deviationsBps) == 0 {
		return PegScore{}, false
	}
	absolute := make([]float64, len(deviationsBps))
	sum := 0.0
	for i, d := range deviationsBps {
		absolute[i] = math.Abs(d)
		sum += absolute[i]
	}
	now := absolute[len(absolute)-1]
	slices.Sort(absolute)
	rank := (len(absolute)*95 + 99) / 100
	return PegScoreOf(sum/float64(len(absolute)), absolute[rank-1], now, len(absolute)), true
}

// PegScoreOf is the score of components that were reckoned elsewhere, in absolute basis points.
func PegScoreOf(meanBps, p95Bps, nowBps float64, samples int) PegScore {
	penalty := float64(0.5*meanBps) + float64(0.3*p95Bps) + float64(0.2*nowBps)
	return PegScore{Score: max(0, 100-penalty), MeanBps: meanBps, P95Bps: p95Bps, NowBps: nowBps, Samples: samples}
}

// A peg is lost when the close of a minute lies PegLostBps or more from it, on either side, and held again when one
// lies less than PegHeldBps from it. Between the two what was stays, so that a price at the edge is one episode.
const (
	PegLostBps = 50
	PegHeldBps = 25
)

// PegPoint is the deviation from the peg at a moment.
type PegPoint struct {
	Time         time.Time
	DeviationBps float64
}

// PegEpisode is a time in which a peg was lost.
type PegEpisode struct {
	Start time.Time
	// Trough is when it was furthest from the peg, the first of equals; TroughBps how far, signed.
	Trough    time.Time
	TroughBps float64
	// Recovery is when it was held again; zero while it is not.
	Recovery time.Time
}

// PegEpisodes finds them in a series, oldest first.
func PegEpisodes(points []PegPoint) []PegEpisode {
	var episodes []PegEpisode
	lost := false
	for _, p := range points {
		distance := math.Abs(p.DeviationBps)
		if !lost {
			if distance >= PegLostBps {
				lost = true
				episodes = append(episodes, PegEpisode{Start: p.Time, Trough: p.Time, TroughBps: p.DeviationBps})
			}
			continue
		}
		e := &episodes[len(episodes)-1]
		if distance < PegHeldBps {
			lost, e.Recovery = false, p.Time
			continue
		}
		if distance > math.Abs(e.TroughBps) {
			e.Trough, e.TroughBps = p.Time, p.DeviationBps
		}
	}
	return episodes
}
