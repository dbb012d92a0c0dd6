package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/schemas"
)

func (a *App) symbolsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "symbols", Short: "Find out which coins symbols mean, and say so where it is not clear"}
	var input operations.SymbolInput
	resolve := &cobra.Command{
		Use:   "resolve SYMBOL",
		Short: "Say which coin a symbol means, how sure that is and what else was in question",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Symbol = args[0]
			if input.Price < 0 {
				return fmt.Errorf("--price %v must be above 0", input.Price)
			}
			return a.symbolsCall(cmd, "symbols.resolve", input, a.printResolution)
		},
	}
	flags := resolve.Flags()
	flags.StringVar(&input.Source, "source", schemas.GeneralSource, "the venue or source that calls it so")
	flags.Float64Var(&input.Price, "price", 0, "price of one unit in USD")
	flags.StringVar(&input.Exchange, "exchange", "", "the venue, where the source is none")
	flags.StringVar(&input.Platform, "platform", "", "chain that it is issued on")
	flags.StringVar(&input.Contract, "contract", "", "address of its contract")
	flags.StringVar(&input.Name, "name", "", "name of the coin")

	override := &cobra.Command{Use: "override", Short: "Say what a symbol means at a venue or source, from now on"}
	set := &cobra.Command{
		Use:   "set SOURCE SYMBOL COIN",
		Short: "Let a symbol mean a coin id, or " + operations.NoCoin + "; SOURCE is a venue, a source or " + schemas.GeneralSource,
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Source, input.Symbol, input.Coin = args[0], args[1], args[2]
			return a.symbolsCall(cmd, "symbols.override.set", input, a.printOverride)
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List the overrides in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.symbolsCall(cmd, "symbols.override.list", input, a.printOverride)
		},
	}
	var why string // a flag of its own: its default is another
	remove := &cobra.Command{
		Use:   "remove SOURCE SYMBOL",
		Short: "Take an override back",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Source, input.Symbol, input.Reason = args[0], args[1], why
			return a.symbolsCall(cmd, "symbols.override.remove", input, a.printOverride)
		},
	}
	set.Flags().StringVar(&input.Reason, "reason", "", "how you know; kept with it")
	remove.Flags().StringVar(&why, "reason", "taken back", "why; kept with it")
	override.AddCommand(set, list, remove)
	for _, c := range []*cobra.Command{resolve, set, list, remove} {
		config.AddInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
	}
	cmd.AddCommand(resolve, override)
	return cmd
}

// symbolsCall asks for a verb and prints its lines, as JSON or by show.
func (a *App) symbolsCall(cmd *cobra.Command, verb string, input operations.SymbolInput, show func(*tabwriter.Writer, json.RawMessage) error) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	lines := 0
	err = a.call(cmd.Context(), cfg, admin.Command{Name: verb}, admin.Start, input, func(raw json.RawMessage) error {
		lines++
		if inJSON {
			return a.printJSON(raw)
		}
		return show(table, raw)
	})
	if err == nil && lines == 0 && !inJSON {
		fmt.Fprintln(a.Stdout, "no override is in force")
	}
	return errors.Join(err, table.Flush())
}

func (a *App) printOverride(table *tabwriter.Writer, raw json.RawMessage) error {
	var line operations.OverrideLine
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading an override: %w", err)
	}
	coin := line.Coin
	if coin == "" {
		coin = "taken back"
	}
	_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", line.Source, line.Symbol, coin, line.Since.Format(time.RFC3339), line.Reason)
	return err
}

func (a *App) printResolution(table *tabwriter.Writer, raw json.RawMessage) error {
	var r symbols.Resolution
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("reading a resolution: %w", err)
	}
	switch {
	case r.Fiat != "":
		fmt.Fprintf(table, "%s is the currency %s, no coin\n", r.Input, r.Fiat)
	case !r.Resolved:
		fmt.Fprintf(table, "%s is no coin that is known\n", r.Input)
	default:
		units := ""
		if r.Units != 0 {
			units = strconv.FormatFloat(r.Units, 'f', -1, 64) + " of "
		}
		fmt.Fprintf(table, "%s is %s%s (%s), by %s, confidence %d\n", r.Input, units, r.CoinID, r.Name, r.Method, *r.Confidence)
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
		fmt.Fprintf(table, "  %d\t%s\t%s\t%s\t%s\n", c.Score, c.CoinID, c.Name, rank, price)
	}
	return nil
}
