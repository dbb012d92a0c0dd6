package market

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

func ratesCommand(rt *command.Runtime) *cobra.Command {
	var category string
	var limit int
	cmd := &cobra.Command{
		Use:     "rates SYMBOL",
		Short:   "Show what providers pay or ask for a coin",
		Example: "  marketlog rates USDC --category lending",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"category": {category}, "limit": {strconv.Itoa(limit)}}
			return show(rt, cmd, "/api/v1/rates/"+url.PathEscape(args[0]), query, showRates)
		},
	}
	cmd.Flags().StringVar(&category, "category", "lending,staking,borrowing", "lending, staking, borrowing or price, separated by commas")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many rows")
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

func showRates(out *command.Output, answer api.RatesSymbolBody) {
	if len(answer.Data.Rates) == 0 {
		out.Text("no provider pays or asks anything for %s in these categories", answer.Data.CoinID)
		return
	}
	out.Row("PROVIDER", "CATEGORY", "RATE", "POOL", "CHAIN", "TERM", "TVL USD", "TIME")
	for _, r := range answer.Data.Rates {
		pool := r.Metadata
		if pool == nil {
			pool = &api.RatesMetadata{}
		}
		out.Row(r.Provider, r.Category, fmt.Sprintf("%.2f %s", r.Rate, r.UnitSymbol), orDash(pool.Name), orDash(pool.Chain), orDash(pool.Term),
			short(pool.TvlUSD), clock(r.LastUpdated))
	}
	if answer.Meta.Truncated {
		out.Text("%d of %d rows; --limit shows more", len(answer.Data.Rates), answer.Meta.Total)
	}
}

// orDash is the text, or the sign for none.
func orDash(text string) string {
	if text == "" {
		return unknown
	}
	return text
}
