package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/schemas"
)

func symbolsCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "symbols", Short: "Resolve symbols to coins, and override the resolution"}
	var input operations.SymbolInput
	resolve := &cobra.Command{
		Use:   "resolve SYMBOL",
		Short: "Resolve a symbol to a coin, with confidence and candidates",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Symbol = args[0]
			if input.Price < 0 {
				return fmt.Errorf("--price %v must be above 0", input.Price)
			}
			_, err := command.Lines(rt, cmd, "symbols.resolve", input, showResolution)
			return err
		},
	}
	flags := resolve.Flags()
	flags.StringVar(&input.Source, "source", schemas.GeneralSource, "the venue or source where the symbol is used")
	flags.Float64Var(&input.Price, "price", 0, "price of one unit in USD")
	flags.StringVar(&input.Exchange, "exchange", "", "the venue, if --source is not one")
	flags.StringVar(&input.Platform, "platform", "", "chain the coin is issued on")
	flags.StringVar(&input.Contract, "contract", "", "contract address")
	flags.StringVar(&input.Name, "name", "", "name of the coin")

	override := &cobra.Command{Use: "override", Short: "Set, list and remove overrides of symbols"}
	set := &cobra.Command{
		Use:   "set SOURCE SYMBOL COIN",
		Short: "Map a symbol to a coin id, or to " + operations.NoCoin + "; SOURCE is a venue, a source or " + schemas.GeneralSource,
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Source, input.Symbol, input.Coin = args[0], args[1], args[2]
			return printOverrides(rt, cmd, "symbols.override.set", input)
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List the overrides in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printOverrides(rt, cmd, "symbols.override.list", input)
		},
	}
	var why string // separate from input.Reason: its default differs
	remove := &cobra.Command{
		Use:   "remove SOURCE SYMBOL",
		Short: "Remove an override",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Source, input.Symbol, input.Reason = args[0], args[1], why
			return printOverrides(rt, cmd, "symbols.override.remove", input)
		},
	}
	set.Flags().StringVar(&input.Reason, "reason", "", "evidence for the mapping; stored with the override")
	remove.Flags().StringVar(&why, "reason", "removed", "reason; stored with the removal")
	override.AddCommand(set, list, remove)
	for _, c := range []*cobra.Command{resolve, set, list, remove} {
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
	}
	cmd.AddCommand(resolve, override)
	return cmd
}

// printOverrides calls a command that replies with overrides.
func printOverrides(rt *command.Runtime, cmd *cobra.Command, name string, input operations.SymbolInput) error {
	lines, err := command.Lines(rt, cmd, name, input, func(out *command.Output, line operations.OverrideLine) error {
		out.Row(line.Source, line.Symbol, cmp.Or(line.Coin, "removed"), line.Since.Format(time.RFC3339), line.Reason)
		return nil
	})
	if format, _ := cmd.Flags().GetString("output"); err == nil && lines == 0 && format == "text" {
		fmt.Fprintln(rt.Stdout, "there are no overrides")
	}
	return err
}

func showResolution(out *command.Output, r symbols.Resolution) error {
	switch {
	case r.Fiat != "":
		out.Text("%s is the currency %s, not a coin", r.Input, r.Fiat)
	case !r.Resolved:
		out.Text("%s does not match any known coin", r.Input)
	default:
		units := ""
		if r.Units != 0 {
			units = strconv.FormatFloat(r.Units, 'f', -1, 64) + " of "
		}
		out.Text("%s is %s%s (%s), by %s, confidence %d", r.Input, units, r.CoinID, r.Name, r.Method, *r.Confidence)
	}
	for _, c := range r.Candidates {
		price := ""
		if c.Price != nil {
			price = strconv.FormatFloat(*c.Price, 'g', 6, 64) + " USD"
		}
		rank := ""
		if c.Rank > 0 {
			rank = "rank " + strconv.Itoa(c.Rank)
		}
		out.Row(fmt.Sprintf("  %d", c.Score), c.CoinID, c.Name, rank, price)
	}
	return nil
}
