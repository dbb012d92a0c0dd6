// Package topics is `marketlog topics`: what the log holds, how far groups have read it, and its records as text.
package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

// Command declares `marketlog topics`.
func Command(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "topics", Short: "Inspect the log"}
	add := func(c *cobra.Command, run func(ctx context.Context, t topics, args []string) error) *cobra.Command {
		c.RunE = func(cmd *cobra.Command, args []string) error { return onTopics(rt, cmd, args, run) }
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
		cmd.AddCommand(c)
		return c
	}
	add(&cobra.Command{Use: "list", Short: "List the topics with their sizes and messages", Args: cobra.NoArgs}, listTopics)
	add(&cobra.Command{Use: "lag", Short: "Show the lag of each group", Args: cobra.NoArgs}, topicLag)
	add(&cobra.Command{Use: "check", Short: "Compare the broker with the topic table; exit 1 if they differ", Args: cobra.NoArgs}, checkTopics)

	var o tailOptions
	tail := add(&cobra.Command{Use: "tail TOPIC", Short: "Print records", Args: cobra.ExactArgs(1)},
		func(ctx context.Context, t topics, args []string) error { return t.tail(ctx, args[0], o) })
	tail.Flags().StringVar(&o.from, "from", "", "start, end, a time (RFC 3339) or an offset; default: the newest records")
	tail.Flags().Int64VarP(&o.count, "count", "n", 10, "without --from: `N` newest records of each partition; else: stop after N in all, 0 for no end")
	tail.Flags().Int32Var(&o.partition, "partition", -1, "only this partition")
	tail.Flags().BoolVar(&o.all, "all", false, "also clock records, which only advance log time")
	tail.Flags().BoolVarP(&o.follow, "follow", "f", false, "wait for more at the end")
	cmd.AddCommand(topicSchemaCommand(rt))
	return cmd
}

// topics is what the sub-commands work with.
type topics struct {
	*command.Runtime
	cfg    config.Config
	log    stream.Config
	client *kgo.Client
	admin  *kadm.Client
	out    *command.Output
}

func onTopics(rt *command.Runtime, cmd *cobra.Command, args []string, run func(context.Context, topics, []string) error) (err error) {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return err
	}
	log, done, err := rt.OpenLog(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	client, err := log.NewClient()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	return run(cmd.Context(), topics{rt, cfg, log, client, kadm.NewClient(client), out}, args)
}

// topicRow is one topic as `topics list` shows it.
type topicRow struct {
	Topic      string `json:"topic"`
	Message    string `json:"message,omitempty"` // empty: not ours
	Holds      string `json:"holds,omitempty"`
	Key        string `json:"key,omitempty"`
	Partitions int    `json:"partitions"`
	// Offsets is how many offsets are kept. Pulses and other clock records have offsets too, and a compacted topic has
	// fewer records.
	Offsets int64 `json:"offsets"`
	Written int64 `json:"written"`
	Bytes   int64 `json:"bytes"`
}

func listTopics(ctx context.Context, t topics, _ []string) error {
	details, err := t.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("listing topics: %w", err)
	}
	if len(details) == 0 {
		return nil
	}
	starts, err := t.admin.ListStartOffsets(ctx, details.Names()...)
	if err != nil {
		return fmt.Errorf("listing offsets: %w", err)
	}
	ends, err := t.admin.ListEndOffsets(ctx, details.Names()...)
	if err != nil {
		return fmt.Errorf("listing offsets: %w", err)
	}
	sizes := make(map[string]int64)
	// Not every broker reports sizes; the rest of the list is still useful.
	if dirs, err := t.admin.DescribeAllLogDirs(ctx, nil); err == nil {
		dirs.Each(func(dir kadm.DescribedLogDir) {
			dir.Topics.Each(func(p kadm.DescribedLogDirPartition) { sizes[p.Topic] += p.Size })
		})
	}
	var rows []topicRow
	for _, detail := range details.Sorted() {
		row := topicRow{Topic: detail.Topic, Partitions: len(detail.Partitions), Bytes: sizes[detail.Topic]}
		if known, err := schemas.TopicNamed(detail.Topic); err == nil {
			row.Message, row.Key, row.Holds = known.Message(), known.Key, known.Holds
		}
		for p := range detail.Partitions {
			start, _ := starts.Lookup(detail.Topic, p)
			end, _ := ends.Lookup(detail.Topic, p)
			row.Offsets += end.Offset - start.Offset
			row.Written += end.Offset
		}
		rows = append(rows, row)
	}
	return command.Print(t.out, []any{"TOPIC", "PARTITIONS", "OFFSETS", "WRITTEN", "BYTES", "KEY", "MESSAGE"}, rows, func(r topicRow) []any {
		return []any{r.Topic, r.Partitions, r.Offsets, r.Written, r.Bytes, r.Key, r.Message}
	})
}

