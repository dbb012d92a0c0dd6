package streamtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisProcess is a real Redis server without persistence. Its methods must not be called concurrently.
type RedisProcess struct{ server }

// Redis starts a Redis server for t alone and returns its address.
func Redis(t testing.TB) string {
	t.Helper()
	return StartRedis(t).Addr()
}

// StartRedis starts a Redis server for t alone, to be killed, paused and flushed at will.
func StartRedis(t testing.TB) *RedisProcess {
	t.Helper()
	InTier(t, TierRedis)
	program, err := exec.LookPath("redis-server")
	if err != nil {
		Missing(t, TierRedis, "no redis-server on PATH")
	}
	folder := t.TempDir()
	for range 3 {
		var ports []int
		if ports, err = freePorts(1); err != nil {
			t.Fatal(err)
		}
		port := strconv.Itoa(ports[0])
		redis := &RedisProcess{server{
			command: []string{
				program, "--bind", "127.0.0.1", "--port", port, "--dir", folder,
				"--save", "", "--appendonly", "no",
			},
			logPath: filepath.Join(folder, "redis.log"),
			addr:    "127.0.0.1:" + port,
			answers: redisAnswers,
		}}
		t.Cleanup(redis.kill)
		if err = redis.start(); err == nil {
			return redis
		}
		if !errors.Is(err, errExited) {
			t.Fatalf("starting Redis: %v\n%s", err, redis.logTail())
		}
	}
	t.Fatalf("starting Redis: %v", err)
	return nil
}

// Addr returns HOST:PORT; it stays the same through restarts.
func (r *RedisProcess) Addr() string { return r.addr }

// Kill ends the server at once; all its keys are lost.
func (r *RedisProcess) Kill() { r.kill() }

// Restart starts the server again on the same port, empty, and waits until it answers.
func (r *RedisProcess) Restart(t testing.TB) { t.Helper(); r.restart(t) }

// Pause stops the server at once: connections stay open and nothing is answered.
func (r *RedisProcess) Pause(t testing.TB) { t.Helper(); r.pause(t) }

// Resume ends a Pause.
func (r *RedisProcess) Resume(t testing.TB) { t.Helper(); r.signal(t, syscall.SIGCONT) }

// Flush deletes every key while the clients stay connected.
func (r *RedisProcess) Flush(t testing.TB) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: r.addr})
	defer client.Close()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatalf("flushing Redis: %v", err)
	}
}

func redisAnswers(addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("asking Redis: %w", err)
	}
	return nil
}
