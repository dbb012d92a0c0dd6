package market

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

func priceCommand(rt *command.Runtime) *cobra.Command {
	var vs string
	var top int
	cmd := &cobra.Command{
		Use:     "price SYMBOL... | price --top N",
		Aliases: []string{"prices"},
		Short:   "Show current prices",
		Example: "  marketlog price BTC ETH\n  marketlog price BTC --vs eur\n  marketlog price --top 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case top < 0 || top > 250:
				return errors.New("--top counts 1 to 250 coins")
			case top > 0 && (len(args) > 0 || cmd.Flags().Changed("vs")):
				return errors.New("--top shows the largest coins in USD: leave out the symbols and --vs")
			case top > 0:
				return showTop(rt, cmd, top)
			case len(args) == 0:
				return errors.New("name a coin, as in `marketlog price BTC`, or ask for the largest with --top 20")
			}
			return showPrices(rt, cmd, args, vs)
		},
	}
	cmd.Flags().StringVar(&vs, "vs", "usd", "quote currency: a fiat currency, btc or eth")
	cmd.Flags().IntVar(&top, "top", 0, "the `N` largest coins by market capitalization")
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

func showPrices(rt *command.Runtime, cmd *cobra.Command, names []string, vs string) error {
	query := url.Values{"symbols": {strings.Join(names, ",")}, "vs": {vs}}
	return show(rt, cmd, "/api/v1/prices", query, func(out *command.Output, answer api.PricesListBody) {
		if len(answer.Prices) > 0 {
			out.Row("COIN", "ID", "PRICE", strings.ToUpper(vs), "TIME", "NOTE")
		}
		for _, p := range answer.Prices {
			var notes []string
			if p.IsStale {
				notes = append(notes, strings.TrimSpace("stale "+p.Reason))
			}
			if p.PriceSource != "median" {
				notes = append(notes, "from "+p.PriceSource)
			}
			if len(p.Alternatives) > 0 {
				var ids []string
				for _, other := range p.Alternatives {
					ids = append(ids, other.CoinID)
				}
				notes = append(notes, "also "+strings.Join(ids, ", "))
			}
			out.Row(p.Symbol, p.CoinID, amount(p.Price), strings.ToUpper(p.Vs), clock(p.UpdatedAt), strings.Join(notes, "; "))
		}
		for _, missing := range answer.Meta.Missing {
			why := "no coin has this symbol or id"
			if missing.Reason != "unknown" {
				why = "no price is known"
			}
			out.Row(missing.Symbol, "", unknown, "", "", why)
		}
		if answer.Meta.Reason != "" {
			out.Text("there is no exchange rate to %s now", vs)
		}
	})
}

func showTop(rt *command.Runtime, cmd *cobra.Command, top int) error {
	return show(rt, cmd, "/api/v1/coins/markets", url.Values{"per_page": {strconv.Itoa(top)}}, func(out *command.Output, answer api.CoinsTableBody) {
		if len(answer.Data) == 0 {
			out.Text("no coin has a price yet: %s", answer.Meta.Reason)
			return
		}
		out.Row("#", "COIN", "NAME", "PRICE USD", "1 H", "24 H", "7 D", "MARKET CAP", "VOLUME 24 H")
		for _, c := range answer.Data {
			rank := unknown
			if c.MarketCapRank != nil && *c.MarketCapRank > 0 {
				rank = strconv.FormatInt(*c.MarketCapRank, 10)
			}
			out.Row(rank, strings.ToUpper(c.Symbol), c.Name, amount(&c.CurrentPrice), change(c.PriceChangePercentage1h), change(c.PriceChangePercentage24h),
				change(c.PriceChangePercentage7d), short(c.MarketCap), short(c.TotalVolume))
		}
	})
}
