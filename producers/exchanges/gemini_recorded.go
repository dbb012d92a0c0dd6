package exchanges

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// geminiRecordedInstruments also reads what the venue reports about one market, for which the engine does not ask.
func geminiRecordedInstruments(path string, body []byte) ([]adapter.Instrument, error) {
	if !strings.Contains(path, "/v1/symbols/details/") {
		return geminiInstruments(path, body)
	}
	var d struct {
		Symbol  string `json:"symbol"`
		Base    string `json:"base_currency"`
		Quote   string `json:"quote_currency"`
		Product string `json:"product_type"` // spot or swap; older answers have none
		Status  string `json:"status"`
	}
	if err := parse(body, &d); err != nil {
		return nil, err
	}
	if _, _, spot := geminiSplit(d.Symbol); !spot || d.Product != "" && d.Product != "spot" || d.Status != "open" {
		return nil, nil
	}
	return []adapter.Instrument{{
		Symbol: strings.ToLower(d.Symbol), Base: d.Base, Quote: d.Quote, Aliases: []string{strings.ToUpper(d.Symbol)},
	}}, nil
}

// decodeGeminiRecorded also reads Market Data version 2, whose messages have a type, and whose refusals are a result.
func decodeGeminiRecorded(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Type   string          `json:"type"`
		Result json.RawMessage `json:"result"`
		Reason string          `json:"reason"`
		ID     json.RawMessage `json:"id"`
		Error  json.RawMessage `json:"error"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch {
	case m.Error == nil && string(m.Result) == `"error"`:
		out.Notice("%s", m.Reason)
		return nil
	case m.Error == nil && m.ID == nil && m.Result == nil && m.Type != "":
		return geminiArchived(m.Type, f.Bytes, out)
	}
	return decodeGemini(f, out)
}

// geminiTrade is a trade of Market Data version 2. Its event's number is of that feed alone.
type geminiTrade struct {
	Symbol string        `json:"symbol"`
	Event  producers.Num `json:"event_id"`
	ID     producers.Num `json:"tid"`
	Time   producers.Num `json:"timestamp"`
	Price  producers.Num `json:"price"`
	Size   producers.Num `json:"quantity"`
	Side   string        `json:"side"` // the taker's
}

func (t *geminiTrade) event(snapshot bool) adapter.Event {
	return adapter.Event{
		Kind: adapter.Trade, Symbol: t.Symbol, Channel: "marketdata", Time: producers.Unix(t.Time, time.Millisecond),
		ID: cmp.Or(t.Event, t.ID), Price: t.Price, Size: t.Size, Side: geminiSide(t.Side), Snapshot: snapshot,
	}
}

// geminiArchived reads Market Data version 2. Version 1 names no market: each had a connection.
func geminiArchived(kind string, b []byte, out *adapter.Out) error {
	switch {
	case kind == "trade":
		var t geminiTrade
		if err := parse(b, &t); err != nil {
			return err
		}
		out.Add(t.event(false))
	case kind == "l2_updates": // the first has the newest trades
		var m struct {
			Symbol string        `json:"symbol"`
			Trades []geminiTrade `json:"trades"`
		}
		if err := parse(b, &m); err != nil {
			return err
		}
		for i := range m.Trades {
			t := &m.Trades[i]
			t.Symbol = cmp.Or(t.Symbol, m.Symbol)
			out.Add(t.event(true))
		}
	case strings.HasPrefix(kind, "candles_"):
		var m struct {
			Symbol  string            `json:"symbol"`
			Changes [][]producers.Num `json:"changes"`
		}
		if err := parse(b, &m); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(kind, "candles_"), "_updates")
		return geminiCandles(m.Symbol, "candles", name, m.Changes, out)
	case kind == "update":
		return adapter.Retired("message of version 1")
	case kind == "heartbeat", kind == "subscription_ack", strings.HasPrefix(kind, "auction_"),
		kind == "mark_price_updates", kind == "funding_amount_updates", kind == "block_trade":
	default:
		return producers.Unreadable("message of type %q", kind)
	}
	return nil
}

// geminiSide leaves out the trades of auctions and blocks, which have no taker.
func geminiSide(name string) adapter.Side {
	switch side := adapter.Side(name); side {
	case adapter.Buy, adapter.Sell:
		return side
	}
	return ""
}

// geminiCandles reads start, open, high, low, close, volume, newest first. HTTP names hours and days
// 1hr, 6hr and 1day.
func geminiCandles(symbol, channel, interval string, all [][]producers.Num, out *adapter.Out) error {
	interval = strings.Replace(strings.Replace(interval, "hr", "h", 1), "day", "d", 1)
	return candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 5, Unit: time.Millisecond}.add(
		all, adapter.Event{Symbol: symbol, Channel: channel, Interval: interval}, out)
}

// geminiRecordedREST also reads endpoints of before, and what the feed reports live.
func geminiRecordedREST(target string, body []byte, out *adapter.Out) error {
	_, name, last := geminiPath(target)
	switch name {
	case "v1/pubticker":
		// The volumes are named by asset. Their time is the end of the day that they are of, in steps
		// of minutes: it is not the time of the prices.
		var t struct {
			Last   producers.Num            `json:"last"`
			Bid    producers.Num            `json:"bid"`
			Ask    producers.Num            `json:"ask"`
			Volume map[string]producers.Num `json:"volume"`
		}
		if err := parse(body, &t); err != nil {
			return err
		}
		base, quote, _ := geminiSplit(last)
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Channel: "rest", Last: t.Last, Bid: t.Bid, Ask: t.Ask,
			VolumeBase: t.Volume[base], VolumeQuote: t.Volume[quote],
		})
	case "v1/pricefeed":
		type price struct {
			Pair  string        `json:"pair"`
			Price producers.Num `json:"price"`
		}
		return parseAll(body, func(p *price) adapter.Event {
			return adapter.Event{Kind: adapter.Ticker, Symbol: p.Pair, Channel: "rest", Last: p.Price}
		}, out)
	case "v1/trades":
		var trades []struct {
			ID      producers.Num `json:"tid"`
			Seconds producers.Num `json:"timestamp"`
			Millis  producers.Num `json:"timestampms"`
			Price   producers.Num `json:"price"`
			Size    producers.Num `json:"amount"`
			Type    string        `json:"type"`
			Broken  bool          `json:"broken"` // taken back by the venue
		}
		if err := parse(body, &trades); err != nil {
			return err
		}
		for _, t := range trades {
			if t.Broken {
				continue
			}
			at := producers.Unix(t.Millis, time.Millisecond)
			if t.Millis == "" {
				at = producers.Unix(t.Seconds, time.Second)
			}
			out.Add(adapter.Event{
				Kind: adapter.Trade, Channel: "trades", Time: at,
				ID: t.ID, Price: t.Price, Size: t.Size, Side: geminiSide(t.Type),
			})
		}
	case "v2/candles":
		all, err := list[[]producers.Num](body)
		if err != nil {
			return err
		}
		return geminiCandles("", "rest", last, all, out)
	default:
		return geminiREST(target, body, out)
	}
	return nil
}
