package ws

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/limits"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	readersVariable = "MARKETLOG_STREAM_READERS"
	benchReaders    = 10_000
	benchChanged    = 200
	benchTicks      = 5
	benchRounds     = 3
	// stallTicks is after how many ticks a reader that does not read has a full socket; they take less
	// time than it takes to close it.
	stallTicks = 15
)

// TestMain makes the test's binary its own crowd of readers: a process of its own, so that what it
// costs is not the server's.
func TestMain(m *testing.M) {
	if spec := os.Getenv(readersVariable); spec != "" {
		if err := crowd(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// crowd opens sockets, the first so many of which read: for each message from then on it adds the
// time of arrival, and prints the 50th, 99th and last of each once all have it. A bare crowd sends
// no handshake.
func crowd(spec string) error {
	words := strings.Fields(spec) // address key readers stalled bare|ws
	readers, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	stalled, err := strconv.Atoi(words[3])
	if err != nil {
		return err
	}
	type arrival struct {
		message int
		at      time.Time
	}
	arrivals := make(chan arrival, readers)
	var opened sync.WaitGroup
	open := make(chan struct{}, 64)
	greetings := 2
	if words[4] == "bare" {
		greetings = 0
	}
	for i := range readers + stalled {
		opened.Add(1)
		open <- struct{}{}
		go func() {
			in, err := dialRaw(words[0], words[1], words[4] == "bare", i >= readers)
			if err == nil {
				for range greetings {
					if _, err = skipMessage(in); err != nil {
						break
					}
				}
			}
			<-open
			opened.Done()
			if err != nil {
				fmt.Fprintln(os.Stderr, "reader:", err)
				return
			}
			if i >= readers {
				return
			}
			for message := 0; ; message++ {
				if _, err := skipMessage(in); err != nil {
					return
				}
				arrivals <- arrival{message, time.Now()}
			}
		}()
	}
	opened.Wait()
	fmt.Println("open")
	for message := 0; ; message++ {
		at := make([]int64, 0, readers)
		for len(at) < readers {
			a := <-arrivals
			if a.message != message {
				return fmt.Errorf("message %d arrived before all had %d (%d of %d, %s)", a.message, message, len(at), readers, words[4])
			}
			at = append(at, a.at.UnixNano())
		}
		slices.Sort(at)
		fmt.Println(at[readers/2], at[readers*99/100], at[readers-1])
	}
}

var held sync.Map // keeps stalled sockets from being collected

// dialRaw connects; a tight socket takes little that is not read.
func dialRaw(address, key string, bare, tight bool) (*bufio.Reader, error) {
	var dialer net.Dialer
	if tight {
		dialer.Control = func(_, _ string, c syscall.RawConn) error {
			var failed error
			err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
			return errors.Join(err, failed)
		}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	held.Store(conn, true)
	in := bufio.NewReaderSize(conn, 512)
	if bare {
		return in, nil
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer %s\r\n\r\n", Path, address, key)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			return nil, err
		case first && !strings.HasPrefix(line, "HTTP/1.1 101"):
			return nil, fmt.Errorf("answered %s", line)
		case line == "\r\n":
			return in, nil
		}
	}
}

// skipMessage reads one message of a server, whose frames are not masked, and returns its size with
// its headers. A deflated one comes in several frames.
func skipMessage(in *bufio.Reader) (size int64, err error) {
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(in, head); err != nil {
			return 0, err
		}
		length, extended := int64(head[1]), map[byte]int{126: 2, 127: 8}[head[1]]
		if extended > 0 {
			digits := make([]byte, 8)
			if _, err := io.ReadFull(in, digits[8-extended:]); err != nil {
				return 0, err
			}
			length = int64(binary.BigEndian.Uint64(digits))
		}
		if _, err := io.CopyN(io.Discard, in, length); err != nil {
			return 0, err
		}
		if head[0]&0x0f >= 8 {
			continue // a ping or the like
		}
		if size += 2 + int64(extended) + length; head[0]&0x80 != 0 {
			return size, nil
		}
	}
}

// figures are one tick's, milliseconds from its start to the arrivals and CPU of this process, and what
// each socket costs of its memory, in kB.
type figures struct{ p50, p99, last, cpu, each float64 }

// fanOut opens a crowd, has broadcast called and returns the medians over the ticks.
func fanOut(b *testing.B, address, key, kind string, readers, stalled int, broadcast func()) figures {
	b.Helper()
	before := resident()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d %s", readersVariable, address, key, readers, stalled, kind))
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { cancel(); _ = command.Wait() }() // it is killed, which is its end
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "open" {
		b.Fatalf("opening the crowd: %q %v", lines.Text(), lines.Err())
	}
	each := (resident() - before) / float64(readers+stalled)
	var all [4][]float64
	warming := 1 // the first tick grows buffers
	if stalled > 0 {
		warming = stallTicks
	}
	for tick := range benchTicks + warming {
		cpu, start := spent(b), time.Now()
		broadcast()
		if !lines.Scan() {
			b.Fatalf("the crowd ended: %v", lines.Err())
		}
		used := (spent(b) - cpu).Seconds() * 1000
		if tick < warming {
			continue
		}
		for i, word := range strings.Fields(lines.Text()) {
			at, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			all[i] = append(all[i], float64(at-start.UnixNano())/1e6)
		}
		all[3] = append(all[3], used)
	}
	for i := range all {
		slices.Sort(all[i])
	}
	m := benchTicks / 2
	return figures{all[0][m], all[1][m], all[2][m], all[3][m], each}
}

// resident is this process's heap and stacks in kB, after a collection.
func resident() float64 {
	runtime.GC() // twice: pools keep what they hold through one
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / 1024
}

func spent(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFanOut_10kSubscribers200Symbols asks what the stream costs beside a loop that writes the
// same bytes to as many bare connections, in the same run; goals: the last arrival within 1.25 of the
// loop's, the CPU of a tick within 1.3, 22 kB a connection, and half of the readers stalled costs the
// others no more than 1.2 of what the whole crowd's last arrival took.
func BenchmarkFanOut_10kSubscribers200Symbols(b *testing.B) {
	readers := benchReaders
	if testing.Short() {
		readers = 500
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		b.Fatal(err)
	}
	if room := int(limit.Cur) - 500; readers > room {
		b.Logf("only %d files may be open: %d readers", limit.Cur, room)
		readers = room
	}
	for b.Loop() {
		var full, bare, stalled [benchRounds]figures
		for round := range benchRounds {
			full[round] = streamed(b, readers, 0)
			bare[round] = looped(b, readers)
			stalled[round] = streamed(b, readers/2, readers/2)
		}
		for _, f := range []struct {
			unit   string
			rounds [benchRounds]figures
			what   func(figures) float64
		}{
			{"p50-ms", full, func(f figures) float64 { return f.p50 }},
			{"p99-ms", full, func(f figures) float64 { return f.p99 }},
			{"bare-p99-ms", bare, func(f figures) float64 { return f.p99 }},
			{"last-ms", full, func(f figures) float64 { return f.last }},
			{"bare-last-ms", bare, func(f figures) float64 { return f.last }},
			{"cpu-ms/tick", full, func(f figures) float64 { return f.cpu }},
			{"bare-cpu-ms/tick", bare, func(f figures) float64 { return f.cpu }},
			{"kB/conn", full, func(f figures) float64 { return f.each }},
			{"half-stalled-p99-ms", stalled, func(f figures) float64 { return f.p99 }},
			{"half-stalled-last-ms", stalled, func(f figures) float64 { return f.last }},
		} {
			var values []float64
			for _, round := range f.rounds {
				values = append(values, f.what(round))
			}
			slices.Sort(values)
			b.ReportMetric(values[benchRounds/2], f.unit)
		}
		b.ReportMetric(float64(readers), "readers")
	}
}

// streamed measures the hub.
func streamed(b *testing.B, readers, stalled int) figures {
	w := newFixture(b, func(s *setup) {
		s.plans[limits.PlanEnterprise] = limits.Plan{Sockets: readers + stalled}
		s.stream.Connections = readers + stalled
	})
	defer func() {
		if err := w.stop(); err != nil {
			b.Error(err)
		}
	}()
	m := newMarket(w, 1, 2*benchChanged)
	return fanOut(b, w.base, w.key(limits.PlanEnterprise), "ws", readers, stalled, func() { m.benchTick() })
}

// benchTick changes the price of so many coins that lead and ends the second.
func (m *market) benchTick() {
	changed := 0
	for _, c := range m.coins {
		if changed == benchChanged {
			break
		}
		if m.w.priceCache.Leads(c) {
			changed++
			m.prices[c.ID] *= 1 + (m.rng.Float64()-0.5)/1000
			m.w.price(&eventsv1.Price{CoinId: c.ID, Price: m.prices[c.ID], Source: "kraken", Volume24H: float64(m.rng.Int64N(1e9))})
		}
	}
	m.w.tick()
}

// looped measures a loop that writes as many bytes to as many connections.
func looped(b *testing.B, readers int) figures {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
	}()
	defer func() {
		listener.Close()
		<-accepted
		for _, conn := range conns {
			conn.Close()
		}
	}()
	// As many bytes as a deflated message of 200 changes, as one frame.
	message := make([]byte, benchFrame(b))
	message[0], message[1] = 0x82, 126
	binary.BigEndian.PutUint16(message[2:], uint16(len(message)-4))
	return fanOut(b, listener.Addr().String(), "none", "bare", readers, 0, func() {
		for {
			mu.Lock()
			there := len(conns) == readers
			mu.Unlock()
			if there {
				break
			}
			time.Sleep(time.Millisecond)
		}
		for _, conn := range conns {
			if _, err := conn.Write(message); err != nil {
				b.Error(err)
			}
		}
	})
}

// benchFrame is the size of one deflated message as a client gets it.
func benchFrame(b *testing.B) int {
	w := newFixture(b, nil)
	defer func() {
		if err := w.stop(); err != nil {
			b.Error(err)
		}
	}()
	m := newMarket(w, 1, 2*benchChanged)
	in, err := dialRaw(w.base, w.key(limits.PlanPro), false, false)
	if err != nil {
		b.Fatal(err)
	}
	for range 2 {
		if _, err := skipMessage(in); err != nil {
			b.Fatal(err)
		}
	}
	m.benchTick()
	size, err := skipMessage(in)
	if err != nil {
		b.Fatal(err)
	}
	return int(size)
}
