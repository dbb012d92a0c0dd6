package market

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	marketlog "github.com/marketlog/marketlog/query/clients/go"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

func watchCommand(rt *command.Runtime) *cobra.Command {
	var every bool
	var from, to string
	var speed float64
	cmd := &cobra.Command{
		Use:   "watch COIN...",
		Short: "Follow prices as they change; goes on after the connection or the server was lost",
		Long: `Follow prices as they change: a line a change, at most one a second and coin, until interrupted. When the connection or the server is lost, it tries
again and goes on from where it was: it says how many seconds it makes up for, or which time it can say nothing of. With --every each price of these
coins is printed exactly once over any number of restarts. --from prints every price since an instant of the past, at --speed or as fast as they come, up to
--to or into the present.`,
		Example: "  marketlog watch BTC ETH\n  marketlog watch BTC --every -o json | jq .data\n  marketlog watch BTC --from 10m --speed 60",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := rt.Output(cmd)
			if err != nil {
				return err
			}
			// The texts of the flags go to the server, which alone judges them.
			replay := url.Values{}
			options := marketlog.StreamOptions{Symbols: args, Delivery: marketlog.Latest, Parameters: replay}
			if every || from != "" {
				options.Delivery = marketlog.All
			}
			switch {
			case from != "":
				replay.Set("from", since(from, time.Now()))
			case to != "" || cmd.Flags().Changed("speed"):
				return errors.New("--to and --speed belong to a replay: add --from")
			}
			if to != "" {
				replay.Set("to", since(to, time.Now()))
			}
			if cmd.Flags().Changed("speed") {
				replay.Set("speed", strconv.FormatFloat(speed, 'g', -1, 64))
			}
			c, err := connect(rt, cmd)
			if err != nil {
				return err
			}
			return newWatch(out, c, options).run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&every, "every", false, "every price, also those that repeat the one before, instead of changes")
	cmd.Flags().StringVar(&from, "from", "", "every price since this `TIME` of the past: RFC 3339, or how long ago, as 10m")
	cmd.Flags().StringVar(&to, "to", "", "end at this `TIME`; default: go on with the present")
	cmd.Flags().Float64Var(&speed, "speed", 0, "seconds of the log printed in one, 0.1 to 3600; default: as they come")
	config.AddInstanceFlags(cmd.Flags())
	command.AddDocumentsFlag(cmd.Flags())
	return cmd
}

// since is an instant as the server reads it; a duration is so long ago.
func since(text string, now time.Time) string {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago).UTC().Format(time.RFC3339Nano)
	}
	return text
}

// watch follows the stream over any number of connections.
type watch struct {
	out     *command.Output
	client  *client
	stream  *marketlog.Stream
	all     bool   // every price is asked for, in place of changes
	reached bool   // whether a message ever came
	began   string // the cursor that the connection began with; empty where it began with the present, or the beginning of a replay
}

func newWatch(out *command.Output, c *client, options marketlog.StreamOptions) *watch {
	w := &watch{out: out, client: c, all: options.Delivery == marketlog.All}
	options.Patience, options.Again = -1, w.again
	w.stream = c.Stream(options)
	return w
}

// again is whether a connection that failed is tried again: a server that never answered is none.
func (w *watch) again(err error, _ time.Duration) bool {
	cursor := w.stream.Cursor()
	if w.reached && cursor != w.began && !w.out.Objects() { // with -o json the messages show it
		w.out.Text("-- the connection is lost (%v); trying again", w.client.shown(err))
		_ = w.out.Flush() // an output that is gone ends the next message
	}
	w.began = cursor
	return w.reached
}

// run follows until the context or a replay ends, or a server refuses what is asked for.
func (w *watch) run(ctx context.Context) error {
	for message, err := range w.stream.Messages(ctx) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return w.client.shown(err)
		}
		if err := w.take(message); err != nil {
			return err
		}
	}
	return nil
}

// take prints a message.
func (w *watch) take(m marketlog.Message) (err error) {
	switch {
	case w.repeats(m):
	case w.out.Objects():
		err = w.out.Object(m.JSON)
	default:
		err = errors.Join(w.show(m), w.out.Flush())
	}
	if err != nil {
		return fmt.Errorf("printing a message of the stream: %w", err)
	}
	w.reached = true
	return nil
}

// repeats reports whether a message has what came before the connection was lost: the current prices, with which each begins. Behind a gap they
// are new.
func (w *watch) repeats(m marketlog.Message) bool {
	if m.Type != "initial_prices" || w.began == "" {
		return false
	}
	var prices api.MessageInitialPrices
	return json.Unmarshal(m.JSON, &prices) == nil && !prices.Gap
}

// show prints a message for people.
func (w *watch) show(m marketlog.Message) error {
	switch m.Type {
	case "welcome":
		return decoded(m, func(welcome api.MessageWelcome) {
			if welcome.Simulated && !w.reached {
				w.out.Text("SIMULATED: these numbers are invented")
			}
		})
	case "initial_prices":
		return decoded(m, func(prices api.MessageInitialPrices) {
			for _, p := range prices.Data {
				w.out.Text("%s  %-6s %14s USD", second(p.Timestamp), p.Symbol, amount(&p.Price))
			}
		})
	case "price_update":
		return decoded(m, func(update api.MessagePriceUpdate) {
			for _, p := range update.Data {
				percent := (p.Price/p.PreviousPrice - 1) * 100
				w.out.Text("%s  %-6s %14s USD  %+.4f %%", second(p.Timestamp), p.Symbol, amount(&p.Price), percent)
			}
		})
	case "stale":
		return decoded(m, func(stale api.MessageStale) {
			for _, p := range stale.Data {
				w.out.Text("-- %s is stale since %s: %s", p.Symbol, second(p.LastPriceAt), p.Reason)
			}
		})
	case "fresh":
		return decoded(m, func(fresh api.MessageFresh) {
			for _, p := range fresh.Data {
				w.out.Text("-- %s is fresh again", p.Symbol)
			}
		})
	case "resumed":
		what := "the newest prices"
		if w.all {
			what = "all prices"
		}
		return decoded(m, func(resumed api.MessageResumed) {
			w.out.Text("-- resumed: %s of the %d s that were missed follow", what, resumed.Seconds)
		})
	case "live":
		w.out.Text("-- the present is reached")
	case "replay_end":
		w.out.Text("-- the replay has come to its end")
	case "gap":
		return decoded(m, func(gap api.MessageGap) {
			since := "the cursor"
			if !gap.Since.IsZero() {
				since = gap.Since.Format(serverTime)
			}
			w.out.Text("-- a gap from %s to %s: %s", since, gap.Until.Format(serverTime), gap.Reason)
		})
	}
	return nil
}

// second writes a time in Unix milliseconds to the second, in UTC.
func second(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05Z") }

// decoded passes a message on as what its type is.
func decoded[T any](m marketlog.Message, to func(T)) error {
	var as T
	if err := json.Unmarshal(m.JSON, &as); err != nil {
		return fmt.Errorf("reading %s: %w", m.Type, err)
	}
	to(as)
	return nil
}
