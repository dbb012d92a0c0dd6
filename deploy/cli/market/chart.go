package market

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

// Bounds of the plot in characters, without the scale on its left.
const (
	plotHeight = 14
	plotWidth  = 64
)

func chartCommand(rt *command.Runtime) *cobra.Command {
	var timeframe string
	cmd := &cobra.Command{
		Use:     "chart COIN",
		Short:   "Draw the history of a coin's price",
		Example: "  marketlog chart BTC --timeframe 7d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"timeframe": {timeframe}, "format": {"simple"}}
			return show(rt, cmd, "/api/v1/charts/"+url.PathEscape(args[0]), query, showChart)
		},
	}
	cmd.Flags().StringVar(&timeframe, "timeframe", "24h", "1h, 24h, 7d, 30d, 90d, 1y or max")
	config.AddInstanceFlags(cmd.Flags())
	command.AddDocumentsFlag(cmd.Flags())
	return cmd
}

func showChart(out *command.Output, answer api.ChartsChartBody) {
	d := answer.Data
	if len(d.Prices) == 0 {
		out.Text("%s has no price in the last %s", d.CoinID, d.Timeframe)
		return
	}
	out.Text("%s, %s in candles of %s: low %s, high %s, %s", d.CoinID, d.Timeframe, d.Resolution, amount(d.Stats.MinPrice), amount(d.Stats.MaxPrice), change(d.Stats.ChangePct))
	var prices []float64
	for _, p := range d.Prices {
		prices = append(prices, p[1])
	}
	scale := func(v float64) string { return fmt.Sprintf("%14s", amount(&v)) }
	options := []asciigraph.Option{asciigraph.Height(plotHeight), asciigraph.Width(plotWidth), asciigraph.YAxisValueFormatter(scale)}
	for line := range strings.Lines(asciigraph.Plot(prices, options...)) {
		out.Text("%s", strings.TrimRight(line, " \n"))
	}
	first, last := instant(d.Prices[0][0]), instant(d.Prices[len(d.Prices)-1][0])
	out.Text("%16s%s%*s", "", first, plotWidth-len(first), last)
}

// instant writes a time in Unix milliseconds to the minute, in UTC.
func instant(ms float64) string { return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02 15:04Z") }
