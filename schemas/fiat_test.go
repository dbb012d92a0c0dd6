package schemas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// fiatNow is a Monday.
var fiatNow = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func daily(source, base, quote, rate string, daysAgo int) *eventsv1.Fixing {
	return &eventsv1.Fixing{Source: source, Base: base, Quote: quote, Rate: rate, Date: fiatNow.AddDate(0, 0, -daysAgo).Format(time.DateOnly)}
}

func intraday(source, quote, rate string, ago time.Duration) *eventsv1.Fixing {
	at := fiatNow.Add(-ago)
	return &eventsv1.Fixing{Source: source, Base: USD, Quote: quote, Rate: rate, Date: at.Format(time.DateOnly), EventTime: at.UnixNano()}
}

func providedBy(f *eventsv1.Fixing, providers ...string) *eventsv1.Fixing {
	f.Providers = providers
	return f
}

func TestCurrenciesAreTheMedianOfFreshSources(t *testing.T) {
	const minute = int64(time.Minute)
	read := func(ago int64) FiatReading {
		return FiatReading{Read: fiatNow.UnixNano() - ago*minute, Interval: 15 * minute}
	}
	for _, test := range []struct {
		name       string
		fixings    []*eventsv1.Fixing
		receivedAt map[string]FiatReading
		want       string // of the first currency: rate, stale, and why each source does not count
	}{
		{"one source", []*eventsv1.Fixing{intraday("a", "EUR", "0.9", 0)}, nil, "EUR 0.9 fresh"},
		{"by way of another base", []*eventsv1.Fixing{daily("ecb", "EUR", "USD", "1.25", 0), daily("ecb", "EUR", "GBP", "0.75", 0)}, nil, "EUR 0.8 fresh"},
		{"two days of one source do not make a rate", []*eventsv1.Fixing{daily("ecb", "EUR", "USD", "1.25", 1), daily("ecb", "EUR", "GBP", "0.75", 0)}, nil, "EUR 0.8 fresh"},
		{"what a source publishes comes before what it can be made of",
			[]*eventsv1.Fixing{daily("a", "EUR", "USD", "1.25", 0), daily("a", "USD", "EUR", "0.81", 0)}, nil, "EUR 0.81 fresh"},
		{"the middle of three", []*eventsv1.Fixing{intraday("a", "EUR", "0.9", 0), intraday("b", "EUR", "0.91", 0), intraday("c", "EUR", "0.97", 0)}, nil, "EUR 0.91 fresh"},
		{"the mean of two", []*eventsv1.Fixing{intraday("a", "EUR", "0.9", 0), intraday("b", "EUR", "0.92", 0)}, nil, "EUR 0.91 fresh"},
		{"an outlier", []*eventsv1.Fixing{intraday("a", "EUR", "0.9", 0), intraday("b", "EUR", "0.92", 0), intraday("c", "EUR", "92", 0)}, nil, "EUR 0.91 fresh c:outlier"},
		{"two that contradict each other", []*eventsv1.Fixing{intraday("a", "EUR", "0.9", time.Minute), intraday("b", "EUR", "90", 0)}, nil, "EUR 90 stale a:outlier b:outlier"},
		{"exactly half away stays", []*eventsv1.Fixing{intraday("a", "EUR", "1", 0), intraday("b", "EUR", "1", 0), intraday("c", "EUR", "1.5", 0)}, nil, "EUR 1 fresh"},
		{"the last nanosecond of a fixing", []*eventsv1.Fixing{daily("ecb", "USD", "EUR", "0.9", 5)}, nil, "EUR 0.9 fresh"},
		{"a fixing of a week ago", []*eventsv1.Fixing{daily("ecb", "USD", "EUR", "0.9", 7), intraday("a", "EUR", "0.8", 0)}, nil, "EUR 0.8 fresh ecb:stale"},
		{"three intervals", []*eventsv1.Fixing{intraday("a", "EUR", "0.8", 45*time.Minute)}, nil, "EUR 0.8 fresh"},
		{"more than three intervals", []*eventsv1.Fixing{intraday("a", "EUR", "0.8", 45*time.Minute+1)}, nil, "EUR 0.8 stale a:stale"},
		{"set long ago and read again unchanged", []*eventsv1.Fixing{intraday("a", "EUR", "0.8", 5*time.Hour)}, map[string]FiatReading{"a": read(10)}, "EUR 0.8 fresh"},
		{"no longer among what is read", []*eventsv1.Fixing{intraday("a", "EUR", "0.8", 48*time.Hour)}, map[string]FiatReading{"a": read(10)}, "EUR 0.8 stale a:stale"},
		{"none fresh: the newest", []*eventsv1.Fixing{intraday("a", "EUR", "0.8", 48*time.Hour), daily("ecb", "USD", "EUR", "0.9", 7)}, nil, "EUR 0.8 stale a:stale ecb:stale"},
		{"a blend of one that votes itself", []*eventsv1.Fixing{daily("ecb", "USD", "EUR", "0.9", 0), providedBy(daily("blend", "USD", "EUR", "0.91", 0), "ECB")}, nil, "EUR 0.9 fresh blend:repeats"},
		{"a blend of more", []*eventsv1.Fixing{daily("ecb", "USD", "EUR", "0.9", 0), providedBy(daily("blend", "USD", "EUR", "0.92", 0), "ECB", "BOE")}, nil, "EUR 0.91 fresh"},
		{"a blend of one that is stale", []*eventsv1.Fixing{daily("ecb", "USD", "EUR", "0.9", 8), providedBy(daily("blend", "USD", "EUR", "0.92", 0), "ECB")}, nil, "EUR 0.92 fresh ecb:stale"},
		{"the later of two", []*eventsv1.Fixing{intraday("a", "EUR", "0.9", 0), intraday("a", "EUR", "0.8", time.Minute)}, nil, "EUR 0.9 fresh"},
		{"no numbers", []*eventsv1.Fixing{intraday("a", "EUR", "0", 0), intraday("b", "EUR", "x", 0), daily("c", "EUR", "USD", "0", 0)}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if rates := BlendFiat(test.fixings, test.receivedAt, fiatNow.UnixNano()); len(rates) > 0 {
				got = spellFiat(rates[0])
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func spellFiat(r FiatRate) string {
	age := "fresh"
	if r.Stale {
		age = "stale"
	}
	words := []string{r.Code, fmt.Sprint(math.Round(r.Rate*1e9) / 1e9), age}
	for _, s := range r.Sources {
		if s.Reason != "" {
			words = append(words, s.Source+":"+s.Reason)
		}
	}
	return strings.Join(words, " ")
}

// The order in which fixings come must not show.
func TestBlendIsTheSameInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var fixings []*eventsv1.Fixing
	for _, source := range []string{"a", "b", "c", "d"} {
		for _, base := range []string{"EUR", "USD", "GBP", "CHF"} {
			for _, quote := range []string{"EUR", "USD", "GBP", "JPY", "CHF"} {
				if base != quote && random.IntN(3) > 0 {
					fixings = append(fixings, daily(source, base, quote, fmt.Sprint(0.5+random.Float64()), random.IntN(9)))
				}
			}
		}
	}
	want := fmt.Sprintf("%+v", BlendFiat(fixings, nil, fiatNow.UnixNano()))
	for range 50 {
		shuffled := slices.Clone(fixings)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := fmt.Sprintf("%+v", BlendFiat(shuffled, nil, fiatNow.UnixNano())); got != want {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	}
}
