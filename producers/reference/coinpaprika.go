package reference

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// coinPaprikaDetails are the coins whose pages are read, the largest: two weeks of the budget would not do for
	// all, a week does for these.
	coinPaprikaDetails = 2500
	coinPaprikaCoins   = "/coins/"
)

// coinpaprika reads CoinPaprika's public interface, version 1, as on https://api.coinpaprika.com: all markets in one
// answer, all coins in another, and one page a coin. Its ids are lower(symbol)-name.
//
// It allows 20,000 requests a month without a key. Six an hour for the markets, two for the sums and sixteen for the
// coins are 24; the budget is 25 an hour, which are 18,600 in the longest month.
func coinpaprika() poll.Source {
	return poll.Source{
		Slug: "coinpaprika", Name: "CoinPaprika", Version: 1,
		URL:         "https://api.coinpaprika.com/v1",
		License:     "free plan for non-commercial use, with the source named",
		Terms:       "https://coinpaprika.com/api-terms-of-use/",
		Attribution: "Data provided by CoinPaprika, https://coinpaprika.com",
		Off:         "its free plan is for non-commercial use only; switch it on where yours is, or where you have a plan",
		Kinds:       []string{poll.KindCoin, poll.KindMarket, poll.KindGlobal},
		Feeds: []poll.Feed{
			{Name: "tickers",
				Evidence: producers.Documented("https://api.coinpaprika.com").And(coinPaprikaClients("tickers", "TickerWithQuotesInfo")...),
				Interval: 10 * time.Minute, Requests: poll.Fixed("/tickers?quotes=USD")},
			{Name: "coins",
				Evidence: producers.Documented("https://api.coinpaprika.com").And(coinPaprikaClients("coins", "CoinInfo")...),
				Interval: 24 * time.Hour, Requests: poll.Fixed("/coins")},
			{Name: "global",
				Evidence: producers.Documented("https://api.coinpaprika.com").And(coinPaprikaClients("global", "Global")...),
				Interval: 30 * time.Minute, Requests: poll.Fixed("/global")},
			{Name: "detail",
				Evidence: producers.Documented("https://api.coinpaprika.com").And(coinPaprikaClients("coins", "ExtendedCoinInfo")...).But(
					"logo, contracts and links_extended, which these clients do not read"),
				Interval: 30 * time.Minute, Skips: true, Requests: poll.Gets(func(k poll.Known) []string {
					return overdue(k, k.Ranked[:min(len(k.Ranked), coinPaprikaDetails)], 8, coinPaprikaCoins, "")
				})},
		},
		Moves:    30 * time.Minute, // markets are recalculated every few minutes
		Requests: 25, Per: time.Hour,
		MaxBody: 64 << 20, // all coins, also those that are gone, are about 10 MB
		Decode:  decodeCoinPaprika,
	}
}

// decodeCoinPaprika reads the markets, the market of one coin, the list of coins, one coin or the sums.
func decodeCoinPaprika(path string, body []byte, out *poll.Readings) error {
	body = bytes.TrimLeft(body, " \t\r\n")
	asked := answer.Endpoint(path)
	name := asked[len(asked)-1]
	if bytes.HasPrefix(body, []byte("[")) {
		rows, err := answer.Rows(body)
		switch {
		case err != nil:
			return err
		case len(rows) == 0:
			return producers.Unreadable("no coins in it")
		case (path == "" || name == "tickers") && answer.SomeRow(rows, "id", "quotes"):
			answer.EachRow(rows, out, coinPaprikaTicker)
		case (path == "" || name == "coins") && answer.SomeRow(rows, "id", "symbol", "is_active"):
			answer.EachRow(rows, out, coinPaprikaListed)
		default:
			return producers.Unreadable("rows of no coins: %.80q", rows[0])
		}
		return nil
	}
	of := func(folder string) bool { return path == "" || len(asked) > 1 && asked[len(asked)-2] == folder }
	switch keys := answer.Keys(body); {
	case keys == nil:
		return producers.Unreadable("no JSON: %.40q", body)
	case of("tickers") && answer.Has(keys, "id", "quotes"):
		answer.Refuse(out, coinPaprikaTicker(body, out), "the market of %.80s", keys["id"])
		return nil
	case of("coins") && answer.Has(keys, "id", "symbol", "name"):
		// A coin that cannot be read is refused as a row is: asking again would not help.
		answer.Refuse(out, coinPaprikaCoin(body, out), "the coin %.80s", keys["id"])
		return nil
	case (path == "" || name == "global") && answer.Has(keys, "market_cap_usd"):
		return coinPaprikaGlobal(body, out)
	case answer.ErrorText(keys) != "":
		return producers.Unreadable("the source answered %s", answer.ErrorText(keys))
	default:
		return producers.Unreadable("answer of unknown endpoint %q", path)
	}
}

