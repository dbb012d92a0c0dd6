package roles

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
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
	readers := in.Config.SQL.User != "" && at.engine != nil
	var reader *sqlport.Reader
	if at.sql != nil || readers {
		reader = in.NewSQLReader(e)
		roles = append(roles, supervise.Role{Name: "engine/people", Run: reader.Run})
	}
	if at.sql != nil {
		roles = append(roles, supervise.Role{Name: "engine/sql", Run: func(ctx context.Context) error { return at.sql.serveHTTP(ctx, reader.People()) }})
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
		if readers {
			readersPassword, err := config.ReadSecret("sql.password_file", in.Config.SQL.PasswordFile)
			if err != nil {
				return nil, err
			}
			if readersPassword == "" {
				return nil, errors.New("sql.password_file names an empty file; write a password into it")
			}
			handler = byUser(handler, in.Config.SQL.User, readersPassword, reader.Known())
		}
		roles = append(roles, supervise.Role{Name: "engine/server", Run: func(ctx context.Context) error { return at.engine.serveHTTP(ctx, handler) }})
	}
	return roles, nil
}

// byUser has what comes by the name of one user, who only reads, answered by readers if the password is that user's. Whoever gives another
// name, or none, is owner's to judge.
func byUser(owner http.Handler, user, password string, readers http.Handler) http.Handler {
	want := sha256.Sum256([]byte(password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, given := engine.Credentials(r)
		if name != user {
			owner.ServeHTTP(w, r)
			return
		}
		got := sha256.Sum256([]byte(given)) // digests, whose length does not reveal that of the password
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("X-ClickHouse-Exception-Code", "516")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "Code: 516. DB::Exception: %s: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)\n", user)
			return
		}
		readers.ServeHTTP(w, r)
	})
}
