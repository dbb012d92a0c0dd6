// Package history is the log materialized in ClickHouse: it opens the store, keeps its tables and views at the version this binary knows,
// inserts blocks of rows that may be inserted again without harm, drops what need not be kept, measures and checks what is on disk, and
// remembers in a ledger how far each sink has come. What is in the rows and what is asked of them is its sub-packages': rows, past, shadow
// and read.
//
// Every row carries a version made of the logic version and the offset of the input that caused it, and every table replaces by key: the same
// input inserted twice, or after a crash again, leaves the same rows under FINAL. Nothing rests on insert deduplication by the server.
package history

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Config says where ClickHouse is. With Transport set, requests go to the engine in this process.
type Config struct {
	// Addr is host:port of ClickHouse's HTTP interface.
	Addr     string
	Database string
	User     string
	Password string
	// TLS secures the connection to Addr; nil: in the clear.
	TLS *tls.Config
	// Transport replaces the network, for the embedded engine; else nil.
	Transport http.RoundTripper
	// Connections bounds how many statements run at once.
	Connections int
	// PriceDays is how many days of prices are kept to the second; 0 is the days of the topic table. The last of each
	// hour is kept for ever.
	PriceDays int
}

// DefaultDatabase holds all tables.
const DefaultDatabase = "marketlog"

// Store is an open connection pool. Safe for concurrent use.
type Store struct {
	cfg  Config
	conn driver.Conn
	// direct is the way of inserts and digests, which clickhouse-go has none for: it would
	// describe the table before every insert and build a big.Int for every version.
	direct http.RoundTripper
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
		return nil, fmt.Errorf("creating database %s: %w", cfg.Database, Unavailable(err))
	}
	conn, err := clickhouse.Open(cfg.options(cfg.Database))
	if err != nil {
		return nil, fmt.Errorf("opening ClickHouse: %w", err)
	}
	return &Store{cfg: cfg, conn: conn, direct: cfg.direct()}, nil
}

// Close gives the connections back.
func (s *Store) Close() error {
	if t, ok := s.direct.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return s.conn.Close()
}

// Conn is the pool itself, for queries.
func (s *Store) Conn() driver.Conn { return s.conn }

// Database is where the tables are.
func (s *Store) Database() string { return s.cfg.Database }

// maxPartitions is how many partitions the rows of one insert may be of: of a log in which hours pass from record to record, those of a batch
// are of more than the hundred that ClickHouse allows by default.
const maxPartitions = 10_000

func (c Config) options(database string) *clickhouse.Options {
	opts := &clickhouse.Options{
		Protocol:     clickhouse.HTTP,
		Addr:         []string{c.Addr},
		Auth:         clickhouse.Auth{Database: database, Username: c.User, Password: c.Password},
		DialTimeout:  dialTimeout,
		ReadTimeout:  5 * time.Minute,
		MaxOpenConns: c.Connections,
		MaxIdleConns: c.Connections,
		Settings:     clickhouse.Settings{"async_insert": 0, "max_partitions_per_insert_block": maxPartitions},
		TLS:          c.TLS,
	}
	if c.Transport != nil {
		opts.Addr = []string{"embedded:8123"}
		opts.TransportFunc = func(*http.Transport) (http.RoundTripper, error) { return c.Transport, nil }
	}
	return opts
}
