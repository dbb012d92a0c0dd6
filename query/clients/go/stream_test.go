package marketlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/query/clients/go/api"
)

const welcome = `{"type":"welcome","timestamp":"2026-03-01T10:00:00Z","serverTime":"2026-03-01T10:00:00Z","simulated":true}` + "\n"

// update is a message with prices, after which the stream is at a cursor.
func update(cursor string, prices ...int) string {
	var data []string
	for _, price := range prices {
		data = append(data, fmt.Sprintf(`{"symbol":"BTC","price":%d}`, price))
	}
	return fmt.Sprintf(`{"type":"price_update","cursor":%q,"timestamp":"2026-03-01T10:00:00Z","data":[%s]}`, cursor, strings.Join(data, ",")) + "\n"
}

// follow takes prices from a stream, all where count is 0.
func follow(ctx context.Context, stream *Stream, count int) (prices []float64, failed error) {
	for price, err := range stream.Prices(ctx) {
		if err != nil {
			return prices, err
		}
		if prices = append(prices, price.Price); len(prices) == count {
			break
		}
	}
	return prices, nil
}

// asked are parameters of all connections.
func (s *script) parameters(name string) (values []string) {
	for _, request := range s.asked {
		values = append(values, request.URL.Query().Get(name))
	}
	return values
}

// Over connections that are lost anywhere, within a line too, each price comes once.
func TestStreamGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []func(*http.Request) (*http.Response, error){
			text(200, welcome+update("a", 1, 2)+"\n"+update("b", 3)[:40]), refused, text(503, "", "Retry-After", "2"), text(200, welcome),
			text(200, welcome+update("b", 3)+update("c", 4)[:20]+"\n"), text(200, update("c", 4, 5, 6)+update("d", 7)), text(200, update("c", 4, 5, 6)),
		}}
		client := s.client(t, Retry{})
		stream := client.Stream(StreamOptions{Symbols: []string{"BTC", "ETH"}, Delivery: All, Cursor: "0"})
		prices, err := follow(t.Context(), stream, 5)
		if err != nil || !slices.Equal(prices, []float64{1, 2, 3, 4, 5}) || stream.Cursor() != "b" || stream.Reconnects() != 5 || !client.Simulated() {
			t.Errorf("got %v, %v at %q over %d reconnections", prices, err, stream.Cursor(), stream.Reconnects())
		}
		// The message that was left half way comes whole again.
		if prices, err = follow(t.Context(), stream, 1); err != nil || !slices.Equal(prices, []float64{4}) {
			t.Errorf("got %v, %v behind it", prices, err)
		}
		if cursors := s.parameters("cursor"); !slices.Equal(cursors, []string{"0", "a", "a", "a", "a", "b", "b"}) {
			t.Errorf("the connections began with %v", cursors)
		}
		if first := s.asked[0].URL.RawQuery; first != "cursor=0&delivery=all&heartbeatMs=5000&symbols=BTC%2CETH" || s.asked[0].Header.Get("Accept") != "application/x-ndjson" {
			t.Errorf("asked for %s", first)
		}
	})
}

// A server that sends nothing is left after 20 s; what the caller takes for a price is not a silence.
func TestSilentConnectionsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(request *http.Request) (*http.Response, error) {
			read, write := io.Pipe()
			context.AfterFunc(request.Context(), func() { write.CloseWithError(request.Context().Err()) })
			return answer(200, io.MultiReader(bytes.NewBufferString(update("a", 1)), read))(request)
		}
		s := &script{answers: []func(*http.Request) (*http.Response, error){silent, text(200, update("b", 2))}}
		begin := time.Now()
		var took []time.Duration
		for _, err := range s.client(t, Retry{}).Stream(StreamOptions{Delivery: All}).Prices(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if took = append(took, time.Since(begin)); len(took) == 2 {
				break
			}
			time.Sleep(time.Minute) // of the test's own time
		}
		if silent := took[1] - time.Minute; took[0] != 0 || silent < 20*time.Second || silent > 21*time.Second {
			t.Errorf("prices came after %v", took)
		}
	})
}

