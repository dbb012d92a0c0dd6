package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
)

func (a *App) sqlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql STATEMENT",
		Short: "Ask the views; - reads the statement from standard input",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			statement := args[0]
			if statement == "-" {
				text, err := io.ReadAll(io.LimitReader(a.Stdin, 1<<20))
				if err != nil {
					return fmt.Errorf("reading the statement: %w", err)
				}
				statement = string(text)
			}
			return a.ask(cmd, statement)
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	addOutputFlag(cmd.Flags())
	return cmd
}

// ask prints what the views answer: of the running instance, else of the parts that this command
// opens. A FORMAT in the statement wins over -o.
func (a *App) ask(cmd *cobra.Command, statement string, params ...string) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	if len(cfg.ClickHouse.Addr) > 0 {
		return errors.New("the configuration names an outside ClickHouse: ask it with its own client")
	}
	ctx := cmd.Context()
	client, addr, done, err := a.openSQL(ctx, cfg)
	if err != nil {
		return err
	}
	defer done()
	query := url.Values{"default_format": {"PrettyCompactMonoBlock"}}
	if inJSON {
		query.Set("default_format", "JSONEachRow")
	}
	for i := 0; i+1 < len(params); i += 2 {
		query.Set("param_"+params[i], params[i+1])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, addr+"/?"+query.Encode(), strings.NewReader(statement))
	if err != nil {
		return fmt.Errorf("asking %s: %w", addr, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", addr, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return errors.New(strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(a.Stdout, response.Body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// openSQL reaches the running instance by its admin socket, where nothing is hidden, or serves the engine in the data
// directory on a free port for as long as the command lasts.
func (a *App) openSQL(ctx context.Context, cfg config.Config) (client *http.Client, addr string, done func(), err error) {
	info, ok, err := runningInstance(ctx, cfg.DataDir)
	if err != nil {
		return nil, "", nil, err
	}
	if ok {
		client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", info.Admin)
		}}}
		return client, "http://instance/sql", client.CloseIdleConnections, nil
	}
	if err := findInstance(cfg, "clickhouse"); err != nil {
		return nil, "", nil, err
	}
	in, err := instance.HoldInstance(cfg, a.quietLogger(cfg)) // the log is not needed
	if err != nil {
		return nil, "", nil, err
	}
	e, err := in.Engine()
	if err != nil {
		return nil, "", nil, errors.Join(err, in.Close())
	}
	handler, err := engine.Handler(e, engine.DefaultLimits())
	if err != nil {
		return nil, "", nil, errors.Join(err, in.Close())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, errors.Join(err, in.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return http.DefaultClient, "http://" + listener.Addr().String(), func() {
		_ = server.Close()
		_ = in.Close()
	}, nil
}
