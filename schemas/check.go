package schemas

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Bounds of what can be a price, a size or a time.
const (
	maxDecimals = 18
	maxAhead    = 10 * time.Second
	maxTradeAge = 10 * time.Minute
	// maxDigits bounds what is parsed at all: a longer number would cost time to read and could
	// not be kept exactly.
	maxDigits = 64
)

var (
	minPrice = decimal.New(1, -18)
	maxPrice = decimal.New(1, 12)
	maxSize  = decimal.New(1, 18)
	// maxVolume is what a column of 38 digits, 18 of them decimals, can hold.
	maxVolume = decimal.New(1, 19)
)

// CheckTick reports why a tick must not become one, and what was wrong in words; an empty reason if
// it may.
func CheckTick(t *eventsv1.Tick) (Reason, string) {
	if t.EventTime != 0 && t.EventTime-t.IngestTime > int64(maxAhead) {
		return Future, fmt.Sprintf("event_time is %s after ingest", time.Duration(t.EventTime-t.IngestTime))
	}
	switch t.Kind {
	case eventsv1.TickKind_TICK_KIND_TRADE:
		if t.EventTime != 0 && t.IngestTime-t.EventTime > int64(maxTradeAge) {
			return StaleSource, fmt.Sprintf("the trade happened %s before ingest", time.Duration(t.IngestTime-t.EventTime))
		}
		if reason, detail := checkPrice("price", t.Price); reason != "" {
			return reason, detail
		}
		return checkAmount("size", t.Size)
	case eventsv1.TickKind_TICK_KIND_QUOTE, eventsv1.TickKind_TICK_KIND_TICKER:
		if t.Bid == "" && t.Ask == "" && t.Last == "" {
			return Undecodable, "a quote without bid, ask and last"
		}
		for _, f := range [...]struct{ name, value string }{{"bid", t.Bid}, {"ask", t.Ask}, {"last", t.Last}} {
			if f.value == "" {
				continue
			}
			if reason, detail := checkPrice(f.name, f.value); reason != "" {
				return reason, detail
			}
		}
		for _, f := range [...]struct{ name, value string }{{"volume_base", t.VolumeBase}, {"volume_quote", t.VolumeQuote}} {
			if reason, detail := checkVolume(f.name, f.value); reason != "" {
				return reason, detail
			}
		}
		return "", ""
	default:
		return Undecodable, fmt.Sprintf("kind %d is not known", t.Kind)
	}
}

// CheckCandle reports why a venue's candle of the past must not be kept, and what was wrong in words; an empty
// reason if it may.
func CheckCandle(c *eventsv1.BackfillCandle) (Reason, string) {
	for _, price := range [...][2]string{{"open", c.Open}, {"high", c.High}, {"low", c.Low}, {"close", c.Close}} {
		if reason, detail := checkPrice(price[0], price[1]); reason != "" {
			return reason, detail
		}
	}
	return checkVolume("volume", c.Volume)
}

func checkPrice(name, value string) (Reason, string) {
	d, reason, detail := parse(name, value)
	switch {
	case reason != "":
		return reason, detail
	case d.Cmp(minPrice) < 0 || d.Cmp(maxPrice) > 0:
		return Absurd, fmt.Sprintf("%s %s lies outside 1e-18 to 1e12", name, value)
	}
	return "", ""
}

func checkAmount(name, value string) (Reason, string) {
	d, reason, detail := parse(name, value)
	switch {
	case reason != "":
		return reason, detail
	case d.Cmp(maxSize) > 0:
		return Absurd, fmt.Sprintf("%s %s lies above 1e18", name, value)
	}
	return "", ""
}

// checkVolume lets more decimals pass than a price may have: venues compute volumes, and a rounded
// one misleads nobody.
func checkVolume(name, value string) (Reason, string) {
	if value == "" {
		return "", ""
	}
	d, err := decimal.NewFromString(value)
	switch {
	case err != nil || len(value) > maxDigits:
		return NotANumber, fmt.Sprintf("%s %.80q is no decimal number", name, value)
	case d.IsNegative():
		return NonPositive, fmt.Sprintf("%s is %s", name, value)
	case d.Cmp(maxVolume) > 0:
		return Absurd, fmt.Sprintf("%s %s lies above 1e19", name, value)
	}
	return "", ""
}

// parse reads a decimal, exactly; it must be positive and have at most 18 decimals.
func parse(name, value string) (decimal.Decimal, Reason, string) {
	if len(value) > maxDigits {
		return decimal.Decimal{}, Precision, fmt.Sprintf("%s has %d digits", name, len(value))
	}
	d, err := decimal.NewFromString(value)
	if err != nil {
		return d, NotANumber, fmt.Sprintf("%s %q is no decimal number", name, value)
	}
	if !d.IsPositive() {
		return d, NonPositive, fmt.Sprintf("%s is %s", name, value)
	}
	if d.Exponent() < -maxDecimals && !d.Equal(d.Truncate(maxDecimals)) {
		return d, Precision, fmt.Sprintf("%s %s has more than %d decimals", name, value, maxDecimals)
	}
	return d, "", ""
}

// CrossedQuote reports whether a checked tick's bid lies above its ask.
func CrossedQuote(t *eventsv1.Tick) bool {
	if t.Bid == "" || t.Ask == "" {
		return false
	}
	bid, errBid := decimal.NewFromString(t.Bid)
	ask, errAsk := decimal.NewFromString(t.Ask)
	return errBid == nil && errAsk == nil && bid.Cmp(ask) > 0
}
