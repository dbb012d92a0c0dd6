package schemas_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

func TestPegScoreIsRecomputable(t *testing.T) {
	if got := schemas.PegDeviationBps(0.9975, 1); math.Abs(got+25) > 1e-9 {
		t.Errorf("0.9975 of 1: got %v bps, want -25", got)
	}
	hundred := make([]float64, 100) // 1 to 100 with either sign: the mean is 50.5, 95 do not exceed 95, the newest is 100
	for i := range hundred {
		hundred[i] = float64(i + 1)
		if i%2 == 0 {
			hundred[i] = -hundred[i]
		}
	}
	for _, test := range []struct {
		deviations []float64
		want       schemas.PegScore
	}{
		{[]float64{0}, schemas.PegScore{Score: 100, Samples: 1}},
		{[]float64{-10}, schemas.PegScore{Score: 90, MeanBps: 10, P95Bps: 10, NowBps: 10, Samples: 1}},
		{[]float64{30, -10, 20}, schemas.PegScore{Score: 77, MeanBps: 20, P95Bps: 30, NowBps: 20, Samples: 3}},
		{hundred, schemas.PegScore{Score: 100 - 25.25 - 28.5 - 20, MeanBps: 50.5, P95Bps: 95, NowBps: 100, Samples: 100}},
		{[]float64{1000, 1000}, schemas.PegScore{Score: 0, MeanBps: 1000, P95Bps: 1000, NowBps: 1000, Samples: 2}},
	} {
		before := slices.Clone(test.deviations)
		got, ok := schemas.NewPegScore(test.deviations)
		if !ok || math.Abs(got.Score-test.want.Score) > 1e-9 {
			t.Errorf("score of %v: got %+v, want %+v", test.deviations, got, test.want)
		}
		if got.Score = test.want.Score; got != test.want {
			t.Errorf("components of %v: got %+v, want %+v", test.deviations, got, test.want)
		}
		if !slices.Equal(before, test.deviations) {
			t.Errorf("the deviations %v were sorted in place", before)
		}
	}
	if _, ok := schemas.NewPegScore(nil); ok {
		t.Error("no deviations have a score")
	}
}

func TestPegEpisodesBeginAtTheLossAndEndWhenItIsHeld(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2023, 3, 11, 0, minute, 0, 0, time.UTC) }
	series := func(bps ...float64) []schemas.PegPoint {
		points := make([]schemas.PegPoint, len(bps))
		for i, b := range bps {
			points[i] = schemas.PegPoint{Time: at(i), DeviationBps: b}
		}
		return points
	}
	for _, test := range []struct {
		what   string
		points []schemas.PegPoint
		want   []schemas.PegEpisode
	}{
		{"nothing known", nil, nil},
		{"never lost", series(0, 49.9, -49.9), nil},
		{"lost below and recovered", series(0, -50, -1200, -1200, -25, 24.9, 0), []schemas.PegEpisode{
			{Start: at(1), Trough: at(2), TroughBps: -1200, Recovery: at(5)},
		}},
		{"above as well as below", series(60, -70, 0, 51), []schemas.PegEpisode{
			{Start: at(0), Trough: at(1), TroughBps: -70, Recovery: at(2)},
			{Start: at(3), Trough: at(3), TroughBps: 51},
		}},
		{"wavering at the edge is one", series(55, 45, 55, 45, 10), []schemas.PegEpisode{
			{Start: at(0), Trough: at(0), TroughBps: 55, Recovery: at(4)},
		}},
	} {
		if got := schemas.PegEpisodes(test.points); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.what, got, test.want)
		}
	}
}
