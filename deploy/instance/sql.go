package instance

import (
	"net/http"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
	"github.com/marketlog/marketlog/query/sql"
)

// hiddenFromPeople are tables and views that the SQL port, which asks for no key, keeps to operators: what each key was used
// for.
var hiddenFromPeople = []string{"v_usage", "usage"}

// NewSQLReader makes what runs people's statements beside the owner of the tables.
func (in *Instance) NewSQLReader(owner *engine.Engine) *sqlport.Reader {
	known := engine.DefaultLimits()
	known.Time, known.Memory, known.Rows = sql.Time, sql.Memory, sql.Rows
	reader := sqlport.New(owner, sqlport.Options{
		Tables: in.Dir.Path("clickhouse"), Dir: in.Dir.Path("sql"), Library: in.Config.ClickHouse.Library,
		Statements: in.Config.SQL.Statements, Memory: in.Config.SQL.MemoryBytes, Hosts: in.Config.SQL.Hosts,
		Known: known, Hidden: hiddenFromPeople, Metrics: in.Metrics, Log: in.Log,
	})
	in.mu.Lock()
	defer in.mu.Unlock()
	in.people = reader
	return reader
}

// OperatorSQL serves statements of whoever may open the admin socket; nil where no SQL is served.
func (in *Instance) OperatorSQL() http.Handler {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.people == nil {
		return nil
	}
	return in.people.Operator()
}

// OpenSQLServer makes KnownSQL ask the configured server, where there is one and a user that may only read it.
func (in *Instance) OpenSQLServer() error {
	c := in.Config
	if len(c.ClickHouse.Addr) == 0 || c.SQL.User == "" {
		return nil
	}
	password, err := config.ReadSecret("sql.password_file", c.SQL.PasswordFile)
	if err != nil {
		return err
	}
	tls, err := config.ClientTLS("clickhouse.tls", c.ClickHouse.TLS)
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sqlServer = sql.NewServer(sql.ServerConfig{Addr: c.ClickHouse.Addr[0], User: c.SQL.User, Password: password, TLS: tls, Statements: c.SQL.Statements, Log: in.Log})
	return nil
}

// KnownSQL runs statements of those who have shown a key; nil where no SQL is served.
func (in *Instance) KnownSQL() sql.Engine {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.people != nil:
		return in.people
	case in.sqlServer != nil:
		return in.sqlServer
	}
	return nil
}
