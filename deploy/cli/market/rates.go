package market

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
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

// ratesAnswer is what is shown of GET /api/v1/rates/{symbol}.
type ratesAnswer struct {
	Data struct {
		Symbol string `json:"symbol"`
		CoinID string `json:"coinId"`
		Rates  []struct {
			Provider    string    `json:"provider"`
			Category    string    `json:"category"`
			Rate        float64   `json:"rate"`
			UnitSymbol  string    `json:"unitSymbol"`
			LastUpdated time.Time `json:"lastUpdated"`
			Metadata    struct {
				Chain  string   `json:"chain"`
				Name   string   `json:"name"`
				Term   string   `json:"term"`
				TVLUSD *float64 `json:"tvlUsd"`
			} `json:"metadata"`
		} `json:"rates"`
	} `json:"data"`
	Meta struct {
		Total     int  `json:"total"`
		Truncated bool `json:"truncated"`
	} `json:"meta"`
}

func showRates(out *command.Output, answer ratesAnswer) {
	if len(answer.Data.Rates) == 0 {
		out.Text("no provider pays or asks anything for %s in these categories", answer.Data.CoinID)
		return
	}
	out.Row("PROVIDER", "CATEGORY", "RATE", "POOL", "CHAIN", "TERM", "TVL USD", "TIME")
	for _, r := range answer.Data.Rates {
		out.Row(r.Provider, r.Category, fmt.Sprintf("%.2f %s", r.Rate, r.UnitSymbol), orDash(r.Metadata.Name), orDash(r.Metadata.Chain), orDash(r.Metadata.Term),
			short(r.Metadata.TVLUSD), clock(r.LastUpdated))
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
