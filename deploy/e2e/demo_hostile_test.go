package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// hostile is what a client that means no good sends, and what it is answered first. Want 0 is a connection that ends
// without an answer. answers is how many may come at most.
type hostile struct {
	name, request string
	want          []int
	answers       int
}

// Each misuse of HTTP is answered with a documented error or ends the connection, never with a fault of the server or
// with anything of its inside, and nothing in it is taken for a second request.
func TestDemoWithstandsHostileClients(t *testing.T) {
	d := runningDemo(t)
	for _, c := range d.hostileRequests() {
		t.Run(c.name, func(t *testing.T) {
			statuses, body := d.raw(t, c.request)
			status := statuses[0]
			if !slices.Contains(c.want, status) {
				t.Errorf("got %d %.300s, want one of %v", status, body, c.want)
			}
			if len(statuses) > c.answers {
				t.Errorf("got answers %v, want at most %d", statuses, c.answers)
			}
			if strings.Contains(body, "goroutine") || strings.Contains(body, ".go:") {
				t.Errorf("the answer shows the inside of the server: %.500s", body)
			}
			var e struct {
				Error struct{ Code, Message string }
			}
			if status >= http.StatusBadRequest && body != "" && !strings.Contains(body, `"jsonrpc":"2.0"`) && (json.Unmarshal([]byte(body), &e) != nil || e.Error.Code == "") {
				t.Errorf("the answer %d is none of the documented errors: %.300s", status, body)
			}
		})
	}
}

const (
	// stalled connections state that a body comes, and stop before its last byte.
	stalled, stalledBody = 500, 60_000
	// floods are bodies that the server reads whole before it refuses them, and how many are under way at once.
	floods, floodBody, flooders = 12_000, 60_000, 64
)

