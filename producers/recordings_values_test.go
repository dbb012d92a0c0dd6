package producers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/sources"
)

// valueLine is any line of decode.
type valueLine struct {
	Kind, Source, Reason              string
	ID, Symbol, PegType, PegMechanism string
	Price, Circulating                *decimal.Decimal
	Base, Quote, Date                 string
	Rate                              decimal.Decimal
	Value                             int
	Classification                    string
	EventTime                         time.Time
}

// TestRecordedValuesDecodeAsExpected compares what decode prints of real answers about stablecoins, currencies and
// sentiment with what an independent reader found in them.
func TestRecordedValuesDecodeAsExpected(t *testing.T) {
	root, answers := expectedAnswers(t)
	kinds := map[string]struct {
		source string
		check  func(t *testing.T, lines []valueLine, expect json.RawMessage)
	}{
		"x_llama_stables": {"defillama", checkStablecoins},
		"x_llama_pools":   {"defillama", checkUnreadable}, // what it does not read, it refuses
		"x_fng":           {"alternative", checkFearGreed},
		"x_erapi":         {"erapi", checkDailyRates},
	}
	compared := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(answers)) {
		recording := answers[file]
		kind, ok := kinds[recording.Kind]
		if !ok {
			continue
		}
		compared[recording.Kind] = true
		t.Run(file, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := decode.Run(context.Background(), decode.Options{Source: kind.source, File: filepath.Join(root, file)}, nil, sources.List(), nil, &stdout, &stderr); code != 0 {
				t.Fatalf("exit %d: %s", code, &stderr)
			}
			var lines []valueLine
			for scanner := bufio.NewScanner(&stdout); scanner.Scan(); {
				var line valueLine
				mustParse(t, scanner.Bytes(), &line)
				if line.Source != kind.source {
					t.Errorf("printed %s, want source %s", scanner.Bytes(), kind.source)
				}
				lines = append(lines, line)
			}
			kind.check(t, lines, recording.Expect)
		})
	}
	if len(compared) != len(kinds) {
		t.Errorf("recordings of %v were found, want of each of %d kinds", compared, len(kinds))
	}
}

func checkStablecoins(t *testing.T, lines []valueLine, expect json.RawMessage) {
	var want struct {
		Assets         int
		CirculatingSum decimal.Decimal `json:"circulating_sum"`
		BySymbol       map[string]struct {
			Circulating decimal.Decimal
			Price       *decimal.Decimal
			Mechanism   string
		} `json:"by_symbol"`
	}
	mustParse(t, expect, &want)
	equal(t, "stablecoins", len(lines), want.Assets)
	var sum decimal.Decimal
	for _, line := range lines {
		w, ok := want.BySymbol[line.Symbol]
		switch {
		case line.Kind != "stablecoin" || !ok || line.ID == "" || line.Circulating == nil:
			t.Errorf("read %+v, want a stablecoin that the recording has", line)
			continue
		case !line.Circulating.Equal(w.Circulating), line.PegMechanism != w.Mechanism, line.PegType != "peggedUSD":
			t.Errorf("%s: %s %s %s, want %s peggedUSD %s", line.Symbol, line.Circulating, line.PegType, line.PegMechanism, w.Circulating, w.Mechanism)
		case (line.Price == nil) != (w.Price == nil) || line.Price != nil && !line.Price.Equal(*w.Price):
			t.Errorf("%s: price %v, want %v", line.Symbol, line.Price, w.Price)
		}
		sum = sum.Add(*line.Circulating)
	}
	if !sum.Equal(want.CirculatingSum) {
		t.Errorf("circulating in all = %s, want %s", sum, want.CirculatingSum)
	}
}

func checkUnreadable(t *testing.T, lines []valueLine, _ json.RawMessage) {
	if len(lines) != 1 || lines[0].Kind != "error" || lines[0].Reason != "undecodable" {
		t.Errorf("read %+v, want one error", lines)
	}
}

func checkFearGreed(t *testing.T, lines []valueLine, expect json.RawMessage) {
	var want struct {
		Classification string
		History        [][2]int64
	}
	mustParse(t, expect, &want)
	var got [][2]int64
	for _, line := range lines {
		if line.Kind != "fear_greed" {
			t.Errorf("read %+v, want an index", line)
		}
		got = append(got, [2]int64{line.EventTime.Unix(), int64(line.Value)})
	}
	equal(t, "days", spell(got), spell(want.History))
	equal(t, "classification", lines[0].Classification, want.Classification)
}

// The recorded answer prices the base in itself, which is not a rate.
func checkDailyRates(t *testing.T, lines []valueLine, expect json.RawMessage) {
	var want struct {
		Base        string
		Currencies  int
		UpdatedUnix int64 `json:"updated_unix"`
		Sample      map[string]decimal.Decimal
		Sum         decimal.Decimal
	}
	mustParse(t, expect, &want)
	sum := decimal.NewFromInt(1)
	equal(t, "currencies", len(lines)+1, want.Currencies)
	rates := map[string]decimal.Decimal{want.Base: sum}
	date := time.Unix(want.UpdatedUnix, 0).UTC().Format(time.DateOnly)
	for _, line := range lines {
		if line.Kind != "fiat" || line.Base != want.Base || line.Date != date {
			t.Errorf("read %+v, want a rate of %s on %s", line, want.Base, date)
		}
		sum = sum.Add(line.Rate)
		rates[line.Quote] = line.Rate
	}
	for code, rate := range want.Sample {
		if !rates[code].Equal(rate) {
			t.Errorf("%s = %s, want %s", code, rates[code], rate)
		}
	}
	if !sum.Equal(want.Sum) {
		t.Errorf("sum of the rates = %s, want %s", sum, want.Sum)
	}
}
