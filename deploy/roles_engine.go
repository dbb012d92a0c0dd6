package deploy

import (
	"context"
	"errors"
	"net/http"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
)

// engineRoles serve the embedded engine: read-only SQL, and in the role engine all of it to the other roles.
func engineRoles(in *Instance, at ports) ([]Role, error) {
	if at.sql == nil && at.engine == nil {
		return nil, nil
	}
	in.opening("opening the tables")
	e, err := in.Engine()
	if err != nil {
		return nil, err
	}
	var roles []Role
	if at.sql != nil {
		reader := in.newSQLReader(e)
		roles = append(roles,
			Role{Name: "engine/people", Run: reader.Run},
			Role{Name: "engine/sql", Run: func(ctx context.Context) error { return at.sql.serveHTTP(ctx, reader.People()) }})
	}
	if at.engine != nil {
		password, err := readSecret("clickhouse.password_file", in.Config.ClickHouse.PasswordFile)
		if err != nil {
			return nil, err
		}
		if password == "" { // it would let nobody in
			return nil, errors.New("clickhouse.password_file names an empty file; write a password into it")
		}
		handler := engine.ServerHandler(e, password)
		roles = append(roles, Role{Name: "engine/server", Run: func(ctx context.Context) error { return at.engine.serveHTTP(ctx, handler) }})
	}
	return roles, nil
}

// hiddenFromPeople are tables and views that the SQL port, which asks for no key, keeps to operators: what each key was used
// for.
var hiddenFromPeople = []string{"v_usage", "usage"}

// newSQLReader makes what runs people's statements beside the owner of the tables.
func (in *Instance) newSQLReader(owner *engine.Engine) *sqlport.Reader {
	reader := sqlport.New(owner, sqlport.Options{
		Tables: in.Dir.Path("clickhouse"), Dir: in.Dir.Path("sql"), Library: in.Config.ClickHouse.Library,
		Statements: in.Config.SQL.Statements, Memory: in.Config.SQL.MemoryBytes, Hosts: in.Config.SQL.Hosts,
		Hidden: hiddenFromPeople, Metrics: in.Metrics, Log: in.Log,
	})
	in.mu.Lock()
	defer in.mu.Unlock()
	in.people = reader
	return reader
}

// operatorSQL serves statements of whoever may open the admin socket; nil where no SQL is served.
func (in *Instance) operatorSQL() http.Handler {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.people == nil {
		return nil
	}
	return in.people.Operator()
}