// The failure is the caller's once it has lasted; so is what another try does not change.
func TestStreamFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []func(*http.Request) (*http.Response, error)
		is      func(error) bool
		lasted  time.Duration
	}{
		{"no server", slices.Repeat([]func(*http.Request) (*http.Response, error){refused}, 100), is[*ConnectionFailed], time.Minute},
		{"a server that sends no message", slices.Repeat([]func(*http.Request) (*http.Response, error){text(200, "")}, 100), is[*ConnectionFailed], time.Minute},
		{"lines that are cut", slices.Repeat([]func(*http.Request) (*http.Response, error){text(200, update("a", 1)[:40])}, 100),
			func(err error) bool { return is[*ConnectionFailed](err) && errors.Is(err, errEnded) }, time.Minute},
		{"a server that fails", slices.Repeat([]func(*http.Request) (*http.Response, error){text(500, "")}, 100), is[*ServerError], time.Minute},
		{"a wrong key", []func(*http.Request) (*http.Response, error){text(401, "{}")}, is[*NotAuthenticated], 0},
		{"a message that says so", []func(*http.Request) (*http.Response, error){
			text(200, welcome+`{"type":"error","timestamp":"2026-03-01T10:00:00Z","error":{"code":"LAGGING","message":"later"}}`+"\n"),
			text(200, welcome+`{"type":"error","timestamp":"2026-03-01T10:00:00Z","error":{"code":"VALIDATION_ERROR","message":"no such channel"}}`+"\n"),
		}, is[*InvalidRequest], 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: test.answers}
				begin := time.Now()
				_, err := follow(t.Context(), s.client(t, Retry{}).Stream(StreamOptions{Patience: 2 * time.Minute}), 0)
				if lasted := time.Since(begin); !test.is(err) || lasted < test.lasted || lasted > 2*time.Minute {
					t.Errorf("got %v after %s", err, lasted)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &script{answers: []func(*http.Request) (*http.Response, error){func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}}}
		s.answers = slices.Repeat(s.answers, 10)
		if _, err := follow(ctx, s.client(t, Retry{}).Stream(StreamOptions{}), 0); !is[*ConnectionFailed](err) || len(s.asked) != 3 {
			t.Errorf("got %v after %d connections", err, len(s.asked))
		}
	})
}

// Whoever wants to is asked before each wait for another connection, and may give up; without patience to lose, nothing else ends the stream.
func TestCallersAreAskedBeforeReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lagging := `{"type":"error","timestamp":"2026-03-01T10:00:00Z","error":{"code":"LAGGING","message":"later"}}` + "\n"
		s := &script{answers: append([]func(*http.Request) (*http.Response, error){text(200, welcome+update("a", 1)+lagging), text(503, "", "Retry-After", "20")},
			slices.Repeat([]func(*http.Request) (*http.Response, error){refused}, 200)...)}
		var told []error
		var waits time.Duration
		stream := s.client(t, Retry{}).Stream(StreamOptions{Patience: -1, Again: func(err error, wait time.Duration) bool {
			told = append(told, err)
			waits += wait
			return len(told) < 200
		}})
		begin := time.Now()
		var types []string
		var failed error
		for message, err := range stream.Messages(t.Context()) {
			if failed = err; err == nil {
				types = append(types, message.Type)
			}
		}
		if !slices.Equal(types, []string{"welcome", "price_update", "error"}) {
			t.Errorf("got %v", types)
		}
		if lasted := time.Since(begin); !is[*ConnectionFailed](failed) || failed != told[199] || len(s.asked) != 200 || lasted < 20*time.Minute || lasted >= waits {
			t.Errorf("got %v after %s and %d connections, told of waits of %s", failed, lasted, len(s.asked), waits)
		}
		if told[0].Error() != "the stream of http://server: later" || !is[*Unavailable](told[1]) {
			t.Errorf("told of %v and %v", told[0], told[1])
		}
	})
}

