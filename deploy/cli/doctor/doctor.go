// Package doctor is `marketlog doctor`: it checks the configuration, disk, log and tables of an instance, running or not, and
// names a remedy for each fault.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	// Verdict is ok, warning or failed.
	Verdict string `json:"verdict"`
	Message string `json:"says"`
	Remedy  string `json:"remedy,omitempty"`
}

// Command declares `marketlog doctor`.
func Command(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an instance for faults; exit 1 if there are any",
		Args:  cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := rt.Output(cmd)
		if err != nil {
			return err
		}
		failed := false
		for _, f := range examine(rt, cmd) {
			failed = failed || f.Verdict == "failed"
			if out.Objects() {
				if err := out.Object(f); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(rt.Stdout, "%-8s %-14s %s\n", f.Verdict, f.Check, f.Message)
			if f.Remedy != "" {
				fmt.Fprintf(rt.Stdout, "%-8s %-14s → %s\n", "", "", f.Remedy)
			}
		}
		if failed {
			return command.ErrReported
		}
		return nil
	}
	config.AddConfigFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

func examine(rt *command.Runtime, cmd *cobra.Command) []Finding {
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return []Finding{{"configuration", "failed", err.Error(), "`marketlog config print` shows where each setting comes from"}}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
	defer cancel()
	found := []Finding{{Check: "configuration", Verdict: "ok", Message: "right"}}
	found = append(found, examineMachine(cfg)...)
	info, ok, err := admin.RunningInstance(cfg.DataDir)
	switch {
	case err != nil:
		found = append(found, Finding{"instance", "failed", err.Error(), ""})
	case ok:
		found = append(found, examineRunning(ctx, cfg, info)...)
		found = append(found, examineSealed(cfg)...)
		found = append(found, examineTables(cmd.Context(), cfg, &info)...)
		found = append(found, examineGrowth(cmd.Context(), cfg, info)...)
		found = append(found, examineLake(ctx, cfg, info)...)
	default:
		found = append(found, Finding{"instance", "ok", "no instance is running on " + cfg.DataDir, ""})
		found = append(found, examineEngine(cfg)...)
		found = append(found, examinePorts(cfg)...)
		found = append(found, ExamineLog(cfg)...)
		found = append(found, examineTables(cmd.Context(), cfg, nil)...)
	}
	found = append(found, examineArchive(ctx, cfg)...)
	for i, list := range [][]string{cfg.Kafka.Brokers, cfg.ClickHouse.Addr, cfg.Redis.Addr} {
		for _, addr := range list {
			found = append(found, examineServer(ctx, []string{"kafka.brokers", "clickhouse.addr", "redis.addr"}[i], addr))
		}
	}
	return found
}

// comfortable is the free space below which an instance without a disk budget soon fills the disk: about a day of the demo's rate. How
// fast a running one grows is measured.
const comfortable = 20 << 30

// minFiles is how many files the embedded log and engine keep open, and some hundreds of connections.
const minFiles = 4096

func examineMachine(cfg config.Config) (found []Finding) {
	existing := cfg.DataDir
	for {
		if _, err := os.Stat(existing); err == nil || filepath.Dir(existing) == existing {
			break
		}
		existing = filepath.Dir(existing)
	}
	if err := unix.Access(existing, unix.W_OK); err != nil {
		found = append(found, Finding{"data directory", "failed", existing + " is not writable: " + err.Error(), "choose another --data-dir"})
	} else {
		found = append(found, Finding{"data directory", "ok", cfg.DataDir, ""})
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(existing, &disk); err == nil {
		free := int64(disk.Bavail) * int64(disk.Bsize)
		text := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
		switch {
		case free < cfg.Retention.LogBytes:
			found = append(found, Finding{"disk", "failed", text, fmt.Sprintf("the log alone takes %.1f GiB: free some, or lower retention.log_bytes", float64(cfg.Retention.LogBytes)/(1<<30))})
		case cfg.DiskBudget() == 0 && free < comfortable:
			found = append(found, Finding{"disk", "warning", text, "the demo's 16 venues write some 20 GB of ticks and prices a day: beside a running instance doctor measures it"})
		default:
			found = append(found, Finding{"disk", "ok", text, ""})
		}
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		f := Finding{"open files", "ok", fmt.Sprintf("%d allowed", files.Cur), ""}
		if files.Cur < minFiles {
			f.Verdict, f.Remedy = "warning", fmt.Sprintf("allow %d: ulimit -n %d", minFiles, minFiles)
		}
		found = append(found, f)
	}
	found = append(found, Finding{"program", "ok", fmt.Sprintf("%s on %s/%s, %d processors", operations.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), ""})
	return found
}

// examineEngine looks for what a start would load. A running instance has loaded its own: whoever asks may have another
// home, in which there is none.
func examineEngine(cfg config.Config) []Finding {
	if len(cfg.ClickHouse.Addr) > 0 {
		return nil
	}
	path, err := engine.Find(cfg.ClickHouse.Library)
	if err != nil {
		return []Finding{{"engine", "failed", err.Error(), "run `marketlog engine fetch`, or name a server in clickhouse.addr"}}
	}
	return []Finding{{"engine", "ok", path, ""}}
}

func examineRunning(ctx context.Context, cfg config.Config, info admin.RunInfo) (found []Finding) {
	found = append(found, Finding{"instance", "ok", fmt.Sprintf("process %d since %s", info.PID, info.Started.Format(time.RFC3339)), ""})
	if cfg.TLS.Cert != "" && info.MetricsListen != "" {
		info.Listen = "" // its certificate is for a name, and the metrics' address says the same
	}
	for _, addr := range []string{info.Listen, info.MetricsListen} {
		if addr != "" {
			found = append(found, examineReadiness(ctx, addr))
		}
	}
	if len(info.Kafka) == 0 { // an engine alone
		return found
	}
	log, err := cfg.StreamConfig(info.Kafka)
	if err != nil {
		return append(found, Finding{"log", "failed", err.Error(), ""})
	}
	client, err := log.NewClient()
	if err != nil {
		return append(found, Finding{"log", "failed", err.Error(), ""})
	}
	defer client.Close()
	faults, err := stream.CheckTopics(ctx, client, schemas.Topics, cfg.TopicConfigs())
	switch {
	case err != nil:
		return append(found, Finding{"log", "failed", err.Error(), ""})
	case len(faults) == 0:
		return append(found, Finding{"log", "ok", fmt.Sprintf("%d topics match the topic table", len(schemas.Topics)), ""})
	}
	for _, fault := range faults {
		f := Finding{"log", "failed", fault.Error(), ""}
		if setting := (*stream.TopicConfigError)(nil); errors.As(fault, &setting) {
			f.Verdict = "warning"
		}
		found = append(found, f)
	}
	return found
}

func examineReadiness(ctx context.Context, addr string) Finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url := "http://" + addr + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Finding{"readiness", "failed", err.Error(), ""}
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return Finding{"readiness", "failed", err.Error(), "see its log"}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text := fmt.Sprintf("%s answers %s", url, answer.Status)
		if parts := missingParts(io.LimitReader(answer.Body, 1<<20)); len(parts) > 0 {
			text += ": " + strings.Join(parts, "; ")
		}
		return Finding{"readiness", "warning", text, "it is catching up, or waiting for what is named"}
	}
	return Finding{"readiness", "ok", url, ""}
}

