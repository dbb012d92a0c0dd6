package roles

import (
	"context"
	"errors"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
)

// engineRoles serve the embedded engine: read-only SQL, and in the role engine all of it to the other roles.
func engineRoles(in *instance.Instance, at Ports) ([]supervise.Role, error) {
	if at.sql == nil && at.engine == nil {
		return nil, nil
	}
	in.Opening("opening the tables")
	e, err := in.Engine()
	if err != nil {
		return nil, err
	}
	var roles []supervise.Role
	if at.sql != nil {
		reader := in.NewSQLReader(e)
		roles = append(roles,
			supervise.Role{Name: "engine/people", Run: reader.Run},
			supervise.Role{Name: "engine/sql", Run: func(ctx context.Context) error { return at.sql.serveHTTP(ctx, reader.People()) }})
	}
	if at.engine != nil {
		password, err := config.ReadSecret("clickhouse.password_file", in.Config.ClickHouse.PasswordFile)
		if err != nil {
			return nil, err
		}
		if password == "" { // it would let nobody in
			return nil, errors.New("clickhouse.password_file names an empty file; write a password into it")
		}
		handler := engine.ServerHandler(e, password)
		roles = append(roles, supervise.Role{Name: "engine/server", Run: func(ctx context.Context) error { return at.engine.serveHTTP(ctx, handler) }})
	}
	return roles, nil
}
