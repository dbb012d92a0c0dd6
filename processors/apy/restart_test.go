package apy_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/processors/foldtest"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// source is one of the sources of a random log.
type source struct {
	name, project string
	every         time.Duration
	unit          string
	compounding   string
	categories    []string
	symbols       []string
	base          float64
}

var sources = []source{
	{"aave", "aave-v3", 5 * time.Minute, "apr_fraction", "secondly", []string{"lending", "borrowing"}, []string{"WETH", "USDC", "USD₮0", "WSTETH", "NOCOIN"}, 0.04},
	{"bitfinex-funding", "bitfinex", 10 * time.Minute, "apr_fraction_daily", "none", []string{"lending"}, []string{"UST", "BTC"}, 0.0002},
	{"bybit-margin", "bybit", time.Minute, "apr_fraction_hourly", "hourly", []string{"borrowing"}, []string{"ETH"}, 0.00001},
	{"defillama-yields", "aave-v3", time.Hour, "apy_percent", "", []string{"lending"}, []string{"WETH", "USDC"}, 4},
	{"defillama-yields", "lido", time.Hour, "apy_percent", "", []string{"staking"}, []string{"STETH"}, 2},
	{"defillama-yields", "p", time.Hour, "apy_percent", "", []string{""}, []string{"SOL", "WSOL-USDC", "MSOL"}, 7},
	{"lido", "lido", time.Hour, "apr_percent", "daily", []string{"staking"}, []string{"ETH"}, 1},
}

// random is some hours around midnight with all that goes wrong in them: minutes that nobody received, sources that go silent and
// come back, projects that are something else of a sudden, negative rates and nonsense.
func random(seed uint64, length int) []foldtest.LogMinute {
	r := rand.New(rand.NewPCG(seed, 1))
	end := time.Date(2026, 1, 5, 21, 0, 0, 0, time.UTC).UnixNano()
	silentUntil := make([]int, len(sources))
	offset := int64(0)
	var minutes []foldtest.LogMinute
	for i := range length {
		end += int64(time.Minute)
		if i%97 == 50 {
			end += int64(r.IntN(200)) * int64(time.Minute) // silence
		}
		if seed%2 == 1 && i == length/2 {
			end += int64(49 * time.Hour)
		}
		var rates, references []foldtest.LogRecord
		add := func(to *[]foldtest.LogRecord, rec *eventsv1.ReferenceRecord) {
			offset++
			*to = append(*to, foldtest.LogRecord{Offset: offset, Record: rec})
		}
		for n, s := range sources {
			if r.IntN(150) == 0 {
				silentUntil[n] = i + r.IntN(250)
			}
			if i < silentUntil[n] || (i+n*7)%int(s.every/time.Minute) != 0 {
				continue
			}
			for p, symbol := range s.symbols {
				for _, category := range s.categories {
					reported := &eventsv1.Rate{
						Source: s.name, Project: s.project, Pool: s.project + "/" + symbol, Symbol: symbol, Category: category, RawUnit: s.unit, Compounding: s.compounding,
						Raw: decimal(s.base * (0.5 + float64(p) + 2*r.Float64())), Interval: int64(s.every), IngestTime: end - int64(r.IntN(60))*int64(time.Second),
					}
					if p%2 == 0 {
						reported.TvlUsd = strconv.Itoa(1000 + r.IntN(1000))
					}
					switch r.IntN(12) {
					case 0:
						reported.Raw = "-" + reported.Raw
					case 1:
						reported.Raw = "none"
					case 2:
						reported.Past = true
					case 3:
						continue // this one is not reported
					case 4:
						reported.Reward = decimal(s.base / 3)
					}
					add(&rates, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Rate{Rate: reported}})
				}
			}
		}
		if i%30 == 10 {
			category := []string{"Lending", "Liquid Staking", "Services"}[r.IntN(3)]
			add(&references, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Protocol{Protocol: &eventsv1.Protocol{Slug: "p", Name: fmt.Sprint("P", i/150), Category: category}}})
			add(&references, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Protocol{Protocol: &eventsv1.Protocol{Slug: "lido", Name: "Lido", Category: "Liquid Staking"}}})
		}
		if i%200 == 20 {
			add(&references, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: "aave", Simulated: r.IntN(2) == 0}}})
		}
		minutes = append(minutes, foldtest.LogMinute{End: end, Inputs: [][]foldtest.LogRecord{rates, references}})
	}
	return minutes
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// A fold that begins again at any minute writes the same bytes as one that never stopped, whatever it has open.
func TestRestartAtAnyMinuteChangesNothing(t *testing.T) {
	counts := map[string]int{}
	for _, seed := range streamtest.Seeds(t, 0, 1) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			for _, w := range foldtest.RestartAnywhere(t, apy.New, random(seed, 400)) {
				for _, rec := range w.Records {
					switch r := rec.(*eventsv1.RateRecord); {
					case r.GetEntry().GetEnded():
						counts["ended"]++
					case r.GetRollup() != nil:
						counts[fmt.Sprint(r.GetRollup().Interval)]++
					case r.GetEntry().GetShadowed() != "":
						counts["shadowed"]++
					}
				}
			}
		})
	}
	for _, what := range []string{"ended", "3600", "86400", "shadowed"} {
		if counts[what] < 10 {
			t.Errorf("the logs cause only %d %s: %v", counts[what], what, counts)
		}
	}
}
