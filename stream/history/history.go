// Package history is the log materialized in ClickHouse: it opens the store, keeps its tables at
// the version this binary knows, inserts rows that may be inserted again without harm, and
// remembers in a ledger how far each sink has come.
//
// Every row carries a version made of the logic version and the offset of the input that caused
// it, and every table replaces by key: the same input inserted twice, or after a crash again, leaves
// the same rows under FINAL. Nothing rests on insert deduplication by the server.
package history

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream"
)

// Config says where ClickHouse is. With Transport set, requests go to the engine in this process.
type Config struct {
	// Addr is host:port of ClickHouse's HTTP interface.
	Addr     string
	Database string
	User     string
	Password string
	// Transport replaces the network, for the embedded engine; else nil.
	Transport http.RoundTripper
	// Connections bounds how many statements run at once.
	Connections int
}

// DefaultDatabase holds all tables.
const DefaultDatabase = "marketlog"

// Store is an open connection pool. Safe for concurrent use.
type Store struct {
	cfg  Config
	conn driver.Conn
}

// Open prepares the pool and the database; it does not migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Database == "" {
		cfg.Database = DefaultDatabase
	}
	if cfg.Connections == 0 {
		cfg.Connections = 8
	}
	first, err := clickhouse.Open(cfg.options("default"))
	if err != nil {
		return nil, fmt.Errorf("opening ClickHouse: %w", err)
	}
	defer first.Close()
	if err := first.Exec(ctx, "CREATE DATABASE IF NOT EXISTS `"+cfg.Database+"` ENGINE = Atomic"); err != nil {
		return nil, fmt.Errorf("creating database %s: %w", cfg.Database, unavailable(err))
	}
	conn, err := clickhouse.Open(cfg.options(cfg.Database))
	if err != nil {
		return nil, fmt.Errorf("opening ClickHouse: %w", err)
	}
	return &Store{cfg: cfg, conn: conn}, nil
}

// Close gives the connections back.
func (s *Store) Close() error { return s.conn.Close() }

// Conn is the pool itself, for queries.
func (s *Store) Conn() driver.Conn { return s.conn }

// Database is where the tables are.
func (s *Store) Database() string { return s.cfg.Database }

func (c Config) options(database string) *clickhouse.Options {
	opts := &clickhouse.Options{
		Protocol:     clickhouse.HTTP,
		Addr:         []string{c.Addr},
		Auth:         clickhouse.Auth{Database: database, Username: c.User, Password: c.Password},
		DialTimeout:  5 * time.Second,
		ReadTimeout:  5 * time.Minute,
		MaxOpenConns: c.Connections,
		MaxIdleConns: c.Connections,
		Settings: clickhouse.Settings{
			// An asynchronous insert is acknowledged before it is kept, or merged with others' rows.
			"async_insert": 0,
		},
	}
	if c.Transport != nil {
		opts.Addr = []string{"embedded:8123"}
		opts.TransportFunc = func(*http.Transport) (http.RoundTripper, error) { return c.Transport, nil }
	}
	return opts
}

// passing are what ClickHouse refuses now and may accept later, by its error codes
// (https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp).
var passing = []int32{
	159, // TIMEOUT_EXCEEDED
	202, // TOO_MANY_SIMULTANEOUS_QUERIES
	209, // SOCKET_TIMEOUT
	210, // NETWORK_ERROR
	241, // MEMORY_LIMIT_EXCEEDED
	242, // TABLE_IS_READ_ONLY
	243, // NOT_ENOUGH_SPACE
	252, // TOO_MANY_PARTS
	319, // UNKNOWN_STATUS_OF_INSERT
	394, // QUERY_WAS_CANCELLED
	999, // KEEPER_EXCEPTION
}

// unavailable marks errors after which the outcome is unknown or the same may succeed later; what
// ClickHouse refuses for good is not one.
func unavailable(err error) error {
	var refused *clickhouse.Exception
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &refused) && !slices.Contains(passing, refused.Code):
		return err
	default:
		return fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
}
