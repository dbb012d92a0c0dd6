package market

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

func explainCommand(rt *command.Runtime) *cobra.Command {
	var at string
	var depth int
	cmd := &cobra.Command{
		Use:   "explain SYMBOL | NUMBER",
		Short: "Show what a price, or any other number, was computed from, now or at a past instant",
		Long: "Show the inputs of a price, which of them were rejected and why, and whether computing it again gives the same number. " +
			"A name with a slash is a number, as answers name them in x-explain: it is shown as a tree of what it was made of, down to records of the log.",
		Example: "  marketlog explain BTC\n  marketlog explain BTC --at 2026-01-31T12:00:00Z\n  marketlog explain market/bitcoin/marketCap --depth 3\n  marketlog explain global/totalMarketCap",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			if at != "" {
				query.Set("asOf", at)
			}
			if strings.Contains(args[0], "/") || args[0] == fearGreed {
				query.Set("depth", strconv.Itoa(depth))
				return show(rt, cmd, "/api/v1/explain/"+url.PathEscape(args[0]), query, showTree)
			}
			return show(rt, cmd, "/api/v1/prices/"+url.PathEscape(args[0])+"/explain", query, showExplanation)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "`TIME`: the number that was served then, as in 2026-01-31T12:00:00Z")
	cmd.Flags().IntVar(&depth, "depth", 2, "`LEVELS` of inputs of a number, 1 to 4")
	config.AddInstanceFlags(cmd.Flags())
	command.AddDocumentsFlag(cmd.Flags())
	return cmd
}

// otherMarket is why an input does not count whose provider is represented by another of its markets.
const otherMarket = "other_market"

func showExplanation(out *command.Output, answer api.PricesExplainBody) {
	x := answer.Data
	out.Text("%s (%s) was %s USD at %s", x.Symbol, x.CoinID, amount(&x.Price), clock(x.Timestamp))
	if !x.Published.IsZero() {
		out.Text("published %s", clock(x.Published))
	}
	out.Text("%s of %d venues, version %d of the rule; %d rejected; score %.2f", x.Method, len(x.Accepted), x.MethodVersion, len(x.Rejected), x.Score)
	switch {
	case x.Reproduced:
		out.Text("computed again from these inputs: the same number")
	case x.Recomputed != nil:
		out.Text("computed again from these inputs: %s, which is NOT the same", amount(x.Recomputed))
	default:
		out.Text("it could not be computed again from these inputs")
	}
	out.Text("")
	slices.SortStableFunc(x.Inputs, func(a, b api.PricesInput) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Provider, b.Provider))
	})
	out.Row("VENUE", "MARKET", "PRICE USD", "DEVIATION", "QUOTE", "AT RATE", "AGE", "RESULT", "IN THE LOG")
	others := 0
	for _, in := range x.Inputs {
		if in.Reason == otherMarket {
			others++
			continue
		}
		result := "accepted"
		if !in.Accepted {
			result = "rejected: " + in.Reason
		}
		deviation, rate := unknown, unknown
		if in.DeviationPct != nil {
			deviation = fmt.Sprintf("%+.1f bps", *in.DeviationPct*100)
		}
		if in.RateUsed != nil && *in.RateUsed != 0 {
			rate = fmt.Sprintf("%.6g", *in.RateUsed)
		}
		out.Row(in.Provider, in.VenueSymbol, amount(in.PriceUSD), deviation, in.Quote, rate, time.Duration(in.AgeMS)*time.Millisecond, result,
			fmt.Sprintf("%s/%d@%d", in.Offset.Topic, in.Offset.Partition, in.Offset.Offset))
	}
	if others > 0 {
		out.Text("%d further markets do not count, since another market of their venue does (-o json has them)", others)
	}
}

// rank sorts accepted inputs before rejected ones, and those that were not asked last.
func rank(in api.PricesInput) int {
	switch {
	case in.Accepted:
		return 0
	case in.Reason != otherMarket:
		return 1
	}
	return 2
}
