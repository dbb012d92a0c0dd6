package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// marketView is the page of the whole market. The script gets the API's answers as they are.
type marketView struct {
	SummaryBody json.RawMessage `json:"summary"`
	DefiBody    json.RawMessage `json:"defi,omitempty"`
	LendingBody json.RawMessage `json:"lending,omitempty"`
	StakingBody json.RawMessage `json:"staking,omitempty"`

	Summary marketSummary `json:"-"`
	Defi    *defiSummary  `json:"-"`
}

// What the page itself reads of the API's answers.
type (
	marketSummary struct {
		TotalMarketCapUSD, Volume24hUSD float64
		BTCDominance, ETHDominance      float64
		Metrics                         struct {
			MarketCapChange24h, VolumeChange24h *float64
			ActiveCoins, ActiveMarkets          int
			StablecoinMarketCap                 float64
			StablecoinDominance                 float64
		}
		Movers    struct{ Data []moversSegment }
		Sentiment struct {
			Data []struct {
				RankRange                   string
				Positive, Negative, Neutral int
				Classification              string
				MedianChange24h             *float64
			}
		}
		FearGreed *struct {
			Value                               int
			Classification, Source, Attribution string
		}
	}
	moversSegment struct {
		RankRange       string
		Gainers, Losers []mover
	}
	mover struct {
		ID, Symbol, Name string
		Price            float64
		PriceChange24h   *float64
	}
	defiSummary struct {
		TotalTVL, LendingTVL, StakingTVL, BorrowingTVL, CefiTVL float64
		LendingAPY, StakingAPY, BorrowAPY                       *float64
		ProtocolCount                                           int
	}
)

// sendMarket answers /market.
func (u *Unit) sendMarket(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "Market")
	if !ok {
		return err
	}
	v := &marketView{}
	var answer struct{ Data marketSummary }
	if v.SummaryBody, err = u.ask(r, "getMarketSummary", nil, &answer); err != nil {
		return u.fail(r.ctx, err)
	}
	v.Summary = answer.Data
	var defi struct{ Data *defiSummary }
	var lists struct{}
	for _, part := range []struct {
		operation string
		into      *json.RawMessage
		shape     any
	}{{"getDefiOverview", &v.DefiBody, &defi}, {"getDefiLending", &v.LendingBody, &lists}, {"getDefiStaking", &v.StakingBody, &lists}} {
		if *part.into, err = u.ask(r, part.operation, nil, part.shape); optional(err) != nil {
			return err
		}
	}
	v.Defi = defi.Data
	if !wantsPage(r.ctx) {
		return u.sendMarketText(c, v)
	}
	return u.show(r.ctx, http.StatusOK, view{Page: pageMarket, Title: "Market", About: "The whole market: totals, what moved most, sentiment, fear and greed, DeFi.", Data: v, Market: v})
}

// textMovers are those of each side in a terminal.
const textMovers = 5

func (u *Unit) sendMarketText(c *fiber.Ctx, v *marketView) error {
	w := width(c)
	var b strings.Builder
	u.heading(&b, "the whole market", w)
	row := func(name, text string) { fmt.Fprintln(&b, plain("  "+column(name, 16, false)+text, w)) }
	s := &v.Summary
	row("market cap", formatAmount(&s.TotalMarketCapUSD)+"   24 h "+formatPercent(s.Metrics.MarketCapChange24h))
	row("volume 24 h", formatAmount(&s.Volume24hUSD)+"   of "+strconv.Itoa(s.Metrics.ActiveCoins)+" coins on "+strconv.Itoa(s.Metrics.ActiveMarkets)+" markets")
	row("dominance", fmt.Sprintf("BTC %.1f%%   ETH %.1f%%   stablecoins %.1f%%", s.BTCDominance, s.ETHDominance, s.Metrics.StablecoinDominance))
	if f := s.FearGreed; f != nil {
		row("fear & greed", fmt.Sprintf("%d, %s (%s)", f.Value, f.Classification, f.Source))
	}
	for _, t := range s.Sentiment.Data {
		row("ranks "+t.RankRange, fmt.Sprintf("%d rose, %d fell: %s   median %s", t.Positive, t.Negative, t.Classification, formatPercent(t.MedianChange24h)))
	}
	if d := v.Defi; d != nil {
		row("DeFi", fmt.Sprintf("%s locked in %d protocols   lent at %s, staked at %s", formatAmount(&d.TotalTVL), d.ProtocolCount, formatRate(d.LendingAPY), formatRate(d.StakingAPY)))
	}
	for _, segment := range s.Movers.Data {
		fmt.Fprintf(&b, "\n  most moved in 24 h, ranks %s\n", plain(segment.RankRange, 12))
		for i := range textMovers {
			text := "  "
			for _, side := range [][]mover{segment.Gainers, segment.Losers} {
				if i < len(side) {
					m := side[i]
					text += column(plain(strings.ToUpper(m.Symbol), 9), 10, false) + column(formatPrice(m.Price), 14, true) + column(formatPercent(m.PriceChange24h), 10, true)
				} else {
					text += strings.Repeat(" ", 34)
				}
				text += "   "
			}
			if text = strings.TrimRight(plain(text, w), " "); text != "" {
				fmt.Fprintln(&b, text)
			}
		}
	}
	return u.sendText(c.Context(), http.StatusOK, b.String())
}
