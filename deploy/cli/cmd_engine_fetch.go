package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/embedded/engine/fetch"
	"github.com/marketlog/marketlog/deploy/roles"
)

// registryVariable is the variable by which npm too is pointed at another registry.
const registryVariable = "npm_config_registry"

func fetchCommand(rt *command.Runtime) *cobra.Command {
	var registry string
	cmd := &cobra.Command{
		Use:   "fetch",
		Short: "Download the ClickHouse engine's library into the user's cache folder, once",
		Long: `Download the ClickHouse engine's library into the user's cache folder, where marketlog run loads it from: some 180 MB from a
registry of npm packages, which become 570 MB. It is compared with the SHA-512 that is pinned in this program. A download that broke
off is resumed. A library that is there is left alone.

The registry is --registry, else npm_config_registry, else ` + fetch.DefaultRegistry + `; a proxy is that of HTTPS_PROXY.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := rt.Output(cmd)
			if err != nil {
				return err
			}
			path, fetched, err := fetchEngine(cmd.Context(), rt, registry)
			if err != nil {
				return err
			}
			switch {
			case out.Objects():
				return out.Object(fetchLine{path, fetched})
			case fetched:
				out.Text("%s is ready", path)
			default:
				out.Text("%s is there", path)
			}
			return out.Flush()
		},
	}
	cmd.Flags().StringVar(&registry, "registry", "", "`ADDRESS` of the registry of npm packages")
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

// fetchLine is what the command prints: where the library is, and whether it was not there before.
type fetchLine struct {
	Path    string `json:"path"`
	Fetched bool   `json:"fetched"`
}

// fetchEngine downloads the pinned library and shows how far it has come. An empty registry is that of the environment.
func fetchEngine(ctx context.Context, rt *command.Runtime, registry string) (path string, fetched bool, err error) {
	pin, err := engine.Pinned()
	if err != nil {
		return "", false, err
	}
	if path, err = pin.Path(); err != nil {
		return "", false, err
	}
	for _, name := range []string{registryVariable, strings.ToUpper(registryVariable)} { // npm reads both
		if registry == "" {
			registry = rt.Variable(name)
		}
	}
	if at, err := url.Parse(registry); registry != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "") {
		return "", false, fmt.Errorf("the registry %q is not an address; use one such as %s", registry, fetch.DefaultRegistry)
	}
	shown := &fetchPrinter{to: rt.Stderr, log: command.NewLogger(config.DefaultConfig().Log, rt.Stderr), terminal: roles.IsTerminal(rt.Stderr)}
	fetched, err = fetch.Fetch(ctx, pin, path, fetch.Options{Registry: registry, Report: shown.report})
	shown.end()
	return path, fetched, err
}

// fetchPrinter shows a download: on a terminal with a bar for each step, else with a line of the log every five seconds.
type fetchPrinter struct {
	to       io.Writer
	log      *slog.Logger
	terminal bool
	bar      *progressbar.ProgressBar
	step     string
	shown    time.Time
}

func (p *fetchPrinter) report(at fetch.Progress) {
	if !p.terminal {
		if at.Step != p.step || time.Since(p.shown) >= progressEvery {
			p.step, p.shown = at.Step, time.Now()
			p.log.Info(at.Step, "done_bytes", at.Done, "total_bytes", at.Total)
		}
		return
	}
	total := at.Total
	if total == 0 {
		total = -1 // a bar without an end
	}
	if p.step != at.Step {
		p.end()
		p.step = at.Step
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.to), progressbar.OptionSetDescription(at.Step),
			progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond))
	}
	if total > 0 {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(at.Done) // fails where a terminal does
}

// end leaves the bar's line.
func (p *fetchPrinter) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.to)
		p.bar = nil
	}
}

// fetchFlag is not a setting: it is about one start.
const fetchFlag = "fetch-engine"

// addFetchFlag adds --fetch-engine to a command that loads the engine.
func addFetchFlag(cmd *cobra.Command) {
	cmd.Flags().Bool(fetchFlag, false, "download the ClickHouse engine's library first if it is missing")
}

// haveEngine returns an error if a start would fail for want of the pinned library, after it has been downloaded where the flag asks for it
// or a person at the terminal agrees.
func haveEngine(cmd *cobra.Command, rt *command.Runtime, cfg config.Config) error {
	if len(cfg.ClickHouse.Addr) > 0 || cfg.ClickHouse.Library != "" {
		return nil
	}
	_, missing := engine.Find("")
	if !errors.Is(missing, engine.ErrNoLibrary) {
		return nil // or a fault that the start reports
	}
	if _, err := engine.Pinned(); err != nil {
		return err
	}
	if asked, _ := cmd.Flags().GetBool(fetchFlag); !asked {
		in, ok := rt.Stdin.(*os.File)
		if !ok || !roles.IsTerminal(in) || !roles.IsTerminal(rt.Stdout) {
			return fmt.Errorf("%w; or add --%s", missing, fetchFlag)
		}
		fmt.Fprintf(rt.Stdout, "The ClickHouse engine's library is missing. Download it now, once (180 MB, which become 570 MB)? [Y/n] ")
		yes, err := agrees(cmd.Context(), in)
		if err != nil {
			return err
		}
		if !yes {
			return missing
		}
	}
	path, _, err := fetchEngine(cmd.Context(), rt, "")
	if err == nil {
		fmt.Fprintln(rt.Stdout, path+" is ready")
	}
	return err
}

// agrees reads a line that is y or yes, or empty, which means the same. The end of the input means no.
func agrees(ctx context.Context, from io.Reader) (bool, error) {
	type typed struct {
		line string
		err  error
	}
	got := make(chan typed, 1)
	go func() { // it stays in its read where ctx ends first, and so does the process
		line, err := bufio.NewReader(io.LimitReader(from, 256)).ReadString('\n')
		got <- typed{line, err}
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case t := <-got:
		if t.err != nil {
			return false, nil
		}
		switch strings.ToLower(strings.TrimSpace(t.line)) {
		case "", "y", "yes":
			return true, nil
		}
		return false, nil
	}
}