// unlessZero drops a zero that means "not known": CoinPaprika has no null for a price, a cap or a supply.
func unlessZero(n producers.Num) string {
	for i := range len(n) {
		if n[i] != '0' && n[i] != '.' {
			return string(n)
		}
	}
	return ""
}

func coinPaprikaTicker(row json.RawMessage, out *poll.Readings) error {
	var t struct {
		ID                string        `json:"id"`
		Symbol            string        `json:"symbol"`
		Name              string        `json:"name"`
		Rank              producers.Num `json:"rank"`
		CirculatingSupply producers.Num `json:"circulating_supply"`
		TotalSupply       producers.Num `json:"total_supply"`
		MaxSupply         producers.Num `json:"max_supply"`
		Updated           string        `json:"last_updated"`
		Quotes            map[string]struct {
			Price     producers.Num `json:"price"`
			Volume    producers.Num `json:"volume_24h"`
			MarketCap producers.Num `json:"market_cap"`
			Change1h  producers.Num `json:"percent_change_1h"`
			Change24h producers.Num `json:"percent_change_24h"`
			Change7d  producers.Num `json:"percent_change_7d"`
			Change30d producers.Num `json:"percent_change_30d"`
			Change1y  producers.Num `json:"percent_change_1y"`
			ATH       producers.Num `json:"ath_price"`
			ATHDate   string        `json:"ath_date"`
		} `json:"quotes"`
	}
	var f answer.Fields
	if !f.Parse(row, &t) {
		return f.Err
	}
	quote, ok := t.Quotes["USD"]
	if !ok {
		return producers.Unreadable("no quote in USD")
	}
	market := &eventsv1.CoinMarket{
		SourceId: t.ID, Symbol: t.Symbol, Name: t.Name, Rank: f.Count("rank", t.Rank),
		Price: unlessZero(quote.Price), MarketCap: unlessZero(quote.MarketCap), Volume24H: string(quote.Volume),
		CirculatingSupply: unlessZero(t.CirculatingSupply), TotalSupply: unlessZero(t.TotalSupply), MaxSupply: unlessZero(t.MaxSupply),
		Change1H: string(quote.Change1h), Change24H: string(quote.Change24h), Change7D: string(quote.Change7d),
		Change30D: string(quote.Change30d), Change1Y: string(quote.Change1y),
		Ath: unlessZero(quote.ATH), AthTime: f.Time("ath_date", quote.ATHDate), EventTime: f.Time("last_updated", t.Updated),
	}
	if f.Err == nil {
		out.CoinMarket(market)
	}
	return f.Err
}

// coinPaprikaBasics are what the list and the page of a coin have in common.
type coinPaprikaBasics struct {
	ID     string        `json:"id"`
	Symbol string        `json:"symbol"`
	Name   string        `json:"name"`
	Rank   producers.Num `json:"rank"`
	Active *bool         `json:"is_active"`
	Type   string        `json:"type"`
}

func (c *coinPaprikaBasics) coin(part string, f *answer.Fields) *eventsv1.Coin {
	return &eventsv1.Coin{
		SourceId: c.ID, Part: part, Symbol: c.Symbol, Name: c.Name, Rank: f.Count("rank", c.Rank), Kind: c.Type,
		Inactive: c.Active != nil && !*c.Active,
	}
}

