package explain_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// namesake is a coin that shares its symbol with others, as the model of this test knows it. Zero is unknown.
type namesake struct {
	id         string
	ours       bool
	cap, price float64
	rank       int
}

// namesakes has a minute with coins that share the symbols BTC and ZZZ, some of them without a row, and the rate of the euro in quotes.v1. It returns those of
// each symbol as the model ranks them, the largest first.
func (w *fixture) namesakes(random *rand.Rand) map[string][]namesake {
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	coins := map[string][]namesake{}
	w.outside = map[string][2]string{}
	var again []*eventsv1.CoinMarket
	observe := func(id, symbol string, ours bool, price, supply float64) {
		again = append(again, &eventsv1.CoinMarket{Source: "coingecko", SourceId: id, Symbol: symbol, Name: id, Price: plain(price), CirculatingSupply: plain(supply), Volume24H: plain(price * supply / 50)})
		coins[symbol] = append(coins[symbol], namesake{id: id, ours: ours, cap: price * supply, price: price})
	}
	observe("bitcoin", "BTC", true, 97_000*(1+random.Float64()), 2e7)
	observe("ethereum", "ETH", true, 4_000*(1+random.Float64()), 1e8)
	for i := range random.IntN(6) {
		symbol := []string{"BTC", "ZZZ"}[random.IntN(2)]
		id := fmt.Sprintf("%s-%c", strings.ToLower(symbol), 'a'+i)
		w.outside[id] = [2]string{symbol, id}
		w.listed1(id, symbol)
		if random.IntN(4) == 0 {
			coins[symbol] = append(coins[symbol], namesake{id: id})
			continue
		}
		observe(id, symbol, false, math.Pow(10, float64(random.IntN(5)))*(1+random.Float64()), math.Pow(10, 5+float64(random.IntN(9))))
	}
	for range 2 { // what comes before the first clock belongs to the minute after it
		w.Now = w.Now.Add(40 * time.Second)
		for _, reported := range again {
			reported = proto.CloneOf(reported)
			reported.IngestTime = w.Now.UnixNano()
			w.observed(reported)
		}
		w.close(w.Now.Truncate(time.Minute).Add(time.Minute).UnixNano())
	}
	all := slices.Concat(coins["BTC"], coins["ETH"], coins["ZZZ"])
	for _, list := range coins {
		for i := range list {
			for _, other := range all {
				if list[i].cap > 0 && other.cap >= list[i].cap {
					list[i].rank++
				}
			}
		}
		slices.SortFunc(list, func(a, b namesake) int { return cmp.Or(cmp.Compare(b.cap, a.cap), strings.Compare(a.id, b.id)) })
	}
	rate := &eventsv1.QuoteRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.Now.UnixNano()}, Body: &eventsv1.QuoteRecord_Rate{Rate: &eventsv1.QuoteRate{
		QuoteId: "EUR", Rate: 1.25, Time: w.Now.UnixNano(), Method: "market"}}}
	w.append(schemas.TopicQuotes, 0, "EUR", w.Now.UnixNano(), rate)
	w.flush()
	w.Must(w.Rates.Apply(views.TailRecord{Marked: rate}))
	w.Pulse()
	return coins
}

// plain writes a number as sources do, without an exponent.
func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// listed1 is what a source says of a coin in its list.
func (w *fixture) listed1(id, symbol string, platforms ...*eventsv1.Platform) {
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: id, Part: "list",
		Symbol: symbol, Name: id, Platforms: platforms, IngestTime: w.Now.UnixNano()}}}
	w.append(schemas.TopicReferenceRaw, 0, "coingecko", w.Now.UnixNano(), rec)
	w.flush()
	w.Said(rec)
}

// size is how large a coin is as a fraction of a larger one, as docs/symbols.md has it.
func size(of, than namesake) float64 {
	if of.cap == 0 {
		if than.cap == 0 {
			return 1
		}
		return 0.001
	}
	return min(1, of.cap/than.cap)
}

