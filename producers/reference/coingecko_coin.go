package reference

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/answer"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// coinGeckoPage is the page of one coin.
type coinGeckoPage struct {
	ID          string            `json:"id"`
	Symbol      string            `json:"symbol"`
	Name        string            `json:"name"`
	Rank        producers.Num     `json:"market_cap_rank"`
	Chain       json.RawMessage   `json:"asset_platform_id"`
	Platforms   map[string]string `json:"platforms"`
	Categories  []string          `json:"categories"`
	Description struct {
		English string `json:"en"`
	} `json:"description"`
	Image struct {
		Large string `json:"large"`
	} `json:"image"`
	Links     coinGeckoLinks       `json:"links"`
	Developer coinGeckoDeveloper   `json:"developer_data"`
	Genesis   string               `json:"genesis_date"`
	Updated   string               `json:"last_updated"`
	Market    *coinGeckoMarketData `json:"market_data"`
}

type coinGeckoLinks struct {
	Homepage      []string `json:"homepage"`
	Whitepaper    string   `json:"whitepaper"`
	Explorers     []string `json:"blockchain_site"`
	Forums        []string `json:"official_forum_url"`
	Chats         []string `json:"chat_url"`
	TwitterName   string   `json:"twitter_screen_name"`
	TelegramName  string   `json:"telegram_channel_identifier"`
	Subreddit     string   `json:"subreddit_url"`
	Announcements []string `json:"announcement_url"`
	Repositories  struct {
		GitHub    []string `json:"github"`
		Bitbucket []string `json:"bitbucket"`
	} `json:"repos_url"`
}

type coinGeckoDeveloper struct {
	Forks        producers.Num `json:"forks"`
	Stars        producers.Num `json:"stars"`
	Subscribers  producers.Num `json:"subscribers"`
	Issues       producers.Num `json:"total_issues"`
	IssuesClosed producers.Num `json:"closed_issues"`
	Merged       producers.Num `json:"pull_requests_merged"`
	Contributors producers.Num `json:"pull_request_contributors"`
	Lines        struct {
		Added   producers.Num `json:"additions"`
		Deleted producers.Num `json:"deletions"`
	} `json:"code_additions_deletions_4_weeks"`
	Commits producers.Num `json:"commit_count_4_weeks"`
}

// inUSD is a member with one value a currency.
type inUSD struct {
	USD producers.Num `json:"usd"`
}

type coinGeckoMarketData struct {
	Price             inUSD         `json:"current_price"`
	MarketCap         inUSD         `json:"market_cap"`
	FullyDiluted      inUSD         `json:"fully_diluted_valuation"`
	Volume            inUSD         `json:"total_volume"`
	High              inUSD         `json:"high_24h"`
	Low               inUSD         `json:"low_24h"`
	CirculatingSupply producers.Num `json:"circulating_supply"`
	TotalSupply       producers.Num `json:"total_supply"`
	MaxSupply         producers.Num `json:"max_supply"`
	Change1h          inUSD         `json:"price_change_percentage_1h_in_currency"`
	Change24h         inUSD         `json:"price_change_percentage_24h_in_currency"`
	Change7d          inUSD         `json:"price_change_percentage_7d_in_currency"`
	Change14d         inUSD         `json:"price_change_percentage_14d_in_currency"`
	Change30d         inUSD         `json:"price_change_percentage_30d_in_currency"`
	Change60d         inUSD         `json:"price_change_percentage_60d_in_currency"`
	Change200d        inUSD         `json:"price_change_percentage_200d_in_currency"`
	Change1y          inUSD         `json:"price_change_percentage_1y_in_currency"`
	ATH               inUSD         `json:"ath"`
	ATHDate           inUSD         `json:"ath_date"`
	ATL               inUSD         `json:"atl"`
	ATLDate           inUSD         `json:"atl_date"`
	Updated           string        `json:"last_updated"`
}

