package explain_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// lent is a pool of a provider on a chain, with what lies in it or is owed to it, USD; empty where that is not known.
func (w *fixture) lent(provider, category, coin, chain, apr, amount string) {
	w.offered(&eventsv1.Rate{Source: provider, Project: provider, Category: category, Pool: chain + "/" + coin, Symbol: coin, CoinId: coin, Chain: chain, Raw: apr, RawUnit: "apr_fraction",
		Compounding: "daily", TvlUsd: amount, Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()})
}

// described is what a source puts a coin in.
func (w *fixture) described(source, id, part string, categories ...string) {
	reported := &eventsv1.Coin{Source: source, SourceId: id, Part: part, Symbol: "X", Name: id, Categories: categories, IngestTime: w.Now.UnixNano()}
	rec := w.reported(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: reported}})
	w.Said(rec)
	if next := schemas.NewDefiCoin(id, w.defiCoins[id], reported); next != nil {
		w.defiCoins[id] = next
	} else {
		delete(w.defiCoins, id)
	}
}

// reported is what a source reports.
func (w *fixture) reported(rec *eventsv1.ReferenceRecord) *eventsv1.ReferenceRecord {
	rec.Producer, rec.Epoch = "sources", 1
	w.append(schemas.TopicReferenceRaw, 0, "source", w.Now.UnixNano(), rec)
	w.flush()
	return rec
}

// defiOfRates and defiOfCaps are the numbers of DeFi that are made of rates, and of market caps.
var defiOfRates, defiOfCaps = []string{
	"defi/lendingApy", "defi/stakingApy", "defi/borrowApy", "defi/averageSupplyApy", "defi/medianSupplyApy", "defi/averageStakingApy", "defi/averageBorrowApy",
	"defi/lending/aave/supplyApy", "defi/lending/aave/borrowApy", "defi/lending/compound/supplyApy", "defi/staking/lido/apy", "defi/borrowing/aave/borrowApy",
	"defi/lending/assets/bitcoin/tvl", "defi/lending/assets/bitcoin/supplyApy", "defi/lending/assets/tether/borrowApy",
	"defi/staking/chains/Ethereum/apy", "defi/borrowing/assets/tether/debt", "defi/borrowing/assets/tether/borrowApy",
}, []string{"defi/defiMarketCap", "defi/defiMarketDominance", "defi/staking/chains/Ethereum/stakingRatio"}

var defiOfChains = []string{"defi/staking/chains/Ethereum/tvl", "defi/staking/chains/Ethereum/share", "defi/staking/chains/Arbitrum Nova/tvl"}

// newDefiFixture is a fixture with protocols, rates, coins and chains of random numbers, of which a minute of DeFi was folded.
func newDefiFixture(t *testing.T) (w *fixture, folded time.Time) {
	random := streamtest.Rand(t)
	w = newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = start.Add(5 * time.Second)
	text := func(most float64) string { return fmt.Sprint(most * (0.1 + random.Float64())) }
	for coin, name := range map[string]string{"bitcoin": "BTC", "ethereum": "ETH", "tether": "USDT", "euro-coin": "EURC"} {
		w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: coin, Symbol: name, Name: coin, Price: text(100), CirculatingSupply: text(1e6), IngestTime: w.Now.UnixNano()})
	}
	w.close(start.Add(time.Minute).UnixNano())
	w.Now = start.Add(61 * time.Second)
	protocol := func(slug, category string, chains ...*eventsv1.ChainAmount) {
		w.locked(&eventsv1.Protocol{Source: schemas.DefiTVLSource, Slug: slug, Name: slug, Category: category, Tvl: text(1e9), IngestTime: w.Now.UnixNano(), Chains: chains})
	}
	on := func(chain string) *eventsv1.ChainAmount {
		return &eventsv1.ChainAmount{Chain: chain, Amount: text(1e8)}
	}
	protocol("aave", "Lending", on("Ethereum"), on("borrowed"))
	protocol("compound", "Lending", on("Ethereum"), on("borrowed"))
	protocol("lido", "Liquid Staking", on("Ethereum"), on("Arbitrum Nova"))
	protocol("pool", "Staking Pool", on("Ethereum"))
	w.reported(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_ChainTvl{ChainTvl: &eventsv1.ChainTvl{Source: schemas.DefiTVLSource, Chain: "Ethereum", CoinId: "ethereum"}}})
	w.chainCoins["Ethereum"] = "ethereum"
	// Of compound no amount is known: its rates count once each.
	for _, coin := range []string{"bitcoin", "ethereum", "tether"} {
		w.lent("aave", "lending", coin, "Ethereum", text(0.1), text(1e7))
		w.lent("aave", "borrowing", coin, "Ethereum", text(0.1), text(1e6))
		w.lent("compound", "lending", coin, "Ethereum", text(0.1), "")
		w.lent("lido", "staking", coin, "Ethereum", text(0.1), text(1e7))
	}
	w.lent("aave", "lending", "bitcoin", "Base", text(0.1), text(1e7))
	w.lent("aave", "lending", "bitcoin", "", text(0.1), text(1e9)) // on no chain: it does not count
	w.described("coingecko", "bitcoin", "detail", "Layer 1")
	w.described("coingecko", "ethereum", "list", "DeFi")
	w.described("coingecko", "tether", "list", "DeFi")
	w.described("coingecko", "ethereum", "detail", "Decentralized Finance (DeFi)", "Layer 1") // within the same minute
	folded = start.Add(3 * time.Minute)
	w.defi(folded.UnixNano())
	w.close(folded.UnixNano())
	w.Now = folded.Add(5 * time.Second)
	return w, folded
}