// Parameters that are texts are sent as they are, and are left out where the fields of their names would be.
func TestFurtherParametersOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []func(*http.Request) (*http.Response, error){
			text(200, update("", 1)), text(200, update("a", 1)), text(200, update("b", 2)+`{"type":"live"}`+"\n"), text(200, update("c", 3)), text(204, ""),
		}}
		parameters := url.Values{"from": {"yesterday"}, "speed": {"0"}, "new": {"x"}, "delivery": {"latest"}}
		prices, err := follow(t.Context(), s.client(t, Retry{}).Stream(StreamOptions{Delivery: All, Parameters: parameters}), 0)
		if err != nil || !slices.Equal(prices, []float64{1, 1, 2, 3}) {
			t.Errorf("got %v, %v", prices, err)
		}
		for name, want := range map[string][]string{
			"from": {"yesterday", "yesterday", "", "", ""}, "speed": {"0", "0", "0", "", ""}, "new": {"x", "x", "x", "x", "x"}, "cursor": {"", "", "a", "b", "c"},
			"delivery": {"all", "all", "all", "all", "all"},
		} {
			if got := s.parameters(name); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if len(parameters) != 4 || parameters.Get("delivery") != "latest" {
			t.Errorf("the caller's parameters became %v", parameters)
		}
	})
}

// A replay begins with its time and goes on with its cursor; in the present it has no speed, and after its end there is nothing.
func TestReplaysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		live, end := `{"type":"live"}`+"\n", `{"type":"replay_end"}`+"\n"
		s := &script{answers: []func(*http.Request) (*http.Response, error){
			text(200, update("", 1)), text(200, update("a", 1)), text(200, update("b", 2)+live), text(200, update("c", 3)+end+update("d", 4)),
			text(204, ""),
		}}
		client := s.client(t, Retry{})
		stream := client.Stream(StreamOptions{Since: since, Until: since.Add(time.Hour), Speed: 2.5})
		prices, err := follow(t.Context(), stream, 0)
		if err != nil || !slices.Equal(prices, []float64{1, 1, 2, 3}) {
			t.Errorf("got %v, %v", prices, err)
		}
		const begin = "2026-03-01T10:00:00.000Z"
		if from, speed := s.parameters("from"), s.parameters("speed"); !slices.Equal(from, []string{begin, begin, "", ""}) || !slices.Equal(speed, []string{"2.5", "2.5", "2.5", ""}) {
			t.Errorf("asked from %q at the speeds %q", from, speed)
		}
		if to, delivery := s.parameters("to"), s.parameters("delivery"); to[3] != "2026-03-01T11:00:00.000Z" || delivery[0] != "all" {
			t.Errorf("asked up to %q with delivery %q", to, delivery)
		}
		if prices, err := follow(t.Context(), stream, 0); err != nil || prices != nil {
			t.Errorf("got %v, %v of what is over", prices, err)
		}
	})
}

// What was not sent is an error where every price was promised, or reported to whoever asked.
func TestGapsAreTold(t *testing.T) {
	const gap = `{"type":"gap","reason":"too_old","until":"2026-03-01T10:00:00Z","timestamp":"2026-03-01T10:00:00Z","cursor":"g"}` + "\n"
	const state = `{"type":"initial_prices","timestamp":"2026-03-01T10:00:00Z","data":[{"price":9}]}` + "\n"
	start := func(options StreamOptions) *Stream {
		s := &script{answers: []func(*http.Request) (*http.Response, error){text(200, gap+state+update("a", 1))}}
		return s.client(t, Retry{}).Stream(options)
	}
	_, err := follow(t.Context(), start(StreamOptions{Delivery: All}), 1)
	if e, is := errors.AsType[*GapError](err); !is || e.Reason != "too_old" || e.Cursor != "g" || !strings.Contains(e.Error(), "after the cursor and up to 2026-03-01T10:00:00Z (too_old)") {
		t.Errorf("got %v", err)
	}
	var told []api.MessageGap
	if prices, err := follow(t.Context(), start(StreamOptions{Delivery: All, OnGap: func(gap api.MessageGap) { told = append(told, gap) }}), 1); err != nil || prices[0] != 1 || len(told) != 1 {
		t.Errorf("got %v, %v, told %v", prices, err, told)
	}
	if prices, err := follow(t.Context(), start(StreamOptions{WithoutSnapshot: true}), 2); err != nil || !slices.Equal(prices, []float64{9, 1}) {
		t.Errorf("got %v, %v of the newest prices", prices, err)
	}
	var types []string
	for message, err := range start(StreamOptions{Delivery: All}).Messages(t.Context()) {
		if types = append(types, message.Type); err != nil || len(types) == 3 {
			break
		}
	}
	if !slices.Equal(types, []string{"gap", "initial_prices", "price_update"}) {
		t.Errorf("got %v", types)
	}
}