// lagRow is how far one group is behind on one partition.
type lagRow struct {
	Group     string `json:"group"`
	State     string `json:"state"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Committed is -1 where nothing is committed yet. It and Lag are missing where Lock is set.
	Committed *int64 `json:"committed,omitempty"`
	End       int64  `json:"end"`
	Lag       *int64 `json:"lag,omitempty"`
	// Lock is whether the group only elects who folds: its member that holds the partition of the output is the one.
	// v_lag has its progress.
	Lock   bool   `json:"lock,omitempty"`
	Member string `json:"member,omitempty"`
}

// locks are the groups that are joined for their lock.
func locks() map[string]bool {
	groups := map[string]bool{quotes.Name: true}
	for _, fold := range instance.MinuteFolds() {
		groups[fold.Name] = true
	}
	return groups
}

func topicLag(ctx context.Context, t topics, _ []string) error {
	lags, err := t.admin.Lag(ctx)
	if err != nil {
		return fmt.Errorf("reading the lag of the groups: %w", err)
	}
	var rows []lagRow
	locks := locks()
	for _, group := range lags.Sorted() {
		if err := group.Error(); err != nil {
			return fmt.Errorf("reading the lag of %s: %w", group.Group, err)
		}
		for _, lag := range group.Lag.Sorted() {
			row := lagRow{Group: group.Group, State: group.State, Topic: lag.Topic, Partition: lag.Partition, End: lag.End.Offset}
			if row.Lock = locks[group.Group]; !row.Lock {
				row.Committed, row.Lag = &lag.Commit.At, &lag.Lag
			}
			if lag.Member != nil {
				row.Member = lag.Member.ClientID
			}
			rows = append(rows, row)
		}
	}
	return command.Print(t.out, []any{"GROUP", "STATE", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG"}, rows, func(r lagRow) []any {
		committed, lag := "lock", "-"
		if !r.Lock {
			committed, lag = strconv.FormatInt(*r.Committed, 10), strconv.FormatInt(*r.Lag, 10)
			if *r.Committed < 0 {
				committed = "none"
			}
		}
		return []any{r.Group, r.State, r.Topic, r.Partition, committed, r.End, lag}
	})
}

func checkTopics(ctx context.Context, t topics, _ []string) error {
	faults, err := stream.CheckTopics(ctx, t.client, schemas.Topics, t.cfg.TopicConfigs())
	if err != nil {
		return err
	}
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = fault.Error()
	}
	slices.Sort(lines)
	if t.out.Objects() {
		if err := t.out.Object(map[string]any{"topics": len(schemas.Topics), "faults": lines}); err != nil {
			return err
		}
	} else if len(lines) == 0 {
		fmt.Fprintf(t.Stdout, "%d topics match the topic table\n", len(schemas.Topics))
	} else {
		fmt.Fprintln(t.Stdout, strings.Join(lines, "\n"))
	}
	if len(faults) > 0 {
		return command.ErrReported
	}
	return nil
}

// recordTime is a record's timestamp, the log time that its writer set.
func recordTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
