package producers_test

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/sources"
)

// TestRecordedRatesDecodeAsExpected compares what decode prints of real files of rates with what an
// independent reader found in them.
func TestRecordedRatesDecodeAsExpected(t *testing.T) {
	root, answers := expectedAnswers(t)
	compared := 0
	for _, file := range slices.Sorted(maps.Keys(answers)) {
		recording := answers[file]
		if !slices.Contains([]string{"x_ecb_xml", "x_ecb_histcsv", "x_ecb_sdmx"}, recording.Kind) {
			continue
		}
		compared++
		t.Run(file, func(t *testing.T) {
			var want struct {
				Days         int
				Observations int
				FirstDay     string                     `json:"first_day"`
				LastDay      string                     `json:"last_day"`
				LastDayRates map[string]decimal.Decimal `json:"last_day_per_eur"`
			}
			mustParse(t, recording.Expect, &want)
			var stdout, stderr bytes.Buffer
			if code := decode.Run(context.Background(), decode.Options{Source: "ecb", File: filepath.Join(root, file)}, nil, sources.List(), nil, &stdout, &stderr); code != 0 {
				t.Fatalf("exit %d: %s", code, &stderr)
			}
			days, last, rows := map[string]bool{}, map[string]decimal.Decimal{}, 0
			for scanner := bufio.NewScanner(&stdout); scanner.Scan(); rows++ {
				var line struct {
					Kind, Source, Base, Quote, Date string
					Rate                            decimal.Decimal
				}
				mustParse(t, scanner.Bytes(), &line)
				if line.Kind != "fiat" || line.Source != "ecb" || line.Base != "EUR" {
					t.Fatalf("printed %s, want a rate of the euro", scanner.Bytes())
				}
				days[line.Date] = true
				if line.Date == want.LastDay {
					last[line.Quote] = line.Rate
				}
			}
			dates := slices.Sorted(maps.Keys(days))
			equal(t, "rates, days, first, last", spell([]any{rows, len(dates), dates[0], dates[len(dates)-1]}), spell([]any{want.Observations, want.Days, want.FirstDay, want.LastDay}))
			equal(t, "currencies of the last day", len(last), len(want.LastDayRates))
			for currency, rate := range want.LastDayRates {
				if !last[currency].Equal(rate) {
					t.Errorf("%s = %s on %s, want %s", currency, last[currency], want.LastDay, rate)
				}
			}
		})
	}
	if compared == 0 {
		t.Error("no recording of rates was found")
	}
}
