package sources

import (
	"cmp"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// coin serves everything about one coin, but for what the client asks to be left out.
func (g *gecko) coin(w http.ResponseWriter, r *http.Request) {
	c := g.catalogue.ByID[r.PathValue("id")]
	if c == nil || !c.Listed(g.Now().UnixNano()) {
		g.refuse(w, http.StatusNotFound, "coin not found")
		return
	}
	b := g.reporter.Snapshot(g.Now())
	at := b.At[c.Place]
	platforms, detailed := map[string]string{}, map[string]any{}
	for _, p := range c.Platforms {
		platforms[p.Chain] = p.Address
		detailed[p.Chain] = map[string]any{"decimal_place": 18, "contract_address": p.Address}
	}
	var home *string
	body := map[string]any{}
	if c.Native {
		platforms[""], detailed[""] = "", map[string]any{"decimal_place": nil, "contract_address": ""}
	} else {
		home = &c.Platforms[0].Chain
		body["contract_address"] = c.Platforms[0].Address
	}
	for key, value := range map[string]any{
		"id": c.ID, "symbol": strings.ToLower(c.Symbol), "name": c.Name, "web_slug": c.ID, "asset_platform_id": home,
		"platforms": platforms, "detail_platforms": detailed, "block_time_in_minutes": 0, "hashing_algorithm": algorithmOf(c),
		"categories": categoriesAt(c, at), "preview_listing": false, "public_notice": nil, "additional_notices": []string{},
		"description": map[string]string{"en": descriptionOf(c)}, "links": linksOf(c), "country_origin": "", "genesis_date": genesisOf(c),
		"image":                           map[string]string{"thumb": g.image(c, "thumb"), "small": g.image(c, "small"), "large": g.image(c, "large")},
		"sentiment_votes_up_percentage":   digits(50+45*c.Seed.Unit(market.FloorDiv(at, market.Day)), 4),
		"sentiment_votes_down_percentage": digits(50-45*c.Seed.Unit(market.FloorDiv(at, market.Day)), 4),
		"watchlist_portfolio_users":       int(2e6 / math.Pow(float64(c.Rank), 0.9)),
		"market_cap_rank":                 rankOrNull(b.Rank[c.Place]), "status_updates": []string{}, "last_updated": moment(at),
	} {
		body[key] = value
	}
	if flag(r, "localization", true) {
		local := map[string]string{}
		for _, language := range strings.Fields("en de es fr it pl ro hu nl pt sv vi tr ru ja zh zh-tw ko ar th id") {
			local[language] = c.Name
		}
		body["localization"] = local
	}
	if flag(r, "market_data", true) {
		body["market_data"] = g.marketData(b, c, flag(r, "sparkline", false))
	}
	if flag(r, "community_data", true) {
		body["community_data"] = map[string]any{
			"facebook_likes": nil, "reddit_average_posts_48h": digits(8*c.Seed.Unit(market.FloorDiv(at, market.Day)), 4),
			"reddit_average_comments_48h": digits(200*c.Seed.Unit(^market.FloorDiv(at, market.Day)), 6), "reddit_subscribers": int(3e6 / float64(c.Rank)),
			"reddit_accounts_active_48h": int(9e3 / float64(c.Rank)), "telegram_channel_user_count": nil,
		}
	}
	if flag(r, "developer_data", true) {
		body["developer_data"] = developerOf(c, at)
	}
	provider.Respond(w, http.StatusOK, body)
}

// rankOrNull is null for a coin without one.
func rankOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func algorithmOf(n *market.Coin) *string {
	if !n.Native {
		return nil
	}
	name := [...]string{"SHA-256", "Scrypt", "Ethash", "Proof of Stake", "Equihash"}[n.Seed.At(50)%5]
	return &name
}

// categoriesAt are its categories and, at some times, one that comes and goes.
func categoriesAt(n *market.Coin, t int64) []string {
	list := n.Categories
	if season := market.FloorDiv(t, 45*market.Day); n.Seed.At(season)%8 == 0 {
		list = append(list[:len(list):len(list)], [...]string{"Made in USA", "GMCI 30 Index", "Airdropped Tokens", "Portfolio of the Season"}[n.Seed.At(season+1)%4])
	}
	return list
}

func descriptionOf(n *market.Coin) string {
	what := map[schemas.Kind]string{
		schemas.KindCoin: "the native coin of a chain of its own", schemas.KindToken: "a token", schemas.KindWrapped: "a token that represents another coin",
		schemas.KindStaked: "a token that represents staked coins", schemas.KindStablecoin: "a stablecoin that aims at one " + n.Peg,
	}[n.Kind]
	return n.Name + " (" + n.Symbol + ") is " + what + ". Its numbers are simulated."
}

// genesisOf is null for most: when the chain began, not the market.
func genesisOf(n *market.Coin) *string {
	if !n.Native || n.Seed.At(51)%3 > 0 && n.Rank > 2 {
		return nil
	}
	text := provider.SpellTime(n.Born-int64(n.Seed.Unit(52)*900)*market.Day, time.DateOnly)
	return &text
}

// siteOf is a page of the coin that does not exist.
func siteOf(n *market.Coin, of string) string { return "https://" + of + ".example.invalid/" + n.ID }

func linksOf(n *market.Coin) map[string]any {
	source := []string{siteOf(n, "code")}
	if n.Seed.At(53)%5 == 0 {
		source = []string{}
	}
	return map[string]any{
		"homepage": []string{siteOf(n, "www"), "", ""}, "whitepaper": siteOf(n, "papers"),
		"blockchain_site":    []string{siteOf(n, "explorer"), siteOf(n, "blocks"), "", "", ""},
		"official_forum_url": []string{siteOf(n, "forum"), "", ""}, "chat_url": []string{siteOf(n, "chat"), "", ""},
		"announcement_url": []string{"", ""}, "snapshot_url": nil, "twitter_screen_name": strings.ReplaceAll(n.ID, "-", ""), "facebook_username": "",
		"bitcointalk_thread_identifier": nil, "telegram_channel_identifier": strings.ReplaceAll(n.ID, "-", "_"),
		"subreddit_url": siteOf(n, "boards"), "repos_url": map[string][]string{"github": source, "bitbucket": {}},
	}
}

// developerOf are the statistics of its repository, which change from day to day.
func developerOf(n *market.Coin, t int64) map[string]any {
	today, size := market.FloorDiv(t, market.Day), 60_000/math.Pow(float64(n.Rank), 0.7)*(0.3+n.Seed.Unit(54))
	series, commits := make([]int, 28), 0
	for i := range series {
		series[i] = int(size / 3_000 * 2 * n.Seed.Unit(today-27+int64(i)))
		commits += series[i]
	}
	grown := size * (1 + 0.0004*float64(today-market.SupplyFrom/market.Day))
	return map[string]any{
		"forks": int(grown / 2), "stars": int(grown), "subscribers": int(size / 15), "total_issues": int(grown / 8), "closed_issues": int(grown / 9),
		"pull_requests_merged": int(grown / 6), "pull_request_contributors": int(size / 70),
		"code_additions_deletions_4_weeks": map[string]int{"additions": commits * 23, "deletions": -commits * 9},
		"commit_count_4_weeks":             commits, "last_4_weeks_commit_activity_series": series,
	}
}

// marketData serves what the list of markets does, in every currency.
func (g *gecko) marketData(b *market.Snapshot, c *market.Coin, sparkline bool) map[string]any {
	at := b.At[c.Place]
	each := func(usd float64) map[string]provider.Nullable {
		fields := map[string]provider.Nullable{}
		if math.IsNaN(usd) || b.Prices[c.Place] == 0 {
			return fields
		}
		fields["usd"] = quoted(usd)
		for _, q := range g.catalogue.Quotes {
			fields[q.Code] = quoted(usd / q.Price(at))
		}
		return fields
	}
	same := func(value any) map[string]any {
		fields := map[string]any{"usd": value}
		for _, q := range g.catalogue.Quotes {
			fields[q.Code] = value
		}
		return fields
	}
	f := &market.Figures{}
	if b.Prices[c.Place] > 0 {
		f = b.FiguresOf(c)
	} else {
		f.Total = c.TotalAt(at)
		for i := range f.Change {
			f.Change[i] = math.NaN()
		}
	}
	price, capital := b.Prices[c.Place], b.Caps[c.Place]
	m := g.market(b, c, quoted, nil)
	fields := map[string]any{
		"current_price": each(price), "total_value_locked": nil, "mcap_to_tvl_ratio": nil, "fdv_to_tvl_ratio": nil, "roi": nil,
		"ath": each(f.ATH), "ath_change_percentage": same(m.FromHighest), "ath_date": same(m.HighestDate),
		"atl": each(f.ATL), "atl_change_percentage": same(m.FromLowest), "atl_date": same(m.LowestDate),
		"market_cap": each(capital), "market_cap_rank": m.Rank, "fully_diluted_valuation": each(price * cmp.Or(f.Max, f.Total)),
		"market_cap_fdv_ratio": digits(f.Circulating/max(cmp.Or(f.Max, f.Total), 1), 2), "total_volume": each(f.Volume), "high_24h": each(f.High), "low_24h": each(f.Low),
		"price_change_24h": m.Change, "price_change_percentage_24h": m.ChangePercent,
		"market_cap_change_24h": m.CapChange, "market_cap_change_percentage_24h": m.CapChangePercent,
		"price_change_24h_in_currency": each(price - f.Before), "market_cap_change_24h_in_currency": each(capital - f.CapBefore),
		"market_cap_change_percentage_24h_in_currency": same(m.CapChangePercent),
		"total_supply": provider.Nullable(f.Total), "max_supply": m.Max, "circulating_supply": provider.Nullable(f.Circulating), "last_updated": moment(at),
	}
	for name, span := range map[string]int{"1h": market.Span1h, "24h": market.Span24h, "7d": market.Span7d, "14d": market.Span14d, "30d": market.Span30d, "60d": market.Span60d, "200d": market.Span200d, "1y": market.Span1y} {
		if span > market.Span24h { // zero where the coin is younger
			fields["price_change_percentage_"+name] = known(f.Change[span])
		}
		fields["price_change_percentage_"+name+"_in_currency"] = same(known(f.Change[span]))
	}
	if sparkline {
		fields["sparkline_7d"] = g.week(b, c)
	}
	return fields
}

// known is 0 for what is not, as this answer has it.
func known(x float64) provider.Nullable {
	if math.IsNaN(x) {
		return 0
	}
	return percent(x)
}

// ageOf is how old the coin is.
func ageOf(n *market.Coin, t int64) time.Duration { return time.Duration(t - n.Born) }
