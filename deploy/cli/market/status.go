package market

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/clients/go/api"
)

func statusCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show venues, sources and how far each stage of the pipeline is",
		Example: "  marketlog status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(rt, cmd, "/api/v1/system", url.Values{}, showStatus)
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

func showStatus(out *command.Output, answer api.SystemBody) {
	d := answer.Data
	if len(d.Venues) > 0 {
		out.Row("VENUE", "STATE", "MARKETS", "LAST EVENT", "GAPS", "OPEN", "REFUSED")
	}
	for _, v := range d.Venues {
		out.Row(v.Slug, v.State, v.Markets, age(v.LastEventAgeSeconds), counts(v.Gaps), v.OpenGaps, counts(v.Refused))
	}
	if len(d.Sources) > 0 {
		out.Text("")
		out.Row("SOURCE", "STATE", "LAST ANSWER", "REQUESTS", "FAILURES")
	}
	for _, s := range d.Sources {
		out.Row(s.Slug, s.State, age(s.LastAnswerAgeSeconds), s.Requests, s.Failures)
	}
	if len(d.Path) > 0 {
		out.Text("")
		out.Row("STAGE", "KIND", "BEHIND", "RECORDS")
	}
	for _, stage := range d.Path {
		out.Row(stage.Name, stage.Kind, age(stage.LagSeconds), stage.LagRecords)
	}
}

// age writes how long ago something was, in seconds.
func age(seconds float64) string {
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// counts writes counters by reason; those of 0 are left out.
func counts(of map[string]int64) string {
	var list []string
	for _, reason := range slices.Sorted(maps.Keys(of)) {
		if of[reason] > 0 {
			list = append(list, fmt.Sprintf("%s %d", reason, of[reason]))
		}
	}
	if len(list) == 0 {
		return unknown
	}
	return strings.Join(list, ", ")
}