// expected is what docs/symbols.md says of a symbol that these coins have, of which so many units have a price, 0 for none: the confidence, and the scores
// of the coins. It knows nothing of sources and hints.
func expected(all []namesake, last int, units, price float64) (confidence int, scores map[string]int) {
	price /= units
	off := func(c namesake) float64 {
		if price == 0 || c.price == 0 {
			return 0
		}
		return math.Abs(c.price-price) / price
	}
	tenfold := func(c namesake) bool {
		return price > 0 && c.price > 0 && (c.price >= 10*price || price >= 10*c.price)
	}
	var fitting, matching []namesake
	for _, c := range all {
		if !tenfold(c) {
			fitting = append(fitting, c)
		}
	}
	if len(fitting) == 0 {
		fitting = all
	}
	scores = map[string]int{}
	for _, c := range all {
		scores[c.id] = 0
	}
	if len(all) == 0 {
		return 0, scores
	}
	near := false
	for _, c := range fitting {
		if c.price > 0 && price > 0 && off(c) <= 0.1 {
			matching = append(matching, c)
		}
		near = near || c.price > 0 && price > 0 && off(c) > 0.1 && off(c) <= 0.3
	}
	best, ours := fitting[0], 0
	rival, unsized := 0.0, best.cap == 0
	for _, c := range fitting[1:] {
		rival, unsized = max(rival, size(c, best)), unsized || c.cap == 0
	}
	for _, c := range fitting {
		if c.ours {
			ours++
		}
	}
	limit := 100
	switch {
	case len(all) == 1 && off(best) > 0.3:
		confidence = 65
	case len(all) == 1 && !best.ours && best.cap == 0:
		confidence = 75
	case len(all) == 1:
		confidence, limit = 90, 85
		if !best.ours {
			limit = 80
		}
	case len(matching) == 1 && !near:
		best, confidence, limit = matching[0], 85, 85
		if !best.ours {
			limit = 80
		}
	case ours == 1 && best.ours && off(best) <= 0.3:
		confidence, limit = 80+int(10*(1-math.Sqrt(rival))), 85
	case best.cap > 0 && off(best) <= 0.3:
		if unsized {
			rival = max(rival, min(1, float64(best.rank)/float64(last)))
		}
		confidence, limit = 70+int(30*(1-math.Sqrt(rival))), 80
		if best.ours {
			limit = 85
		}
	default:
		confidence = 65
	}
	// A score of another coin is of what the rule was sure of, before the number of units took anything off.
	for _, c := range all {
		if c.id != best.id && !tenfold(c) {
			scores[c.id] = int(float64(confidence) * math.Sqrt(size(c, best)))
		}
	}
	if units != 1 {
		confidence = min(confidence, limit)
	}
	scores[best.id] = confidence
	return confidence, scores
}

// Each number of an answer to what a symbol means is named by what was asked, is what the documented rules give of the coins at hand, and is decided alike once more on what the log has.
func TestWhatSymbolsMeanIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	coins := w.namesakes(random)
	last := 0
	for _, list := range coins {
		for _, c := range list {
			last = max(last, c.rank)
		}
	}
	for range 12 {
		symbol := []string{"BTC", "ETH", "ZZZ"}[random.IntN(3)]
		all, units, price := coins[symbol], 1.0, 0.0
		asked, params := symbol, url.Values{}
		switch random.IntN(4) {
		case 0:
			asked += "/USDT"
		case 1:
			asked, units = "1000"+asked, 1000
		}
		if random.IntN(2) == 0 {
			price = 1e4 * random.Float64()
			if len(all) > 0 && random.IntN(3) > 0 {
				price = all[random.IntN(len(all))].price * (0.6 + random.Float64()*0.8)
			}
			price *= units
		}
		if price > 0 && random.IntN(2) == 0 {
			given := price / 1.25
			params.Set("price", fmt.Sprint(given))
			params.Set("context", "eur")
			price = given * 1.25
		} else if price > 0 {
			params.Set("price", fmt.Sprint(price))
		}
		params.Set("symbol", asked)
		var body symbols.ResolutionBody
		w.read("/api/v1/symbols/resolve?"+params.Encode(), &body)
		got := body.Data
		confidence, scores := expected(all, last, units, price)
		if len(all) == 0 && got.Confidence != nil && *got.Confidence == 0 {
			w.reproduced("symbol/"+got.Question+"/confidence", "", true)
			continue
		}
		if *got.Confidence != confidence || len(got.Candidates) != len(all) {
			t.Errorf("%s of %+v: got %d with %+v, want %d with %v", params.Encode(), all, *got.Confidence, got.Candidates, confidence, scores)
		}
		for _, c := range got.Candidates {
			if n := w.reproduced("symbol/"+got.Question+"/score/"+c.CoinID, "", true); *n.Value != float64(scores[c.CoinID]) || c.Score != scores[c.CoinID] {
				t.Errorf("%s of %+v: %s has a score of %v, explained as %v, want %d", params.Encode(), all, c.CoinID, c.Score, *n.Value, scores[c.CoinID])
			}
		}
		n := w.reproduced("symbol/"+got.Question+"/confidence", "?depth=2", true)
		if *n.Value != float64(confidence) || n.Unit != "%" && n.Unit != "percent" || n.Method.Name != got.Method {
			t.Errorf("got %+v, want %d by %s", n, confidence, got.Method)
		}
		for _, c := range all {
			has := slices.ContainsFunc(n.Inputs, func(in *explain.Node) bool { return in.Number == "market/"+c.id+"/marketCap" && *in.Value == c.cap })
			if has != (c.cap > 0) {
				t.Errorf("%s of %+v has the inputs %+v", params.Encode(), c, n.Inputs)
			}
		}
		if got.Units != 0 || units != 1 {
			if n := w.reproduced("symbol/"+got.Question+"/units", "", true); *n.Value != units || got.Units != units {
				t.Errorf("%s is %v units, explained as %v, want %v", asked, got.Units, *n.Value, units)
			}
		}
	}
}