// What hostile clients send does not stay: neither what stalled connections hold, beyond what they sent, nor bodies that
// were read whole and refused. Those are more than three times as much as what the demo may grow by.
func TestDemoKeepsNothingOfFloods(t *testing.T) {
	d := filledDemo(t) // which has done with growing
	address := strings.TrimPrefix(d.base, "http://")
	before := d.resident(t)
	for range stalled {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", stalledBody, strings.Repeat("[", stalledBody-1))
	}
	// Without a key, so that nobody's limits are used up.
	request := fmt.Sprintf("POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		floodBody, strings.Repeat("[", floodBody))
	var flood errgroup.Group
	for range flooders {
		flood.Go(func() error {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(demoPatience)); err != nil {
				return err
			}
			from := bufio.NewReader(conn)
			for range floods / flooders {
				if _, err := io.WriteString(conn, request); err != nil {
					return fmt.Errorf("sending a body: %w", err)
				}
				response, err := http.ReadResponse(from, nil)
				if err != nil {
					return fmt.Errorf("reading an answer: %w", err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					return fmt.Errorf("reading an answer: %w", err)
				}
				if response.StatusCode != http.StatusUnauthorized {
					return fmt.Errorf("a body without a key is answered %d, want 401", response.StatusCode)
				}
			}
			return nil
		})
	}
	if err := flood.Wait(); err != nil {
		t.Fatal(err)
	}
	if status, _, err := d.ask("/api/v1/prices/BTC"); err != nil || status != http.StatusOK {
		t.Errorf("beside stalled connections others are answered %d, %v", status, err)
	}
	const most = 200 << 20
	grew := d.resident(t) - before
	t.Logf("%d MB were sent, the demo grew by %d MB", (floods*floodBody+stalled*stalledBody)>>20, grew>>20)
	if grew > most {
		t.Errorf("the demo grew by %d MB, want at most %d", grew>>20, most>>20)
	}
}

func (d *demo) hostileRequests() []hostile {
	get := func(path string, headers ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n" + strings.Join(headers, "") + "\r\n"
	}
	refused := []int{400, 404, 414, 431}
	return []hostile{
		{"a path that climbs", get("/api/v1/prices/../../../etc/passwd"), refused, 1},
		{"a path that climbs, escaped", get("/api/v1/prices/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), refused, 1},
		{"an escaped slash", get("/api/v1/coins/bit%2Fcoin"), refused, 1},
		{"a NUL", get("/api/v1/coins/bit%00coin"), refused, 1},
		{"a broken escape", get("/api/v1/coins/%zz"), refused, 1},
		{"a path of 7 kB", get("/api/v1/coins/" + strings.Repeat("a", 7000)), refused, 1},
		{"a path of 100 kB", get("/api/v1/coins/" + strings.Repeat("a", 100_000)), append(refused, 0), 1},
		{"100,000 symbols", get("/api/v1/prices?symbols=" + strings.Repeat("a,", 100_000)), append(refused, 0), 1},
		{"1,000 symbols", get("/api/v1/prices?symbols=" + strings.Repeat("b,", 1000)), refused, 1},
		{"headers of 100 kB", get("/api/v1/prices/BTC", "X-Fill: "+strings.Repeat("a", 100_000)+"\r\n"), []int{431}, 1},
		{"2,000 headers", get("/api/v1/prices/BTC", strings.Repeat("X-A: b\r\n", 2000)), []int{431}, 1},
		{"a header in a parameter", get("/api/v1/coins/btc%0d%0aX-Injected:%20yes"), refused, 1},
		{"a key with a line feed", "GET /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ck_live_x\n y\r\n\r\n", []int{400, 401, 0}, 1},
		{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", []int{400, 0}, 1},
		{"a method that is none", "BREW /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []int{400, 404, 405, 501, 0}, 1},
		{"DELETE", "DELETE /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n\r\n", []int{405}, 1},
		{"OPTIONS", "OPTIONS /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n\r\n", []int{200, 204, 405}, 1},
		{"HEAD", "HEAD /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n\r\n", []int{200, 405}, 1},
		{"JSON 60,000 deep", d.post("/api/v1/symbols/resolve", "application/json", strings.Repeat("[", 60_000)), []int{400}, 1},
		{"JSON 20,000 deep in a field", d.post("/api/v1/symbols/resolve", "application/json", `{"symbol":`+strings.Repeat(`{"a":`, 10_000)), []int{400}, 1},
		{"a body of 1 MB", d.post("/api/v1/symbols/resolve", "application/json", strings.Repeat("x", 1<<20)), []int{413}, 1},
		{"a body of another type", d.post("/api/v1/symbols/resolve", "text/xml", "<a/>"), []int{415}, 1},
		{"a body without a type", d.post("/api/v1/symbols/resolve", "", `{"symbol":"btc"}`), []int{200, 400, 415}, 1},
		{"a batch of 101", d.post("/api/v1/symbols/resolve/batch", "application/json", `{"symbols":[`+strings.TrimSuffix(strings.Repeat(`"btc",`, 101), ",")+`]}`), []int{400}, 1},
		{"a body that ends early", "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 100\r\nAuthorization: Bearer " + d.key + "\r\n\r\n{", []int{400, 408, 0}, 1},
		{"a negative length", "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: -1\r\n\r\n", []int{400, 401, 411, 415, 0}, 1},
		{"two lengths", "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", []int{400, 401, 0}, 1},
		{"JSON that is nested, to MCP", d.post("/mcp", "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+strings.Repeat("[", 30_000)), []int{200, 400}, 1},
		{"pipelined", keptOpen(get("/api/v1/prices/BTC")) + get("/api/v1/prices/ETH"), []int{200}, 2},
		// What one of two servers in a row takes for the end of a message must not be the beginning of another one here.
		{"a length and chunks", chunked("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + get("/api/v1/prices/ETH"), []int{400, 401}, 1},
		{"chunks and a length", chunked("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n" + get("/api/v1/prices/ETH"), []int{400, 401}, 1},
		{"chunks, obscured", chunked("Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n" + get("/api/v1/prices/ETH"), []int{400, 401, 501, 0}, 1},
		{"chunks, with a space before the colon", chunked("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n" + get("/api/v1/prices/ETH"), []int{400, 0}, 1},
		{"a chunk of a negative size", chunked("Transfer-Encoding: chunked\r\n") + "-1\r\nx\r\n" + get("/api/v1/prices/ETH"), []int{400, 0}, 1},
		{"a chunk of 2^63 bytes", chunked("Transfer-Encoding: chunked\r\n") + "8000000000000000\r\nx\r\n" + get("/api/v1/prices/ETH"), []int{400, 413, 0}, 1},
		{"a GET with a body that is a request", keptOpen(get("/api/v1/prices/BTC", "Content-Length: "+strconv.Itoa(len(get("/api/v1/prices/ETH")))+"\r\n")) + get("/api/v1/prices/ETH"), []int{200, 400}, 1},
		{"half-closed in the head", "GET /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\n", []int{400, 0}, 1},
		{"half-closed in a chunk", chunked("Transfer-Encoding: chunked\r\n") + "ff\r\n{", []int{400, 401, 408, 0}, 1},
		{"a field twice", d.post("/api/v1/symbols/resolve", "application/json", `{"symbol":"btc","source":"general","symbol":"eth"}`), []int{400}, 1},
		{"two hosts", "GET /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n", []int{400, 401, 0}, 1},
		{"two keys", get("/api/v1/prices/BTC", "Authorization: Bearer ck_live_x\r\n"), []int{400}, 1},
	}
}

// chunked is the head of a POST with the given headers, after which the connection stays open.
func chunked(headers string) string {
	return "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n"
}

// keptOpen is a request after which the connection stays open.
func keptOpen(request string) string {
	return strings.Replace(request, "Connection: close\r\n", "", 1)
}

func (d *demo) post(path, kind, body string) string {
	if kind != "" {
		kind = "Content-Type: " + kind + "\r\n"
	}
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n" + kind +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// raw sends bytes, half closes, and returns the statuses of all answers until the connection ends, with what the first one
// says; status 0 if there is none.
func (d *demo) raw(t *testing.T, request string) (statuses []int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(demoPatience)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(conn, request) // the server may end the connection first
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	method, _, _ := strings.Cut(request, " ")
	from := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(from, &http.Request{Method: method})
		if err != nil {
			break
		}
		content, _ := io.ReadAll(response.Body) // as far as it came
		response.Body.Close()
		if len(statuses) == 0 {
			body = string(content)
		}
		statuses = append(statuses, response.StatusCode)
	}
	if len(statuses) == 0 {
		return []int{0}, ""
	}
	return statuses, body
}

// resident is the demo's memory in bytes, of Linux.
func (d *demo) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.Process.Pid))
	if err != nil {
		t.Skip("not applicable: this system reports no resident memory")
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kB, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
