package instance

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/latest"
)

// embeddedPriceDays keeps the embedded engine small: a day of 500 coins is some gigabytes.
const embeddedPriceDays = 1

// History is the ClickHouse of this instance, embedded or outside, opened by the first call.
func (in *Instance) History(ctx context.Context) (*history.Store, error) {
	cfg := history.Config{Database: in.Config.ClickHouse.Database, PriceDays: in.Config.Retention.PriceDays}
	if len(in.Config.ClickHouse.Addr) > 0 {
		password, err := config.ReadSecret("clickhouse.password_file", in.Config.ClickHouse.PasswordFile)
		if err != nil {
			return nil, err
		}
		if cfg.TLS, err = config.ClientTLS("clickhouse.tls", in.Config.ClickHouse.TLS); err != nil {
			return nil, err
		}
		cfg.Addr, cfg.User, cfg.Password = in.Config.ClickHouse.Addr[0], in.Config.ClickHouse.User, password
	} else {
		e, err := in.Engine()
		if err != nil {
			return nil, err
		}
		cfg.Transport = e.Transport()
		if cfg.PriceDays == 0 {
			cfg.PriceDays = embeddedPriceDays
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.history != nil {
		return in.history, nil
	}
	store, err := history.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	in.history = store
	in.closers = append(in.closers, func() { _ = store.Close() })
	return store, nil
}

// Latest is the cache of latest values: in the configured Redis, else in this process. It stays the same for all callers.
func (in *Instance) Latest() (*latest.Store, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.latest != nil {
		return in.latest, nil
	}
	if len(in.Config.Redis.Addr) == 0 {
		in.latest = latest.NewMemory()
		return in.latest, nil
	}
	options, err := in.RedisOptions(in.Config.Redis.Addr)
	if err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(options)
	in.latest = latest.New(client)
	in.closers = append(in.closers, func() { _ = client.Close() })
	return in.latest, nil
}

// RedisOptions are how to connect to the configured Redis, with its password and TLS.
func (in *Instance) RedisOptions(addrs []string) (*redis.UniversalOptions, error) {
	password, err := config.ReadSecret("redis.password_file", in.Config.Redis.PasswordFile)
	if err != nil {
		return nil, err
	}
	options := &redis.UniversalOptions{
		Addrs: addrs, Username: in.Config.Redis.User, Password: password,
		ContextTimeoutEnabled: true, // else a paused Redis delays shutdown
	}
	options.TLSConfig, err = config.ClientTLS("redis.tls", in.Config.Redis.TLS)
	return options, err
}

// lostTables is what the tables lack, in words; empty: nothing. Safe for concurrent use.
type lostTables struct{ what atomic.Pointer[string] }

// Set notes what they lack from now on.
func (l *lostTables) Set(what string) { l.what.Store(&what) }

// Waiting is what was noted last.
func (l *lostTables) Waiting() string {
	if what := l.what.Load(); what != nil {
		return *what
	}
	return ""
}
