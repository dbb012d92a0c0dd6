package embedded

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// Cache is a Redis-API server in this process. It holds latest values only: it never expires a key by itself, it runs
// scripts about twenty times slower than Redis, and it forgets all when the process ends, after which readers refill
// it from ClickHouse.
type Cache struct{ server *miniredis.Miniredis }

// StartCache listens on a free loopback port.
func StartCache() (*Cache, error) {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("starting the embedded cache: %w", err)
	}
	return &Cache{server}, nil
}

// Addr is the HOST:PORT that Redis clients connect to.
func (c *Cache) Addr() string { return c.server.Addr() }

// Close ends all connections and forgets the values.
func (c *Cache) Close() { c.server.Close() }
