package market

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/stream/retry"
)

const (
	// maxMessage bounds a message of the stream, in bytes.
	maxMessage = 8 << 20
	// heartbeat is how often a stream without prices shows that it lives; one that shows nothing for silence is given up.
	heartbeat = 5 * time.Second
	silence   = 3 * heartbeat
	// Pauses between tries to reach a server that is away.
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
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
			query := url.Values{"symbols": {strings.Join(args, ",")}, "heartbeatMs": {fmt.Sprint(heartbeat.Milliseconds())}, "delivery": {"latest"}}
			if every || from != "" {
				query.Set("delivery", "all")
			}
			switch {
			case from != "":
				query.Set("from", since(from, time.Now()))
			case to != "" || cmd.Flags().Changed("speed"):
				return errors.New("--to and --speed belong to a replay: add --from")
			}
			if to != "" {
				query.Set("to", since(to, time.Now()))
			}
			if cmd.Flags().Changed("speed") {
				query.Set("speed", strconv.FormatFloat(speed, 'g', -1, 64))
			}
			w := &watch{out: out, query: query, connect: func() (*client, error) { return connect(rt, cmd) }}
			return w.run(cmd.Context())
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

// since is an instant as the server reads it, which alone judges it; a duration is so long ago.
func since(text string, now time.Time) string {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago).UTC().Format(time.RFC3339Nano)
	}
	return text
}

// errReplayed means that a replay has come to its end.
var errReplayed = errors.New("the replay has come to its end")

// watch follows the stream over any number of connections.
type watch struct {
	out     *command.Output
	connect func() (*client, error)
	query   url.Values // with the cursor of the last message
	reached bool       // whether a message ever came
}

// run follows until the context ends, or a server refuses what is asked for.
func (w *watch) run(ctx context.Context) error {
	pauses := retry.New(firstPause, maxPause)
	for {
		before := w.query.Get("cursor")
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, errReplayed):
			return nil
		case !w.reached || refusedForGood(err):
			return err
		case w.query.Get("cursor") != before:
			pauses.Reset()
			w.note("the connection is lost (%v); trying again", err)
		}
		if retry.Wait(ctx, pauses.Next()) != nil {
			return nil
		}
	}
}

// refusedForGood is whether a server will answer the same again.
func refusedForGood(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && refused.status < http.StatusInternalServerError && refused.status != http.StatusTooManyRequests
}

// note prints a line about the connection; with -o json the messages say it.
func (w *watch) note(format string, args ...any) {
	if !w.out.Objects() {
		w.out.Text("-- "+format, args...)
		_ = w.out.Flush() // an output that is gone ends the next message
	}
}

// follow reads one connection to its end, which is always an error.
func (w *watch) follow(ctx context.Context) error {
	c, err := w.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(silence, func() { cancel(fmt.Errorf("%s sends nothing", c.base)) })
	defer alive.Stop()
	response, err := c.open(ctx, "/api/v1/stream", w.query, "application/x-ndjson")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return errReplayed // it was cut off before it read that
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		alive.Reset(silence)
		if err := w.take(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the stream of %s: %w", c.base, cmp.Or(context.Cause(ctx), err))
	}
	return fmt.Errorf("%s ended the stream", c.base)
}

// message is what is shown of a message of the stream.
type message struct {
	Type   string `json:"type"`
	Cursor string `json:"cursor"`
	Data   []struct {
		Symbol        string  `json:"symbol"`
		Price         float64 `json:"price"`
		Timestamp     int64   `json:"timestamp"` // Unix milliseconds
		PreviousPrice float64 `json:"previousPrice"`
		Reason        string  `json:"reason"`
		LastPriceAt   int64   `json:"lastPriceAt"` // Unix milliseconds
	} `json:"data"`
	Simulated bool    `json:"simulated"`
	Seconds   float64 `json:"seconds"`
	Since     string  `json:"since"` // absent where nothing is known of what came before
	Until     string  `json:"until"`
	Reason    string  `json:"reason"`
	Error     struct {
		Message string `json:"message"`
	} `json:"error"`
}

// take prints a message and keeps its cursor.
func (w *watch) take(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("reading a message of the stream: %w", err)
	}
	var err error
	if w.out.Objects() {
		err = w.out.Object(json.RawMessage(raw))
	} else {
		w.show(&m)
		err = w.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("printing a message of the stream: %w", err)
	}
	w.reached = true
	if m.Cursor != "" { // what it brought is printed
		w.query.Set("cursor", m.Cursor)
		w.query.Set("snapshot", "0")
		w.query.Del("from")
	}
	switch m.Type {
	case "replay_end":
		return errReplayed
	case "live":
		w.query.Del("speed") // the present has its own
	}
	return nil
}

func (w *watch) show(m *message) {
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05Z") }
	switch m.Type {
	case "welcome":
		if m.Simulated && !w.reached {
			w.out.Text("SIMULATED: these numbers are invented")
		}
	case "initial_prices":
		for _, p := range m.Data {
			w.out.Text("%s  %-6s %14s USD", at(p.Timestamp), p.Symbol, amount(&p.Price))
		}
	case "price_update":
		for _, p := range m.Data {
			percent := (p.Price/p.PreviousPrice - 1) * 100
			w.out.Text("%s  %-6s %14s USD  %+.4f %%", at(p.Timestamp), p.Symbol, amount(&p.Price), percent)
		}
	case "stale":
		for _, p := range m.Data {
			w.out.Text("-- %s is stale since %s: %s", p.Symbol, at(p.LastPriceAt), p.Reason)
		}
	case "fresh":
		for _, p := range m.Data {
			w.out.Text("-- %s is fresh again", p.Symbol)
		}
	case "resumed":
		what := "the newest prices"
		if w.query.Get("delivery") == "all" {
			what = "all prices"
		}
		w.out.Text("-- resumed: %s of the %.0f s that were missed follow", what, m.Seconds)
	case "live":
		w.out.Text("-- the present is reached")
	case "replay_end":
		w.out.Text("-- the replay has come to its end")
	case "gap":
		w.out.Text("-- a gap from %s to %s: %s", cmp.Or(m.Since, "the cursor"), m.Until, m.Reason)
	case "error":
		w.out.Text("-- %s", m.Error.Message)
	}
}