func inputsOf(n *explain.Node) string {
	var names []string
	for _, in := range n.Inputs {
		names = append(names, in.Number)
	}
	return strings.Join(names, " ")
}

// TestYieldsAndCapsOfDefiAreReproduced explains each number of DeFi that is made of rates or market caps, now and as of a past minute. Each
// must be reproduced; when the log has something else of a rate or a coin, what follows from it must not be.
func TestYieldsAndCapsOfDefiAreReproduced(t *testing.T) {
	w, folded := newDefiFixture(t)
	for _, number := range slices.Concat(defiOfRates, defiOfCaps, defiOfChains, []string{"defi/categorizedMarketCap"}) {
		n := w.reproduced(strings.ReplaceAll(number, " ", "%20"), "", true)
		if n.Value == nil || len(n.Inputs) == 0 || n.Number != number {
			t.Errorf("%s is explained as %s, with value %v and inputs %q", number, n.Number, n.Value, inputsOf(n))
		}
		for _, in := range n.Inputs {
			if len(in.Records) == 0 {
				t.Errorf("%s: the input %s names no record", number, in.Number)
			}
		}
	}
	n := w.reproduced("defi/lending/aave/supplyApy", "", true)
	if len(n.Inputs) != 4 || len(n.Inputs[0].Inputs) != 1 || !strings.HasPrefix(n.Inputs[0].Inputs[0].Number, "weight/aave/lending/") {
		t.Errorf("the rates of aave are %s, want the four on chains with their weights", inputsOf(n))
	}
	if n = w.reproduced("defi/lending/compound/supplyApy", "", true); len(n.Inputs) != 3 || len(n.Inputs[0].Inputs) != 0 {
		t.Errorf("the rates of compound are %s, want the three of it without weights", inputsOf(n))
	}
	if n = w.reproduced("defi/defiMarketCap", "", true); len(n.Inputs) != 2 || strings.Contains(inputsOf(n), "bitcoin") {
		t.Errorf("the coins of DeFi are %s, want ethereum and tether", inputsOf(n))
	}
	if n = w.reproduced("defi/defiMarketDominance", "", true); n.Inputs[len(n.Inputs)-1].Number != "global/totalMarketCap" {
		t.Errorf("the share is of %s, want the total market cap last", inputsOf(n))
	}
	if n = w.ask("defi/lendingApy", "?depth=2"); n.Inputs[0].Reproduced == nil || !*n.Inputs[0].Reproduced {
		t.Errorf("the first rate is not reproduced: %s %s", n.Inputs[0].Number, n.Inputs[0].Note)
	}
	if n = w.ask("defi/staking/chains/Ethereum/stakingRatio", "?depth=2"); n.Inputs[len(n.Inputs)-1].Reproduced == nil {
		t.Errorf("the market cap of the chain's coin is not computed again: %s", inputsOf(n))
	}

	// A later summary does not change what was served of the one before.
	before := map[string]float64{}
	for _, number := range slices.Concat(defiOfRates, defiOfCaps) {
		before[number] = *w.ask(number, "").Value
	}
	w.Now = folded.Add(90 * time.Second)
	w.lent("aave", "lending", "bitcoin", "Ethereum", "0.5", "123456789")
	w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: "ethereum", Symbol: "ETH", Name: "ethereum", Price: "5000", CirculatingSupply: "777", IngestTime: w.Now.UnixNano()})
	later := folded.Add(3 * time.Minute)
	w.close(later.UnixNano())
	w.defi(later.UnixNano())
	w.Now = later.Add(5 * time.Second)
	for _, number := range slices.Concat(defiOfRates, defiOfCaps) {
		if n := w.reproduced(number, "?asOf="+folded.Add(4*time.Second).Format(time.RFC3339), true); *n.Value != before[number] {
			t.Errorf("as of %s %s is explained as %v, and it was %v", folded, number, *n.Value, before[number])
		}
	}
	for _, number := range []string{"defi/lendingApy", "defi/defiMarketCap", "defi/categorizedMarketCap"} {
		if n := w.reproduced(number, "", true); *n.Value == before[number] {
			t.Errorf("%s did not change", number)
		}
	}
	n = w.ask("defi/categorizedMarketCap", "?asOf="+folded.Add(4*time.Second).Format(time.RFC3339))
	if n.Reproduced != nil || n.Note == "" || n.Value == nil || len(n.Inputs) != 3 {
		t.Errorf("as of then: %+v, want a value of three coins that there is nothing to compare with", n)
	}
	w.contradicted(later)
}

