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

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
)

func sqlCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql STATEMENT",
		Short: "Run a SQL statement over the views; - reads it from standard input",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			statement := args[0]
			if statement == "-" {
				text, err := io.ReadAll(io.LimitReader(rt.Stdin, 1<<20))
				if err != nil {
					return fmt.Errorf("reading the statement: %w", err)
				}
				statement = string(text)
			}
			return runStatement(rt, cmd, statement)
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

// runStatement prints the result of a SQL statement: from the running instance, else from the parts that this command
// opens. A FORMAT in the statement wins over -o.
func runStatement(rt *command.Runtime, cmd *cobra.Command, statement string, params ...string) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return err
	}
	if len(cfg.ClickHouse.Addr) > 0 {
		return errors.New("the configuration names an external ClickHouse: query it with its own client")
	}
	ctx := cmd.Context()
	client, addr, done, err := openSQL(ctx, rt, cfg)
	if err != nil {
		return err
	}
	defer done()
	query := url.Values{"default_format": {"PrettyCompactMonoBlock"}}
	if out.JSON {
		query.Set("default_format", "JSONEachRow")
	}
	for i := 0; i+1 < len(params); i += 2 {
		query.Set("param_"+params[i], params[i+1])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, addr+"/?"+query.Encode(), strings.NewReader(statement))
	if err != nil {
		return fmt.Errorf("querying %s: %w", addr, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("querying %s: %w", addr, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return errors.New(strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(rt.Stdout, response.Body); err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	return nil
}

// openSQL reaches the running instance by its admin socket, where nothing is hidden, or serves the engine in the data
// directory on a free port for as long as the command lasts.
func openSQL(ctx context.Context, rt *command.Runtime, cfg config.Config) (client *http.Client, addr string, done func(), err error) {
	info, ok, err := command.RunningInstance(ctx, cfg.DataDir)
	if err != nil {
		return nil, "", nil, err
	}
	if ok {
		client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", info.Admin)
		}}}
		return client, "http://instance/sql", client.CloseIdleConnections, nil
	}
	if err := command.FindInstance(cfg, "clickhouse"); err != nil {
		return nil, "", nil, err
	}
	in, err := instance.HoldInstance(cfg, rt.QuietLogger(cfg)) // the log is not needed
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
