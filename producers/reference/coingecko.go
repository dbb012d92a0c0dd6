package reference

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	coinGeckoPerPage = 250
	// coinGeckoTop are the pages of the largest coins, which are read often.
	coinGeckoTop = 4
	// coinGeckoPages bounds what a list that went wrong can make us ask for: ten times what there is.
	coinGeckoPages = 800

	coinGeckoCoins  = "/coins/"
	coinGeckoDetail = "?localization=false&tickers=false&market_data=false&community_data=false&developer_data=true&sparkline=false"
)

// coingecko reads CoinGecko's public interface, version 3, as on https://docs.coingecko.com/v3.0.1/reference: all
// coins by id, symbol and name, their markets in pages by market cap, and one page a coin. Its ids are our own.
//
// Of five requests a minute that it allows without a key, the largest coins take less than one, the others one, the
// sums a tenth; the rest reads the past of the largest, and then the coins one by one: 17,000 in four or five days.
func coingecko() poll.Source {
	return poll.Source{
		Slug: "coingecko", Name: "CoinGecko", Version: 1,
		URL:         "https://api.coingecko.com/api/v3",
		License:     "free plan, with the source named",
		Terms:       "https://www.coingecko.com/en/api_terms",
		Attribution: "Data provided by CoinGecko, https://www.coingecko.com",
		KeyHeader:   "x-cg-demo-api-key",
		Kinds:       []string{poll.KindCoin, poll.KindMarket, poll.KindGlobal},
		Feeds: []poll.Feed{
			{Name: "top",
				Evidence: producers.Recorded("coingecko_ruby/coins-markets-bitcoin.json"),
				Interval: 5 * time.Minute, Requests: poll.Fixed(coinGeckoMarkets(1, coinGeckoTop)...)},
			// Before rest, which counts by it how many pages there are.
			{Name: "list",
				Evidence: producers.Recorded("coingecko_ruby/coins-list.json.gz"),
				Interval: 24 * time.Hour, Requests: poll.Fixed(coinGeckoCoins + "list?include_platform=true")},
			{Name: "global",
				Evidence: producers.Recorded("coingecko_ruby/global.json"),
				Interval: 10 * time.Minute, Requests: poll.Fixed("/global")},
			{Name: "past",
				Evidence: producers.Recorded("coingecko_ruby/market-chart-90d.json"),
				Interval: 10 * time.Minute, Skips: true, Requests: poll.Gets(coinGeckoPasts)},
			{Name: "rest",
				Evidence: producers.Recorded("coingecko_ruby/coins-markets-bitcoin.json"),
				Interval: time.Hour, Requests: poll.Gets(coinGeckoRest)},
			{Name: "detail",
				Evidence: producers.Recorded("coingecko_ruby/coin-bitcoin.json.gz"),
				Interval: 10 * time.Minute, Skips: true, Requests: poll.Gets(func(k poll.Known) []string {
					return overdue(k, k.Ranked, 50, coinGeckoCoins, coinGeckoDetail)
				})},
		},
		Moves:    10 * time.Minute, // held at most five minutes
		Requests: 5, Per: time.Minute,
		MaxBody: 32 << 20, // the list has about 4 MB, a page of markets 250 kB
		Decode:  decodeCoinGecko,
	}
}

// coinGeckoMarkets are pages of coins by market cap. Without full precision prices above 1,000 come in whole dollars.
func coinGeckoMarkets(first, last int) []string {
	var paths []string
	for page := first; page <= last; page++ {
		paths = append(paths, coinGeckoCoins+"markets?vs_currency=usd&order=market_cap_desc&per_page="+strconv.Itoa(coinGeckoPerPage)+
			"&page="+strconv.Itoa(page)+"&price_change_percentage=1h,24h,7d,14d,30d,200d,1y&precision=full")
	}
	return paths
}

func coinGeckoRest(k poll.Known) []string {
	pages := (len(k.Ranked) + coinGeckoPerPage - 1) / coinGeckoPerPage
	return coinGeckoMarkets(coinGeckoTop+1, min(pages, coinGeckoPages))
}

// refreshAfter is when what a source reports about one coin is asked for again. It is less than what the log is read
// back at a start, so that a process knows what the one before has read.
const refreshAfter = 7 * 24 * time.Hour

