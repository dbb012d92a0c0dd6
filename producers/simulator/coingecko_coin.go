package simulator

import (
	"cmp"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// coin tells everything about one coin, but for what the client asks to be left out.
func (g *gecko) coin(w http.ResponseWriter, r *http.Request) {
	c := g.catalogue.byID[r.PathValue("id")]
	if c == nil || !c.listed(g.Now().UnixNano()) {
		g.refuse(w, http.StatusNotFound, "coin not found")
		return
	}
	b := g.teller.board(g.Now())
	at := b.at[c.place]
	platforms, detailed := map[string]string{}, map[string]any{}
	for _, p := range c.platforms {
		platforms[p.chain] = p.address
		detailed[p.chain] = map[string]any{"decimal_place": 18, "contract_address": p.address}
	}
	var home *string
	said := map[string]any{}
	if c.native {
		platforms[""], detailed[""] = "", map[string]any{"decimal_place": nil, "contract_address": ""}
	} else {
		home = &c.platforms[0].chain
		said["contract_address"] = c.platforms[0].address
	}
	for key, value := range map[string]any{
		"id": c.id, "symbol": lower(c.symbol), "name": c.name, "web_slug": c.id, "asset_platform_id": home,
		"platforms": platforms, "detail_platforms": detailed, "block_time_in_minutes": 0, "hashing_algorithm": c.algorithm(),
		"categories": c.categoriesAt(at), "preview_listing": false, "public_notice": nil, "additional_notices": []string{},
		"description": map[string]string{"en": c.description()}, "links": c.links(), "country_origin": "", "genesis_date": c.genesis(),
		"image":                           map[string]string{"thumb": g.image(c, "thumb"), "small": g.image(c, "small"), "large": g.image(c, "large")},
		"sentiment_votes_up_percentage":   digits(50+45*c.seed.unit(floorDiv(at, day)), 4),
		"sentiment_votes_down_percentage": digits(50-45*c.seed.unit(floorDiv(at, day)), 4),
		"watchlist_portfolio_users":       int(2e6 / math.Pow(float64(c.rank), 0.9)),
		"market_cap_rank":                 rankOrNull(b.rank[c.place]), "status_updates": []string{}, "last_updated": moment(at),
	} {
		said[key] = value
	}
	if flag(r, "localization", true) {
		local := map[string]string{}
		for _, language := range strings.Fields("en de es fr it pl ro hu nl pt sv vi tr ru ja zh zh-tw ko ar th id") {
			local[language] = c.name
		}
		said["localization"] = local
	}
	if flag(r, "market_data", true) {
		said["market_data"] = g.marketData(b, c, flag(r, "sparkline", false))
	}
	if flag(r, "community_data", true) {
		said["community_data"] = map[string]any{
			"facebook_likes": nil, "reddit_average_posts_48h": digits(8*c.seed.unit(floorDiv(at, day)), 4),
			"reddit_average_comments_48h": digits(200*c.seed.unit(^floorDiv(at, day)), 6), "reddit_subscribers": int(3e6 / float64(c.rank)),
			"reddit_accounts_active_48h": int(9e3 / float64(c.rank)), "telegram_channel_user_count": nil,
		}
	}
	if flag(r, "developer_data", true) {
		said["developer_data"] = c.developer(at)
	}
	respond(w, http.StatusOK, said)
}

// rankOrNull is null for a coin without one.
func rankOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (n *coin) algorithm() *string {
	if !n.native {
		return nil
	}
	name := [...]string{"SHA-256", "Scrypt", "Ethash", "Proof of Stake", "Equihash"}[n.seed.at(50)%5]
	return &name
}

// categoriesAt are its categories and, at some times, one that comes and goes.
func (n *coin) categoriesAt(t int64) []string {
	list := n.categories
	if season := floorDiv(t, 45*day); n.seed.at(season)%8 == 0 {
		list = append(list[:len(list):len(list)], [...]string{"Made in USA", "GMCI 30 Index", "Airdropped Tokens", "Portfolio of the Season"}[n.seed.at(season+1)%4])
	}
	return list
}

func (n *coin) description() string {
	what := map[schemas.Kind]string{
		schemas.KindCoin: "the native coin of a chain of its own", schemas.KindToken: "a token", schemas.KindWrapped: "a token that stands for another coin",
		schemas.KindStaked: "a token that stands for staked coins", schemas.KindStablecoin: "a stablecoin that aims at one " + n.peg,
	}[n.kind]
	return n.name + " (" + n.symbol + ") is " + what + ". Its numbers are simulated."
}

// genesis is null for most: when the chain began, not the market.
func (n *coin) genesis() *string {
	if !n.native || n.seed.at(51)%3 > 0 && n.rank > 2 {
		return nil
	}
	text := date(n.born - int64(n.seed.unit(52)*900)*day)
	return &text
}

// site is a page of the coin that does not exist.
func (n *coin) site(of string) string { return "https://" + of + ".example.invalid/" + n.id }

func (n *coin) links() map[string]any {
	source := []string{n.site("code")}
	if n.seed.at(53)%5 == 0 {
		source = []string{}
	}
	return map[string]any{
		"homepage": []string{n.site("www"), "", ""}, "whitepaper": n.site("papers"),
		"blockchain_site":    []string{n.site("explorer"), n.site("blocks"), "", "", ""},
		"official_forum_url": []string{n.site("forum"), "", ""}, "chat_url": []string{n.site("chat"), "", ""},
		"announcement_url": []string{"", ""}, "snapshot_url": nil, "twitter_screen_name": strings.ReplaceAll(n.id, "-", ""), "facebook_username": "",
		"bitcointalk_thread_identifier": nil, "telegram_channel_identifier": strings.ReplaceAll(n.id, "-", "_"),
		"subreddit_url": n.site("boards"), "repos_url": map[string][]string{"github": source, "bitbucket": {}},
	}
}

// developer are the statistics of its repository, which change from day to day.
func (n *coin) developer(t int64) map[string]any {
	today, size := floorDiv(t, day), 60_000/math.Pow(float64(n.rank), 0.7)*(0.3+n.seed.unit(54))
	series, commits := make([]int, 28), 0
	for i := range series {
		series[i] = int(size / 3_000 * 2 * n.seed.unit(today-27+int64(i)))
		commits += series[i]
	}
	grown := size * (1 + 0.0004*float64(today-supplyFrom/day))
	return map[string]any{
		"forks": int(grown / 2), "stars": int(grown), "subscribers": int(size / 15), "total_issues": int(grown / 8), "closed_issues": int(grown / 9),
		"pull_requests_merged": int(grown / 6), "pull_request_contributors": int(size / 70),
		"code_additions_deletions_4_weeks": map[string]int{"additions": commits * 23, "deletions": -commits * 9},
		"commit_count_4_weeks":             commits, "last_4_weeks_commit_activity_series": series,
	}
}

// marketData tells what the list of markets tells, in every currency.
func (g *gecko) marketData(b *marketSnapshot, c *coin, sparkline bool) map[string]any {
	at := b.at[c.place]
	each := func(usd float64) map[string]nullable {
		said := map[string]nullable{}
		if math.IsNaN(usd) || b.prices[c.place] == 0 {
			return said
		}
		said["usd"] = quoted(usd)
		for _, q := range g.catalogue.quotes {
			said[q.code] = quoted(usd / q.price(at))
		}
		return said
	}
	same := func(value any) map[string]any {
		said := map[string]any{"usd": value}
		for _, q := range g.catalogue.quotes {
			said[q.code] = value
		}
		return said
	}
	f := &figures{}
	if b.prices[c.place] > 0 {
		f = b.of(c)
	} else {
		f.total = c.totalAt(at)
		for i := range f.change {
			f.change[i] = math.NaN()
		}
	}
	price, capital := b.prices[c.place], b.caps[c.place]
	m := g.market(b, c, quoted, nil)
	said := map[string]any{
		"current_price": each(price), "total_value_locked": nil, "mcap_to_tvl_ratio": nil, "fdv_to_tvl_ratio": nil, "roi": nil,
		"ath": each(f.ath), "ath_change_percentage": same(m.FromHighest), "ath_date": same(m.HighestDate),
		"atl": each(f.atl), "atl_change_percentage": same(m.FromLowest), "atl_date": same(m.LowestDate),
		"market_cap": each(capital), "market_cap_rank": m.Rank, "fully_diluted_valuation": each(price * cmp.Or(f.max, f.total)),
		"market_cap_fdv_ratio": digits(f.circulating/max(cmp.Or(f.max, f.total), 1), 2), "total_volume": each(f.volume), "high_24h": each(f.high), "low_24h": each(f.low),
		"price_change_24h": m.Change, "price_change_percentage_24h": m.ChangePercent,
		"market_cap_change_24h": m.CapChange, "market_cap_change_percentage_24h": m.CapChangePercent,
		"price_change_24h_in_currency": each(price - f.before), "market_cap_change_24h_in_currency": each(capital - f.capBefore),
		"market_cap_change_percentage_24h_in_currency": same(m.CapChangePercent),
		"total_supply": nullable(f.total), "max_supply": m.Max, "circulating_supply": nullable(f.circulating), "last_updated": moment(at),
	}
	for name, span := range map[string]int{"1h": span1h, "24h": span24h, "7d": span7d, "14d": span14d, "30d": span30d, "60d": span60d, "200d": span200d, "1y": span1y} {
		if span > span24h { // zero where the coin is younger
			said["price_change_percentage_"+name] = known(f.change[span])
		}
		said["price_change_percentage_"+name+"_in_currency"] = same(known(f.change[span]))
	}
	if sparkline {
		said["sparkline_7d"] = g.week(b, c)
	}
	return said
}

// known is 0 for what is not, as this answer has it.
func known(x float64) nullable {
	if math.IsNaN(x) {
		return 0
	}
	return percent(x)
}

// age is how old the coin is.
func (n *coin) age(t int64) time.Duration { return time.Duration(t - n.born) }
