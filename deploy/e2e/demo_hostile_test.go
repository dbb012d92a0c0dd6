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
)

// hostile is what a client that means no good sends, and what it is answered. Want 0 is a connection that ends without an
// answer.
type hostile struct {
	name, request string
	want          []int
}

// Each misuse of HTTP is answered with a documented error or ends the connection, never with a fault of the server or
// with anything of its inside, and what was sent does not stay in memory.
func TestDemoWithstandsHostileClients(t *testing.T) {
	d := runningDemo(t)
	before := d.resident(t)
	for _, c := range d.hostileRequests() {
		t.Run(c.name, func(t *testing.T) {
			status, body := d.raw(t, c.request)
			if !slices.Contains(c.want, status) {
				t.Errorf("got %d %.300s, want one of %v", status, body, c.want)
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
	// Much of it, and at once: connections that say nothing more, and bodies that are too large.
	var open []net.Conn
	for range 500 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		fmt.Fprintf(conn, "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{")
	}
	for range 200 {
		d.raw(t, d.post("/api/v1/symbols/resolve", "application/json", strings.Repeat("x", 1<<20)))
	}
	if status, _, err := d.ask("/api/v1/prices/BTC"); err != nil || status != http.StatusOK {
		t.Errorf("beside them others are answered %d, %v", status, err)
	}
	if after := d.resident(t); after > before+(400<<20) {
		t.Errorf("%d MB are resident, %d before", after>>20, before>>20)
	}
	for _, conn := range open {
		conn.Close()
	}
}

func (d *demo) hostileRequests() []hostile {
	get := func(path string, headers ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n" + strings.Join(headers, "") + "\r\n"
	}
	refused := []int{400, 404, 414, 431}
	return []hostile{
		{"a path that climbs", get("/api/v1/prices/../../../etc/passwd"), refused},
		{"a path that climbs, escaped", get("/api/v1/prices/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), refused},
		{"an escaped slash", get("/api/v1/coins/bit%2Fcoin"), refused},
		{"a NUL", get("/api/v1/coins/bit%00coin"), refused},
		{"a broken escape", get("/api/v1/coins/%zz"), refused},
		{"a path of 7 kB", get("/api/v1/coins/" + strings.Repeat("a", 7000)), refused},
		{"a path of 100 kB", get("/api/v1/coins/" + strings.Repeat("a", 100_000)), append(refused, 0)},
		{"100,000 symbols", get("/api/v1/prices?symbols=" + strings.Repeat("a,", 100_000)), append(refused, 0)},
		{"1,000 symbols", get("/api/v1/prices?symbols=" + strings.Repeat("b,", 1000)), refused},
		{"headers of 100 kB", get("/api/v1/prices/BTC", "X-Fill: "+strings.Repeat("a", 100_000)+"\r\n"), []int{431}},
		{"2,000 headers", get("/api/v1/prices/BTC", strings.Repeat("X-A: b\r\n", 2000)), []int{431}},
		{"a header in a parameter", get("/api/v1/coins/btc%0d%0aX-Injected:%20yes"), refused},
		{"a key with a line feed", "GET /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ck_live_x\n y\r\n\r\n", []int{400, 401, 0}},
		{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", []int{400, 0}},
		{"a method that is none", "BREW /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []int{400, 404, 405, 501, 0}},
		{"DELETE", "DELETE /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n\r\n", []int{405}},
		{"OPTIONS", "OPTIONS /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n\r\n", []int{200, 204, 405}},
		{"HEAD", "HEAD /api/v1/prices/BTC HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n\r\n", []int{200, 405}},
		{"JSON 60,000 deep", d.post("/api/v1/symbols/resolve", "application/json", strings.Repeat("[", 60_000)), []int{400}},
		{"JSON 20,000 deep in a field", d.post("/api/v1/symbols/resolve", "application/json", `{"symbol":`+strings.Repeat(`{"a":`, 10_000)), []int{400}},
		{"a body of 1 MB", d.post("/api/v1/symbols/resolve", "application/json", strings.Repeat("x", 1<<20)), []int{413}},
		{"a body of another type", d.post("/api/v1/symbols/resolve", "text/xml", "<a/>"), []int{415}},
		{"a body without a type", d.post("/api/v1/symbols/resolve", "", `{"symbol":"btc"}`), []int{200, 400, 415}},
		{"a batch of 101", d.post("/api/v1/symbols/resolve/batch", "application/json", `{"symbols":[`+strings.TrimSuffix(strings.Repeat(`"btc",`, 101), ",")+`]}`), []int{400}},
		{"a body that ends early", "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 100\r\nAuthorization: Bearer " + d.key + "\r\n\r\n{", []int{400, 408, 0}},
		{"a negative length", "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: -1\r\n\r\n", []int{400, 401, 411, 415, 0}},
		{"two lengths", "POST /api/v1/symbols/resolve HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", []int{400, 401, 0}},
		{"pipelined", strings.Replace(get("/api/v1/prices/BTC"), "Connection: close\r\n", "", 1) + get("/api/v1/prices/ETH"), []int{200}},
		{"JSON that is nested, to MCP", d.post("/mcp", "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+strings.Repeat("[", 30_000)), []int{200, 400}},
	}
}

func (d *demo) post(path, kind, body string) string {
	if kind != "" {
		kind = "Content-Type: " + kind + "\r\n"
	}
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + d.key + "\r\n" + kind +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// raw sends bytes, half closes, and returns the first answer; status 0 if the connection ended without one.
func (d *demo) raw(t *testing.T, request string) (status int, body string) {
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
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(response.Body) // as far as it came
	return response.StatusCode, string(content)
}

// resident is the demo's memory in bytes, of Linux.
func (d *demo) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.Process.Pid))
	if err != nil {
		t.Skip("not applicable: this system tells no resident memory")
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kB, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
