package latest

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// redisHashes are hashes in Redis or a cluster of it.
type redisHashes struct{ client redis.UniversalClient }

// putSource compares and sets the fields of one partition.
//
//go:embed put.lua
var putSource string

var putScript = redis.NewScript(putSource)

func (r redisHashes) put(ctx context.Context, partition int32, generation uint32, covered Range, fields []fieldValue) (whole bool, err error) {
	args := make([]any, 0, 3+3*len(fields))
	args = append(args, generation, covered.From, covered.Next)
	for _, f := range fields {
		args = append(args, f.name, f.offset, f.payload)
	}
	return putScript.Run(ctx, r.client, []string{key(partition)}, args...).Bool()
}

func (r redisHashes) load(ctx context.Context, partition int32) (map[string]string, error) {
	return r.client.HGetAll(ctx, key(partition)).Result()
}

// key is the hash of one partition; the braces keep it in one slot of a cluster.
func key(partition int32) string { return fmt.Sprintf("marketlog:prices:{%d}", partition) }
