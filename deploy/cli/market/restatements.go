package market

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

func restatementsCommand(rt *command.Runtime) *cobra.Command {
	var view, since, until, cursor string
	var limit int
	cmd := &cobra.Command{
		Use:     "restatements [SYMBOL]",
		Short:   "Show rows of the past that were changed by a replay or stated otherwise by their source, with both values",
		Example: "  marketlog restatements BTC --replay candles\n  marketlog restatements --replay backfill --since 2026-01-31T12:00:00Z -o csv",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if len(args) > 0 {
				query.Set("coin", args[0])
			}
			for name, value := range map[string]string{"replay": view, "since": since, "until": until, "cursor": cursor} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return show(rt, cmd, "/api/v1/restatements", query, showRestatements)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&view, "replay", "", "only rows of this `VIEW`, as replay --view names it; backfill and reference for what sources stated otherwise")
	flags.StringVar(&since, "since", "", "restated at this `TIME` or later, as in 2026-01-31T12:00:00Z")
	flags.StringVar(&until, "until", "", "restated at this `TIME` or before")
	flags.StringVar(&cursor, "cursor", "", "`CURSOR` of the page before")
	flags.IntVar(&limit, "limit", 100, "at most so many rows, 1 to 1000")
	config.AddInstanceFlags(flags)
	command.AddOutputFlag(flags)
	return cmd
}

func showRestatements(out *command.Output, answer api.RestatementsBody) {
	if len(answer.Restatements) == 0 {
		out.Text("no row was restated")
	} else {
		out.Row("TIME", "CAUSE", "TABLE", "KIND", "KEY", "BEFORE", "AFTER", "OTHER COLUMNS")
	}
	for _, r := range answer.Restatements {
		out.Row(clock(r.Time), shortCause(r.Cause), r.Table, r.Kind, named(r.Key), named(r.Before), named(r.After), orDash(strings.Join(r.Others, " ")))
	}
	for _, t := range answer.Unlisted {
		out.Text("%s: %d more rows of %s were restated and are only counted", clock(t.Time), t.Rows, t.Table)
	}
	if answer.Meta.Next != "" {
		out.Text("--cursor %s shows more", answer.Meta.Next)
	}
}

// shortCause is a cause with the first digits of a file's hash: the whole one is as wide as a terminal, and the other formats have it.
func shortCause(cause string) string {
	const digits = 12
	what, hash, _ := strings.Cut(cause, " ")
	if what != "import" || len(hash) <= digits {
		return cause
	}
	return what + " " + hash[:digits] + "…"
}

// named are values with their names, in the order of these.
func named(values map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
	}
	return orDash(strings.Join(all, " "))
}