// overdue are the paths of up to n coins, prefix + id + suffix: those never asked for, in the order of ids, then those
// asked for longest ago.
func overdue(k poll.Known, ids []string, n int, prefix, suffix string) []string {
	var paths, again []string
	for _, id := range ids {
		path := prefix + url.PathEscape(id) + suffix
		switch at, read := k.Read[path]; {
		case !read:
			paths = append(paths, path)
		case k.Now.Sub(at) >= refreshAfter:
			again = append(again, path)
		}
		if len(paths) == n {
			return paths
		}
	}
	slices.SortStableFunc(again, func(a, b string) int { return k.Read[a].Compare(k.Read[b]) })
	return append(paths, again[:min(len(again), n-len(paths))]...)
}

// decodeCoinGecko reads the list of coins, a page of markets, one coin or the sums.
func decodeCoinGecko(path string, body []byte, out *poll.Readings) error {
	body = bytes.TrimLeft(body, " \t\r\n")
	if bytes.HasPrefix(body, []byte("[")) {
		return decodeCoinGeckoRows(path, body, out)
	}
	keys := answer.Keys(body)
	asked := answer.Endpoint(path)
	switch name := asked[len(asked)-1]; {
	case keys == nil:
		return producers.Unreadable("no JSON: %.40q", body)
	case answer.Has(keys, "id", "symbol", "name") && (path == "" || len(asked) > 1 && asked[len(asked)-2] == "coins"):
		// A coin that cannot be read is refused as a row is: asking again would not help.
		answer.Refuse(out, coinGeckoCoin(body, out), "the coin %.80s", keys["id"])
		return nil
	case name == "market_chart" && len(asked) > 1:
		return coinGeckoPast(asked[len(asked)-2], body, out)
	case answer.Has(keys, "data") && (path == "" || name == "global"):
		return coinGeckoGlobal(keys["data"], out)
	case answer.ErrorText(keys) != "":
		return producers.Unreadable("the source answered %s", answer.ErrorText(keys))
	default:
		return producers.Unreadable("answer of unknown endpoint %q", path)
	}
}

func decodeCoinGeckoRows(path string, body []byte, out *poll.Readings) error {
	rows, err := answer.Rows(body)
	if err != nil {
		return err
	}
	asked := answer.Endpoint(path)
	name := asked[len(asked)-1]
	if path != "" && name != "list" && name != "markets" {
		return producers.Unreadable("answer of unknown endpoint %q", path)
	}
	if len(rows) == 0 {
		if name == "markets" && !firstPage(path) {
			return nil // there are fewer coins than were listed
		}
		return producers.Unreadable("no coins in it")
	}
	switch {
	case name != "list" && answer.SomeRow(rows, "id", "current_price"):
		answer.EachRow(rows, out, coinGeckoMarket)
	case name != "markets" && answer.SomeRow(rows, "id", "symbol", "name"):
		answer.EachRow(rows, out, coinGeckoListed)
	default:
		return producers.Unreadable("rows of no coins: %.80q", rows[0])
	}
	return nil
}

func firstPage(path string) bool {
	u, err := url.Parse(path)
	if err != nil {
		return true
	}
	page := u.Query().Get("page")
	return page == "" || page == "1"
}

func coinGeckoListed(row json.RawMessage, out *poll.Readings) error {
	var c struct {
		ID        string            `json:"id"`
		Symbol    string            `json:"symbol"`
		Name      string            `json:"name"`
		Platforms map[string]string `json:"platforms"`
	}
	var f answer.Fields
	if f.Parse(row, &c) {
		out.Coin(&eventsv1.Coin{SourceId: c.ID, Part: "list", Symbol: c.Symbol, Name: c.Name, Platforms: platforms(c.Platforms)})
	}
	return f.Err
}

