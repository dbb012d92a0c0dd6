// Package sql is `marketlog sql`: a statement over the views, or a shell for many. Other commands print what views hold by it.
package sql

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

// Command declares `marketlog sql`.
func Command(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql [STATEMENT]",
		Short: "Run a SQL statement over the views; - reads it from standard input; without one, a shell",
		Long: `Run a SQL statement over the views, given as argument or, with -, on standard input. Without a statement a shell opens in the terminal: statements end
with a semicolon, Tab completes names of views and columns, Ctrl-C ends a running statement, \d lists the views, \d VIEW its columns, \q leaves.`,
		Example: "  marketlog sql 'SELECT time, price FROM v_prices WHERE coin_id = ''bitcoin'' ORDER BY time DESC LIMIT 5'\n  marketlog sql",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return openShell(rt, cmd)
			}
			statement := args[0]
			if statement == "-" {
				text, err := io.ReadAll(io.LimitReader(rt.Stdin, maxStatement))
				if err != nil {
					return fmt.Errorf("reading the statement: %w", err)
				}
				statement = string(text)
			}
			return Run(rt, cmd, statement)
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	command.AddOutputFlag(cmd.Flags())
	return cmd
}

// maxStatement bounds a statement, in bytes.
const maxStatement = 1 << 20

// Run prints the result of a SQL statement: from the running instance, else from the parts that this command opens. A FORMAT
// in the statement wins over -o. Params are names and values of the statement's parameters, one after the other.
func Run(rt *command.Runtime, cmd *cobra.Command, statement string, params ...string) error {
	s, err := connect(rt, cmd)
	if err != nil {
		return err
	}
	defer s.done()
	return s.run(cmd.Context(), rt.Stdout, statement, params...)
}

// session is the way to an engine.
type session struct {
	client *http.Client
	addr   string
	format string // of results without a FORMAT
	done   func()
}

func connect(rt *command.Runtime, cmd *cobra.Command) (session, error) {
	out, err := rt.Output(cmd)
	if err != nil {
		return session{}, err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return session{}, err
	}
	if len(cfg.ClickHouse.Addr) > 0 {
		return session{}, errors.New("the configuration names an external ClickHouse: query it with its own client")
	}
	s := session{format: "PrettyCompactMonoBlock"}
	switch out.Format {
	case command.FormatJSON:
		s.format = "JSONEachRow"
	case command.FormatCSV:
		s.format = "CSVWithNames"
	case command.FormatYAML:
		return session{}, errors.New("results of SQL have no form in YAML; use --output json")
	}
	s.client, s.addr, s.done, err = openSQL(cmd.Context(), rt, cfg)
	return s, err
}

// run writes the result of a statement.
func (s session) run(ctx context.Context, to io.Writer, statement string, params ...string) error {
	query := url.Values{"default_format": {s.format}}
	for i := 0; i+1 < len(params); i += 2 {
		query.Set("param_"+params[i], params[i+1])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.addr+"/?"+query.Encode(), strings.NewReader(statement))
	if err != nil {
		return fmt.Errorf("querying %s: %w", s.addr, err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("querying %s: %w", s.addr, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return errors.New(strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(to, response.Body); err != nil {
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
