package deploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
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
		handler, err := engine.Handler(e, engine.DefaultLimits())
		if err != nil {
			return nil, fmt.Errorf("preparing the SQL port: %w", err)
		}
		roles = append(roles, Role{Name: "engine/sql", Run: func(ctx context.Context) error { return at.sql.serveHTTP(ctx, handler) }})
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