// What an operator or a source says of a symbol is read again in its record, and what the log has otherwise is not called reproduced.
func TestWhatIsSaidOfSymbolsIsReproduced(t *testing.T) {
	w := newFixture(t)
	w.namesakes(streamtest.Rand(t))
	const address = "0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce"
	w.outside["token"] = [2]string{"TOK", "token"}
	w.listed1("token", "TOK", &eventsv1.Platform{Name: "ethereum", Address: address})
	override := &eventsv1.ReferenceRecord{Producer: "operator", Body: &eventsv1.ReferenceRecord_Override{Override: &eventsv1.SymbolOverride{Source: "gate", Symbol: "ABC", CoinId: "bitcoin", Time: w.Now.UnixNano()}}}
	w.append(schemas.TopicReferenceRaw, 0, "operator", w.Now.UnixNano(), override)
	w.flush()
	w.Said(override)
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicReferenceRaw}, override)
	ticks := map[string]string{"XBT": "bitcoin", "ETH": "ethereum"}
	for base, coin := range ticks {
		tick := &eventsv1.Tick{Venue: "kraken", Symbol: base + "-USD", Base: base, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
			EventId: []byte(strings.Repeat(base[:1], 16)), Price: "1", Size: "1", IngestTime: w.Now.UnixNano()}
		offset := w.Offset()
		b.Add(rows.Place{Topic: schemas.TopicTicks, Offset: offset}, &eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset},
			Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{Tick: tick, CoinId: coin, QuoteId: "USD", Rate: 1}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	w.Now = w.Now.Add(2 * time.Minute)
	w.Minute(w.Now)
	w.Pulse()
	for path, want := range map[string][]string{
		"/api/v1/symbols/resolve?symbol=abc&source=gate&explain=1":                  {"symbol/gate/abc/confidence", "symbol/gate/abc/score/bitcoin"},
		"/api/v1/symbols/resolve?symbol=" + address + "&explain=1":                  {"symbol/general/" + address + "/confidence"},
		"/api/v1/symbols/resolve?symbol=NOSUCH&explain=1":                           {"symbol/general/NOSUCH/confidence"},
		"/api/v1/symbols/resolve?symbol=1000SHIB2&explain=1":                        {"symbol/general/1000SHIB2/confidence"},
		"/api/v1/symbols/resolve?symbol=BTC%2FUSDT&context=eur&view=tool&explain=1": {"symbol/general/BTC~2FUSDT/quote=eur/confidence"},
		"/api/v1/symbols/mappings?explain=1":                                        {"symbol-mapping/manual_override/gate/ABC", "symbol-mapping/exchange_mapping/kraken/XBT", "symbol-mapping/unique_symbol/kraken/ETH"},
	} {
		numbers, _ := w.explained(path)
		for _, number := range want {
			if !slices.Contains(numbers, number) {
				t.Errorf("%s explains %q, and not %s", path, numbers, number)
			}
		}
	}
	confidences := map[string]float64{"symbol/gate/ABC/confidence": 100, "symbol/general/" + address + "/confidence": 95, "symbol/general/ethereum~3A" + address + "/confidence": 100,
		"symbol/general/X/platform=ethereum/contract=" + address + "/confidence": 100, "symbol/general/ETH/confidence": 90, "symbol/general/EUR/confidence": 0,
		"symbol-mapping/manual_override/gate/ABC": 100, "symbol-mapping/exchange_mapping/kraken/XBT": 95, "symbol-mapping/unique_symbol/kraken/ETH": 90, "symbol/general/ETH/units": 1}
	for number, want := range confidences {
		if n := w.reproduced(number, "", true); *n.Value != want {
			t.Errorf("%s is explained as %v, want %v", number, *n.Value, want)
		}
	}
	for _, number := range []string{"symbol/gate/ABC/confidence", "symbol-mapping/manual_override/gate/ABC", "symbol/general/" + address + "/confidence"} {
		if n := w.ask(number, ""); !slices.ContainsFunc(n.Inputs, func(in *explain.Node) bool {
			return len(in.Records) == 1 && in.Records[0].Topic == schemas.TopicReferenceRaw
		}) {
			text, _ := json.Marshal(n)
			t.Errorf("%s leads to no record: %s", number, text)
		}
	}
	w.answered(map[string]int{"symbol/gate": 404, "symbol/gate/ABC": 404, "symbol/gate/ABC/confidenc": 404, "symbol/gate/ABC/score": 404, "symbol/gate/ABC/score/ethereum": 404, "symbol/gate/ABC/price=x/units": 404,
		"symbol/gate/ABC/confidence/x": 404, "symbol/gate/ABC/confidence?asOf=2026-11-20T10:00:30Z": 410,
		"symbol-mapping/unique_symbol/kraken/ETH?asOf=2026-11-20T10:00:30Z": 410, "symbol/general/" + strings.Repeat("x", 3_000) + "/units": http.StatusBadRequest})
	// An override that took the place of another has not held before.
	then := "?asOf=" + w.Now.Format(time.RFC3339Nano)
	w.Now = w.Now.Add(time.Minute)
	next := &eventsv1.ReferenceRecord{Producer: "operator", Body: &eventsv1.ReferenceRecord_Override{Override: &eventsv1.SymbolOverride{Source: "gate", Symbol: "ABC", CoinId: "ethereum", Time: w.Now.UnixNano()}}}
	w.append(schemas.TopicReferenceRaw, 0, "operator", w.Now.UnixNano(), next)
	w.flush()
	w.Said(next)
	before, after := w.reproduced("symbol-mapping/manual_override/gate/ABC", then, true), w.reproduced("symbol-mapping/manual_override/gate/ABC", "?asOf="+w.Now.Format(time.RFC3339Nano), true)
	if len(before.Inputs) != 1 || !strings.HasSuffix(before.Inputs[0].Note, "bitcoin") || len(after.Inputs) != 1 || !strings.HasSuffix(after.Inputs[0].Note, "ethereum") {
		t.Errorf("got %+v, and %+v after another override", before, after)
	}
	if n := w.reproduced("symbol-mapping/exchange_mapping/kraken/XBT", then, true); *n.Value != 95 {
		t.Errorf("got %+v, want 95", n)
	}
	// What the log has of the price that is compared is another, and an override that was served is not in it.
	row := proto.CloneOf(w.rows["ethereum"])
	row.Price /= 20
	row.Rank = 7
	w.append(schemas.TopicMarkets, 0, row.CoinId, row.Time, &eventsv1.MarketRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: row.Time}, Body: &eventsv1.MarketRecord_Market{Market: row}})
	unlogged := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Override{Override: &eventsv1.SymbolOverride{Source: "okx", Symbol: "ABC", CoinId: "bitcoin", Time: w.Now.UnixNano()}}}
	w.Said(unlogged)
	w.Minute(w.Now.Add(time.Minute))
	w.flush()
	w.reproduced("symbol/okx/ABC/confidence", "", false)
}