// missingParts are what an answer of /readyz names, of the address of REST or of that of the metrics, in a fixed order.
func missingParts(body io.Reader) (parts []string) {
	var answer struct {
		Missing map[string][]string `json:"missing"`
		Error   struct {
			Errors map[string][]string `json:"errors"`
		} `json:"error"`
	}
	if json.NewDecoder(body).Decode(&answer) != nil {
		return nil // it is somebody else's
	}
	for _, missing := range []map[string][]string{answer.Missing, answer.Error.Errors} {
		for _, part := range slices.Sorted(maps.Keys(missing)) {
			parts = append(parts, part+": "+strings.Join(missing[part], ", "))
		}
	}
	return parts
}

func examinePorts(cfg config.Config) (found []Finding) {
	for _, p := range []struct{ key, addr string }{
		{"listen", cfg.Listen}, {"metrics_listen", cfg.MetricsListen}, {"sql_listen", cfg.SQLListen}, {"kafka.listen", cfg.Kafka.Listen},
	} {
		if p.addr == "" || p.key == "kafka.listen" && len(cfg.Kafka.Brokers) > 0 {
			continue
		}
		listener, err := net.Listen("tcp", p.addr)
		if err != nil {
			found = append(found, Finding{p.key, "failed", err.Error(), "choose another address"})
			continue
		}
		_ = listener.Close()
		found = append(found, Finding{p.key, "ok", p.addr + " is free", ""})
	}
	return found
}

func examineServer(ctx context.Context, key, addr string) Finding {
	conn, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return Finding{key, "failed", err.Error(), "start it, or correct " + key}
	}
	_ = conn.Close()
	return Finding{key, "ok", addr + " accepts connections", ""}
}