// coinGeckoCoin reads the page of a coin; one that was requested with its market holds that too.
func coinGeckoCoin(body []byte, out *poll.Readings) error {
	var p coinGeckoPage
	var f answer.Fields
	if !f.Parse(body, &p) {
		return f.Err
	}
	coin := &eventsv1.Coin{
		SourceId: p.ID, Part: "detail", Symbol: p.Symbol, Name: p.Name, Rank: f.Count("market_cap_rank", p.Rank),
		Platforms: platforms(p.Platforms), Description: p.Description.English, ImageUrl: p.Image.Large,
		Links: p.Links.list(), Developer: p.Developer.list(&f), CreatedAt: p.Genesis, EventTime: f.Time("last_updated", p.Updated),
	}
	for _, category := range p.Categories {
		if category != "" {
			coin.Categories = append(coin.Categories, category)
		}
	}
	switch string(p.Chain) {
	case "":
	case "null":
		coin.Kind = "coin"
	default:
		coin.Kind = "token"
	}
	market := p.market(coin, &f)
	if f.Err != nil {
		return f.Err
	}
	out.Coin(coin)
	if market != nil {
		out.CoinMarket(market)
	}
	return nil
}

func (p *coinGeckoPage) market(coin *eventsv1.Coin, f *answer.Fields) *eventsv1.CoinMarket {
	m := p.Market
	if m == nil {
		return nil
	}
	return &eventsv1.CoinMarket{
		SourceId: coin.SourceId, Symbol: coin.Symbol, Name: coin.Name, Rank: coin.Rank, ImageUrl: coin.ImageUrl,
		Price: string(m.Price.USD), MarketCap: string(m.MarketCap.USD), FullyDilutedValuation: string(m.FullyDiluted.USD),
		Volume24H: string(m.Volume.USD), High24H: string(m.High.USD), Low24H: string(m.Low.USD),
		CirculatingSupply: string(m.CirculatingSupply), TotalSupply: string(m.TotalSupply), MaxSupply: string(m.MaxSupply),
		Change1H: string(m.Change1h.USD), Change24H: string(m.Change24h.USD), Change7D: string(m.Change7d.USD),
		Change14D: string(m.Change14d.USD), Change30D: string(m.Change30d.USD), Change60D: string(m.Change60d.USD),
		Change200D: string(m.Change200d.USD), Change1Y: string(m.Change1y.USD),
		Ath: string(m.ATH.USD), AthTime: f.Time("ath_date", string(m.ATHDate.USD)),
		Atl: string(m.ATL.USD), AtlTime: f.Time("atl_date", string(m.ATLDate.USD)),
		EventTime: f.Time("last_updated of the market", m.Updated),
	}
}

func (l *coinGeckoLinks) list() []*eventsv1.Link {
	var all answer.Links
	all.Add("homepage", l.Homepage...)
	all.Add("whitepaper", l.Whitepaper)
	all.Add("explorer", l.Explorers...)
	all.Add("repository", l.Repositories.GitHub...)
	all.Add("repository", l.Repositories.Bitbucket...)
	all.Add("forum", l.Forums...)
	all.Add("forum", l.Announcements...)
	all.Add("chat", l.Chats...)
	if l.TwitterName != "" {
		all.Add("twitter", "https://twitter.com/"+url.PathEscape(l.TwitterName))
	}
	if strings.Contains(l.Subreddit, "/r/") { // a coin without one has the address of the whole site
		all.Add("reddit", l.Subreddit)
	}
	if l.TelegramName != "" {
		all.Add("telegram", "https://t.me/"+url.PathEscape(l.TelegramName))
	}
	return all
}

func (d *coinGeckoDeveloper) list(f *answer.Fields) []*eventsv1.Statistic {
	var all []*eventsv1.Statistic
	for _, s := range []struct {
		name  string
		value producers.Num
	}{
		{"forks", d.Forks},
		{"stars", d.Stars},
		{"subscribers", d.Subscribers},
		{"issues", d.Issues},
		{"issues_closed", d.IssuesClosed},
		{"pull_requests_merged", d.Merged},
		{"contributors", d.Contributors},
		{"lines_added_4_weeks", d.Lines.Added},
		{"lines_deleted_4_weeks", d.Lines.Deleted},
		{"commits_4_weeks", d.Commits},
	} {
		all = f.Statistic(all, s.name, s.value)
	}
	return all
}
