package roles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/query/limits"
)

// limitCall bounds a call of the store of limits: requests may wait for it.
const limitCall = 250 * time.Millisecond

// limiter is who admits requests: over all replicas where a Redis is named, else alone, with a file for the counts of months.
// Done closes what it opened.
func newLimiter(in *instance.Instance) (l *limits.Limiter, done func(), err error) {
	if len(in.Config.Redis.Addr) == 0 {
		path := in.Dir.Path("usage.json")
		if err := setAside(in, path); err != nil {
			return nil, nil, err
		}
		return limits.NewLimiter(time.Now, limits.NewUsageFile(path)), func() {}, nil
	}
	options, err := in.RedisOptions(in.Config.Redis.Addr)
	if err != nil {
		return nil, nil, err
	}
	// A client of its own: one call of the cache may take longer than a request can wait.
	options.MaxRetries = -1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = limitCall, limitCall, limitCall, limitCall
	client := redis.NewUniversalClient(options)
	// The process that had the directory before is gone, and so is the replica that it was.
	path := in.Dir.Path("replica")
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errors.Join(fmt.Errorf("reading the name of the replica before: %w", err), client.Close())
	}
	l = limits.NewSharedLimiter(time.Now, limits.NewLeaseStore(client), strings.TrimSpace(string(before)), in.Log)
	if err := os.WriteFile(path, []byte(l.Replica()+"\n"), 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("writing the name of the replica: %w", err), client.Close())
	}
	return l, func() { _ = client.Close() }, nil
}

// setAside renames a file of state that is not JSON, as a disk that failed leaves it: without it the instance begins again, and
// with it not at all.
func setAside(in *instance.Instance, path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Valid(content) {
		return nil
	}
	if err == nil {
		err = os.Rename(path, path+".damaged")
	}
	if err != nil {
		return fmt.Errorf("looking at a file of state: %w", err)
	}
	in.Log.Error("file of counts is damaged: renamed, counting restarts from zero", "file", path, "bytes", len(content), "kept", path+".damaged")
	return nil
}
