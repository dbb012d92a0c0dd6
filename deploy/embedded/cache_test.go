package embedded

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// The compare-and-set script of latest values needs scripts with hashes.
func TestCacheRunsScripts(t *testing.T) {
	cache, err := StartCache()
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	client := redis.NewClient(&redis.Options{Addr: cache.Addr()})
	defer client.Close()
	script := redis.NewScript(`redis.call('HSET', KEYS[1], 'offset', ARGV[1]) return redis.call('HGET', KEYS[1], 'offset')`)
	got, err := script.Run(t.Context(), client, []string{"price:bitcoin"}, 7).Text()
	if err != nil || got != "7" {
		t.Fatalf("got %q, %v, want 7", got, err)
	}
}