func coinPaprikaListed(row json.RawMessage, out *poll.Readings) error {
	var c coinPaprikaBasics
	var f answer.Fields
	if !f.Parse(row, &c) {
		return f.Err
	}
	coin := c.coin("list", &f)
	if f.Err == nil {
		out.Coin(coin)
	}
	return f.Err
}

func coinPaprikaCoin(body []byte, out *poll.Readings) error {
	var p struct {
		coinPaprikaBasics
		Logo        string `json:"logo"`
		Description string `json:"description"`
		Started     string `json:"started_at"`
		Tags        []struct {
			Name string `json:"name"`
		} `json:"tags"`
		Contracts []struct {
			Platform string `json:"platform"`
			Address  string `json:"contract"`
		} `json:"contracts"`
		Whitepaper struct {
			Link string `json:"link"`
		} `json:"whitepaper"`
		Links []coinPaprikaLink `json:"links_extended"`
	}
	var f answer.Fields
	if !f.Parse(body, &p) {
		return f.Err
	}
	f.Time("started_at", p.Started) // it is kept as received
	coin := p.coin("detail", &f)
	coin.ImageUrl, coin.Description, coin.CreatedAt = p.Logo, p.Description, p.Started
	for _, tag := range p.Tags {
		if tag.Name != "" {
			coin.Categories = append(coin.Categories, tag.Name)
		}
	}
	for _, contract := range p.Contracts {
		if contract.Platform != "" {
			coin.Platforms = append(coin.Platforms, &eventsv1.Platform{Name: contract.Platform, Address: contract.Address})
		}
	}
	var all answer.Links
	all.Add("whitepaper", p.Whitepaper.Link)
	for _, link := range p.Links {
		if kind := coinPaprikaLinkKinds[link.Type]; kind != "" {
			all.Add(kind, link.URL)
		}
		// The first repository is the coin's own.
		if link.Type == "source_code" && len(coin.Developer) == 0 {
			coin.Developer = f.Statistic(coin.Developer, "stars", link.Stats.Stars)
			coin.Developer = f.Statistic(coin.Developer, "contributors", link.Stats.Contributors)
		}
	}
	coin.Links = all
	if f.Err == nil {
		out.Coin(coin)
	}
	return f.Err
}

type coinPaprikaLink struct {
	URL   string `json:"url"`
	Type  string `json:"type"`
	Stats struct {
		Stars        producers.Num `json:"stars"`
		Contributors producers.Num `json:"contributors"`
	} `json:"stats"`
}

// coinPaprikaLinkKinds are our words for its types of links; others, such as videos and wallets, are not read.
var coinPaprikaLinkKinds = map[string]string{
	"website": "homepage", "explorer": "explorer", "source_code": "repository", "chat": "chat", "discord": "chat", "slack": "chat",
	"message_board": "forum", "announcement": "forum", "twitter": "twitter", "reddit": "reddit", "telegram": "telegram",
}

func coinPaprikaGlobal(body []byte, out *poll.Readings) error {
	var g struct {
		MarketCap producers.Num `json:"market_cap_usd"`
		Volume    producers.Num `json:"volume_24h_usd"`
		Bitcoin   producers.Num `json:"bitcoin_dominance_percentage"`
		Coins     producers.Num `json:"cryptocurrencies_number"`
		Updated   producers.Num `json:"last_updated"`
	}
	var f answer.Fields
	if !f.Parse(body, &g) {
		return f.Err
	}
	global := &eventsv1.GlobalFigures{
		TotalMarketCap: string(g.MarketCap), TotalVolume24H: string(g.Volume), BtcDominance: string(g.Bitcoin),
		ActiveCoins: f.Count("cryptocurrencies_number", g.Coins),
		EventTime:   f.Known("last_updated", string(g.Updated), producers.Unix(g.Updated, time.Second)),
	}
	if f.Err == nil {
		out.Global(global)
	}
	return f.Err
}
