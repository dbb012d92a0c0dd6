package querytest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/marketlog/marketlog/query"
)

const (
	loadVariable    = "MARKETLOG_LOAD"
	loadConnections = 64
	loadFor         = 2 * time.Second
)

// Load makes a test's binary the load of Measure where that started it, and reports it: a process of its own, so that
// what it costs is not the server's. It is called first in TestMain.
func Load() bool {
	target := os.Getenv(loadVariable)
	if target == "" {
		return false
	}
	fmt.Println(load(target, os.Getenv(loadVariable+"_KEY"), os.Getenv(loadVariable+"_BODY")))
	return true
}

// load asks for one address on many connections, each waiting for its answer, and returns the
// answers a second.
func load(target, key, body string) float64 {
	host, path, _ := strings.Cut(target, "/")
	head := " /" + path + " HTTP/1.1\r\nHost: " + host + "\r\n"
	if key != "" {
		head += "Authorization: Bearer " + key + "\r\n"
	}
	request := []byte("GET" + head + "\r\n")
	if body != "" {
		request = []byte("POST" + head + "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: " +
			strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	}
	var answers atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range loadConnections {
		all.Go(func() {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			in := bufio.NewReaderSize(conn, 16<<10)
			for time.Since(start) < loadFor {
				if _, err := conn.Write(request); err != nil {
					panic(err)
				}
				if err := answer(in); err != nil {
					panic(err)
				}
				answers.Add(1)
			}
		})
	}
	all.Wait()
	return float64(answers.Load()) / time.Since(start).Seconds()
}

// answer reads one answer, which must be a success. It looks at the head as a whole: a load that took
// each header by itself would charge the server for the load's own work.
func answer(in *bufio.Reader) error {
	if _, err := in.Peek(1); err != nil {
		return err
	}
	head, err := in.Peek(in.Buffered())
	if err != nil {
		return err
	}
	end := bytes.Index(head, []byte("\r\n\r\n"))
	for end < 0 {
		if head, err = in.Peek(len(head) + 1); err != nil {
			return fmt.Errorf("reading a head of over %d bytes: %w", len(head), err)
		}
		end = bytes.Index(head, []byte("\r\n\r\n"))
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("answered %s", head)
	}
	_, after, found := bytes.Cut(head[:end+2], []byte("Content-Length: "))
	digits, _, whole := bytes.Cut(after, []byte("\r\n"))
	length, err := strconv.Atoi(string(digits))
	if !found || !whole || err != nil {
		return fmt.Errorf("answered without a length: %s", head[:end])
	}
	_, err = in.Discard(end + 4 + length)
	return err
}

// Measure returns the answers a second to a path, and what each cost this process in microseconds of CPU: the
// figure to trust while the machine does other work. Base is host:port, an empty key asks without one.
func Measure(b *testing.B, base, path, key string) (rate, cpu float64) {
	b.Helper()
	return MeasurePosts(b, base, path, key, "")
}

// MeasurePosts is Measure of what is posted, a body in JSON; an empty one is not.
func MeasurePosts(b *testing.B, base, path, key, body string) (rate, cpu float64) {
	b.Helper()
	before := spent(b)
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), loadVariable+"="+base+path, loadVariable+"_KEY="+key, loadVariable+"_BODY="+body)
	out, err := command.Output()
	if err != nil {
		b.Fatalf("running the load: %v", err)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatalf("the load printed %q: %v", out, err)
	}
	return n, float64((spent(b) - before).Microseconds()) / (n * loadFor.Seconds())
}

// spent is the CPU time of this process, without its children's.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Bare serves the same bytes at a path and nothing else, through as large a buffer, until the benchmark ends: what any
// server can give. It returns host:port.
func Bare(b *testing.B, path string, body []byte) string {
	b.Helper()
	app := fiber.New(fiber.Config{DisableStartupMessage: true, WriteBufferSize: query.WriteBuffer})
	route, _, _ := strings.Cut(path, "?")
	app.Get(route, func(c *fiber.Ctx) error {
		c.Context().Response.Header.SetContentType("application/json")
		c.Context().Response.SetBodyRaw(body)
		return nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- app.Listener(listener) }()
	b.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			b.Error(err)
		}
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return listener.Addr().String()
}