// platforms are sorted: one answer has one spelling. A coin of a chain of its own is given as {"": ""}.
func platforms(of map[string]string) []*eventsv1.Platform {
	var list []*eventsv1.Platform
	for name, address := range of {
		if name != "" {
			list = append(list, &eventsv1.Platform{Name: name, Address: address})
		}
	}
	slices.SortFunc(list, func(a, b *eventsv1.Platform) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return list
}

func coinGeckoMarket(row json.RawMessage, out *poll.Readings) error {
	var m struct {
		ID                string        `json:"id"`
		Symbol            string        `json:"symbol"`
		Name              string        `json:"name"`
		Image             string        `json:"image"`
		Rank              producers.Num `json:"market_cap_rank"`
		Price             producers.Num `json:"current_price"`
		MarketCap         producers.Num `json:"market_cap"`
		FullyDiluted      producers.Num `json:"fully_diluted_valuation"`
		Volume            producers.Num `json:"total_volume"`
		High              producers.Num `json:"high_24h"`
		Low               producers.Num `json:"low_24h"`
		CirculatingSupply producers.Num `json:"circulating_supply"`
		TotalSupply       producers.Num `json:"total_supply"`
		MaxSupply         producers.Num `json:"max_supply"`
		Change            producers.Num `json:"price_change_percentage_24h"`
		Change1h          producers.Num `json:"price_change_percentage_1h_in_currency"`
		Change24h         producers.Num `json:"price_change_percentage_24h_in_currency"`
		Change7d          producers.Num `json:"price_change_percentage_7d_in_currency"`
		Change14d         producers.Num `json:"price_change_percentage_14d_in_currency"`
		Change30d         producers.Num `json:"price_change_percentage_30d_in_currency"`
		Change200d        producers.Num `json:"price_change_percentage_200d_in_currency"`
		Change1y          producers.Num `json:"price_change_percentage_1y_in_currency"`
		ATH               producers.Num `json:"ath"`
		ATHDate           string        `json:"ath_date"`
		ATL               producers.Num `json:"atl"`
		ATLDate           string        `json:"atl_date"`
		Updated           string        `json:"last_updated"`
	}
	var f answer.Fields
	if !f.Parse(row, &m) {
		return f.Err
	}
	if m.Change24h == "" {
		m.Change24h = m.Change
	}
	market := &eventsv1.CoinMarket{
		SourceId: m.ID, Symbol: m.Symbol, Name: m.Name, ImageUrl: m.Image, Rank: f.Count("market_cap_rank", m.Rank),
		Price: string(m.Price), MarketCap: string(m.MarketCap), FullyDilutedValuation: string(m.FullyDiluted),
		Volume24H: string(m.Volume), High24H: string(m.High), Low24H: string(m.Low),
		CirculatingSupply: string(m.CirculatingSupply), TotalSupply: string(m.TotalSupply), MaxSupply: string(m.MaxSupply),
		Change1H: string(m.Change1h), Change24H: string(m.Change24h), Change7D: string(m.Change7d), Change14D: string(m.Change14d),
		Change30D: string(m.Change30d), Change200D: string(m.Change200d), Change1Y: string(m.Change1y),
		Ath: string(m.ATH), AthTime: f.Time("ath_date", m.ATHDate), Atl: string(m.ATL), AtlTime: f.Time("atl_date", m.ATLDate),
		EventTime: f.Time("last_updated", m.Updated),
	}
	if f.Err == nil {
		out.CoinMarket(market)
	}
	return f.Err
}

func coinGeckoGlobal(data json.RawMessage, out *poll.Readings) error {
	var g struct {
		Coins     producers.Num            `json:"active_cryptocurrencies"`
		Markets   producers.Num            `json:"markets"`
		MarketCap map[string]producers.Num `json:"total_market_cap"`
		Volume    map[string]producers.Num `json:"total_volume"`
		Dominance map[string]producers.Num `json:"market_cap_percentage"`
		Updated   producers.Num            `json:"updated_at"`
	}
	var f answer.Fields
	if !f.Parse(data, &g) {
		return f.Err
	}
	if g.MarketCap["usd"] == "" {
		return producers.Unreadable("no total_market_cap in USD")
	}
	global := &eventsv1.GlobalFigures{
		TotalMarketCap: string(g.MarketCap["usd"]), TotalVolume24H: string(g.Volume["usd"]),
		BtcDominance: string(g.Dominance["btc"]), EthDominance: string(g.Dominance["eth"]),
		ActiveCoins: f.Count("active_cryptocurrencies", g.Coins), ActiveMarkets: f.Count("markets", g.Markets),
		EventTime: f.Known("updated_at", string(g.Updated), producers.Unix(g.Updated, time.Second)),
	}
	if f.Err == nil {
		out.Global(global)
	}
	return f.Err
}
