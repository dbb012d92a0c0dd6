// Package scripted is two exchanges on loopback that send what a seed determines, at any rate and with
// the time of day on it: one speaks Coinbase Exchange's public feed, the other Kraken's, both written
// after the venues' documentation and not after our adapters. Among what is right they send what no
// price may be made of, and they count it.
package scripted

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// market is one market as the venue knows it. Numbers are whole steps of 10^-decimals, so that the
// venue never sends a number that it did not mean.
type market struct {
	base, quote string
	decimals    int
	price       int64
	// sequence numbers the market's messages, trade its trades.
	sequence, trade int64
	// volume is that of 24 hours, in 1e-8 of the base.
	volume int64
	// silent markets are not spoken of, and nobody who asks learns anything.
	silent bool
	// last is the last trade that was as it should be; a subscriber hears it first.
	last quoted
}

// markets are those that both venues list: a few coins against the dollar, the stablecoins and the
// coin that other markets are quoted in, and some of those.
func markets() []*market {
	list := []*market{
		{base: "BTC", quote: "USD", decimals: 2, price: 97_250_00},
		{base: "ETH", quote: "USD", decimals: 2, price: 3_412_50},
		{base: "SOL", quote: "USD", decimals: 2, price: 188_41},
		{base: "XRP", quote: "USD", decimals: 4, price: 2_3105},
		{base: "ADA", quote: "USD", decimals: 4, price: 8120},
		{base: "DOGE", quote: "USD", decimals: 5, price: 31220},
		{base: "LTC", quote: "USD", decimals: 2, price: 104_33},
		{base: "LINK", quote: "USD", decimals: 3, price: 21_404},
		{base: "DOT", quote: "USD", decimals: 4, price: 6_9120},
		{base: "UNI", quote: "USD", decimals: 4, price: 12_0450},
		{base: "AAVE", quote: "USD", decimals: 2, price: 311_20},
		{base: "USDT", quote: "USD", decimals: 5, price: 99970},
		{base: "USDC", quote: "USD", decimals: 5, price: 99990},
		{base: "BTC", quote: "USDT", decimals: 2, price: 97_280_00},
		{base: "ETH", quote: "USDT", decimals: 2, price: 3_413_55},
		{base: "ETH", quote: "BTC", decimals: 6, price: 35090},
		{base: "XLM", quote: "USDT", decimals: 5, price: 40110},
		{base: "SHIB", quote: "USDC", decimals: 8, price: 2110},
		{base: "AVAX", quote: "BTC", decimals: 8, price: 41200},
	}
	for i, m := range list {
		m.sequence, m.trade, m.volume = int64(i+1)*1_000_000_000, int64(i+1)*10_000_000, int64(i+1)*1_234_567_890_123
	}
	return list
}

// Bad names a kind of message that must not become a price.
type Bad string

// Kinds of bad messages, in the order in which a Parade sends them.
const (
	Zero         Bad = "zero"          // a price of 0
	Negative     Bad = "negative"      // a price below it
	Precise      Bad = "precise"       // 19 decimals
	Absurd       Bad = "absurd"        // a price above 1e12
	Future       Bad = "future"        // an event time an hour ahead
	Stale        Bad = "stale"         // a trade of eleven minutes ago
	NotANumber   Bad = "not_a_number"  // a price that is a word
	Garbage      Bad = "garbage"       // half a message
	Unknown      Bad = "unknown"       // a message of a type that the venue does not document
	Duplicate    Bad = "duplicate"     // a trade that was sent before
	RepeatedBad  Bad = "repeated_bad"  // a ticker with a negative price, sent twice
	Late         Bad = "late"          // a trade of three minutes ago: kept, but in no candle
	OutOfOrder   Bad = "out_of_order"  // a trade that happened before the last one
	EighteenTrue Bad = "eighteen_true" // 18 decimals: to be kept exactly
	Hundredfold  Bad = "hundredfold"   // a hundred times the price: kept, and no price may follow it
)

// Bads are all kinds.
var Bads = []Bad{
	Zero, Negative, Precise, Absurd, Future, Stale, NotANumber, Garbage, Unknown, Duplicate, RepeatedBad, Late, OutOfOrder, EighteenTrue, Hundredfold,
}

// Reason is why the dead letter must have a message of this kind; empty if it must not have it.
func (b Bad) Reason() string {
	switch b {
	case Zero, Negative, RepeatedBad:
		return "non_positive"
	case Precise:
		return "precision"
	case Absurd:
		return "absurd"
	case Future:
		return "future"
	case Stale:
		return "stale_source"
	case NotANumber:
		return "not_a_number"
	case Garbage, Unknown:
		return "undecodable"
	}
	return ""
}

// quoted is what a venue sends of a market, before it is written in the venue's format.
type quoted struct {
	market   *market
	trade    bool
	number   int64 // of the trade, or of the ticker's message
	price    string
	size     string
	bid, ask string
	buy      bool
	at       time.Time
	history  bool
}

// walk moves a market by up to 5 bps and returns its message: a trade or a ticker.
func (m *market) walk(r *rand.Rand, at time.Time) quoted {
	m.price = max(m.price+int64(float64(m.price)*(r.Float64()-0.5)*0.001), 10)
	m.sequence++
	size := 1 + r.Int64N(5_000_000_000)
	m.volume += size
	s := quoted{market: m, trade: r.IntN(5) < 2, price: m.spell(m.price), size: spell(size, 8), buy: r.IntN(2) == 0, at: at}
	// The last price may lie outside the spread, as after a quote that moved on.
	middle, half := m.price+r.Int64N(7)-3, 1+r.Int64N(4)
	s.bid, s.ask = m.spell(max(middle-half, 1)), m.spell(middle+half)
	s.number = m.sequence
	if s.trade {
		m.trade++
		s.number = m.trade
		m.last = s
	}
	return s
}

func (m *market) spell(steps int64) string { return spell(steps, m.decimals) }

// spell writes a whole number of steps of 10^-decimals as a decimal.
func spell(steps int64, decimals int) string {
	digits := strconv.FormatInt(steps, 10)
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}

// spoil turns it into a bad message of the given kind, as far as it is the contents that is bad.
func (s quoted) spoil(kind Bad) quoted {
	s.trade = kind != RepeatedBad
	switch kind {
	case Zero:
		s.price = "0.00"
	case Negative, RepeatedBad:
		s.price = "-" + s.price
	case Precise:
		s.price = s.price + strings.Repeat("0", 18-s.market.decimals) + "1"
	case EighteenTrue:
		s.price = s.price + strings.Repeat("0", 17-s.market.decimals) + "1"
		s.size = "0.123456789012345678"
	case Absurd:
		s.price = "1000000000001"
	case Hundredfold:
		s.price = s.market.spell(100 * s.market.price)
	case Future:
		s.at = s.at.Add(time.Hour)
	case Stale:
		s.at = s.at.Add(-11 * time.Minute)
	case Late:
		s.at = s.at.Add(-3 * time.Minute)
	case OutOfOrder:
		s.at = s.at.Add(-400 * time.Millisecond)
	case NotANumber:
		s.price = "NaN"
	}
	return s
}

func (m *market) String() string { return fmt.Sprintf("%s/%s", m.base, m.quote) }