// As of an instant at which a minute was in the log, and not served yet, DeFi is that of the minute before, as it is answered.
func TestDefiAsOfAnInstantIsOfTheMinuteThatWasServed(t *testing.T) {
	w, folded := newDefiFixture(t)
	w.remember()
	values := map[time.Time]float64{}
	for i := range 3 {
		end := folded.Add(time.Duration(1+i) * time.Minute)
		w.Now = end.Add(-20 * time.Second)
		w.lent("aave", "lending", "bitcoin", "Ethereum", fmt.Sprint(0.01*float64(i+1)), "123456789")
		w.close(end.UnixNano())
		w.Now = end.Add(4 * time.Second)
		w.defi(end.UnixNano())
		values[end] = *w.ask("defi/lendingApy", "").Value
	}
	w.Now = w.Now.Add(5 * time.Minute)
	w.record()
	second, third := folded.Add(2*time.Minute), folded.Add(3*time.Minute)
	for at, end := range map[time.Time]time.Time{third.Add(3 * time.Second): second, third.Add(4 * time.Second): third, third.Add(-time.Second): second} {
		for _, number := range []string{"defi/lendingApy", "defi/totalTvl", "defi/lending/aave/supplyApy"} {
			n := w.reproduced(number, "?asOf="+at.Format(time.RFC3339), true)
			if number == "defi/lendingApy" && *n.Value != values[end] || n.Time != end.Format("2006-01-02T15:04:05.000Z") {
				t.Errorf("%s as of %s: got %v of %s, want %v of %s", number, at, *n.Value, n.Time, values[end], end)
			}
		}
	}
	if values[second] == values[third] {
		t.Error("nothing moved")
	}
}

// contradicted writes to the log of rates and markets what the fold of DeFi has not read.
func (w *fixture) contradicted(at time.Time) {
	w.T.Helper()
	for _, e := range w.defiRates { // all of them: a median need not move with some
		other := proto.CloneOf(e)
		if other.Apy *= 1.5; other.TvlUsd != nil {
			*other.TvlUsd *= 1.25
		}
		w.append(schemas.TopicRates, 0, "rate", at.UnixNano(), &eventsv1.RateRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: at.UnixNano()}, Body: &eventsv1.RateRecord_Entry{Entry: other}})
	}
	row := proto.CloneOf(w.rows["ethereum"])
	*row.MarketCap *= 1.5
	w.append(schemas.TopicMarkets, 0, "ethereum", at.UnixNano(), &eventsv1.MarketRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: at.UnixNano()}, Body: &eventsv1.MarketRecord_Market{Market: row}})
	w.flush()
	for _, number := range slices.Concat(defiOfRates, defiOfCaps, []string{"defi/categorizedMarketCap"}) {
		if n := w.reproduced(number, "", false); n.Recomputed == nil {
			w.T.Errorf("%s: what it is recomputed as is not stated", number)
		}
	}
	for _, number := range []string{"defi/staking/chains/Ethereum/tvl", "defi/lendingTvl"} {
		w.reproduced(number, "", true)
	}
}

// Names of numbers of DeFi that there are not lead to those that there are.
func TestUnknownNumbersOfDefiAreSuggested(t *testing.T) {
	w, _ := newDefiFixture(t)
	for number, near := range map[string]string{
		"defi/lendingAPI": "defi/lendingApy", "defi/lending/assets/bitcoinn/tvl": "defi/lending/assets/bitcoin/tvl", "defi/lending/assets/bitcoin/tvls": "defi/lending/assets/bitcoin/tvl",
		"defi/staking/chain/Ethereum/tvl": "defi/staking/chains/Ethereum/tvl", "defi/stakings/chains/Ethereum/tvl": "defi/staking/chains/Ethereum/tvl", "defi/staking/lido/supplyApy": "",
	} {
		response, err := http.Get(w.Base() + "/api/v1/explain/" + number)
		w.Must(err)
		content, err := io.ReadAll(response.Body)
		response.Body.Close()
		w.Must(err)
		if response.StatusCode != http.StatusNotFound || near != "" && !strings.Contains(string(content), "did you mean "+near+"?") {
			t.Errorf("%s is answered with %d %.300s, want 404 with %s", number, response.StatusCode, content, near)
		}
	}
}
