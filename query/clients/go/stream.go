package marketlog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/marketlog/marketlog/query/clients/go/api"
)

// Delivery is what of the prices a stream gives.
type Delivery string

// The deliveries: the newest price of each coin, the current ones first; or each price that is written, exactly once.
const (
	Latest Delivery = "latest"
	All    Delivery = "all"
)

// StreamOptions are what a stream is to give; all may be left out.
type StreamOptions struct {
	// Symbols are coins by symbol or id; none: all.
	Symbols []string
	// Delivery is Latest where it is empty.
	Delivery Delivery
	// Channels are those of the server's guide to the stream; none: prices. What others send comes from Messages.
	Channels []string
	// Cursor is that of a stream before this one, to go on after it.
	Cursor string
	// WithoutSnapshot leaves the current prices at the beginning out.
	WithoutSnapshot bool
	// Interval is the least time between two messages of prices, with Latest: one second to a minute.
	Interval time.Duration
	// Patience is after how long without any message the last failure is returned; 0 is five minutes, and less is never.
	Patience time.Duration
	// Again is asked before each wait for another connection: with what failed, and how long the wait is. Where it says false, the failure is
	// the stream's. nil waits.
	Again func(err error, wait time.Duration) bool
	// OnGap is called with what the stream cannot send, in place of a GapError.
	OnGap func(api.MessageGap)
	// Since begins in the past, with every price: a replay, which ends at Until or, where that is zero, goes on with the present.
	Since, Until time.Time
	// Speed is how many seconds of the log come in one; 0 is as many as are read.
	Speed float64
	// Parameters are further ones of GET /api/v1/stream by their names there, as texts that the server reads. A field above that is not zero goes
	// before the parameter of its name.
	Parameters url.Values
}

// Message is one message of the stream.
type Message struct {
	// Type states what it is: with package api, JSON of a price_update is a MessagePriceUpdate, and so on.
	Type string `json:"type"`
	// Cursor is where a stream begun with it goes on: after this message. Empty where it moves nothing.
	Cursor string `json:"cursor"`
	// JSON is the whole message.
	JSON json.RawMessage `json:"-"`
}

// Stream follows a server over any number of disconnects and restarts of it. It is for one goroutine at a time; where a loop over it was left,
// another goes on after the last message that was taken whole.
type Stream struct {
	client       *Client
	options      StreamOptions
	cursor       string
	reconnects   int
	failures     int // since the last message
	failingSince time.Time
	present      bool // whether a replay has come to it
}

// Stream returns a stream that connects when it is ranged over.
func (c *Client) Stream(options StreamOptions) *Stream {
	if !options.Since.IsZero() {
		options.Delivery = All
	}
	if options.Patience == 0 {
		options.Patience = 5 * time.Minute
	}
	return &Stream{client: c, options: options, cursor: options.Cursor}
}

// Prices gives the newest price of each coin as it changes, the current ones first; without symbols those of all coins. It is the Prices of a
// Stream that needs nothing else.
func (c *Client) Prices(ctx context.Context, symbols ...string) iter.Seq2[api.WsStreamed, error] {
	return c.Stream(StreamOptions{Symbols: symbols}).Prices(ctx)
}

// Cursor is where a stream begun with it goes on: after the last message whose prices were all taken. Keep it together with what was made of
// them; it is empty before the first message.
func (s *Stream) Cursor() string { return s.cursor }

// Reconnects is how often the connection was lost, or could not be made.
func (s *Stream) Reconnects() int { return s.reconnects }

// Prices gives prices until the loop is left or the context ends, or to the end of a replay. An error is the last that it gives.
func (s *Stream) Prices(ctx context.Context) iter.Seq2[api.WsStreamed, error] {
	return func(yield func(api.WsStreamed, error) bool) {
		for message, err := range s.Messages(ctx) {
			var prices []api.WsStreamed
			if err == nil {
				prices, err = s.prices(message)
			}
			if err != nil {
				yield(api.WsStreamed{}, err)
				return
			}
			for _, price := range prices {
				if !yield(price, nil) {
					return
				}
			}
		}
	}
}

// prices are those in a message. With delivery all the prices at the beginning are state, not one of the prices that are written.
func (s *Stream) prices(message Message) ([]api.WsStreamed, error) {
	latest := s.options.Delivery != All
	switch {
	case message.Type == "gap":
		var gap api.MessageGap
		if err := json.Unmarshal(message.JSON, &gap); err != nil {
			return nil, fmt.Errorf("reading %s: %w", message.Type, err)
		}
		if s.options.OnGap != nil {
			s.options.OnGap(gap)
		} else if !latest {
			return nil, &GapError{Reason: gap.Reason, Since: gap.Since, Until: gap.Until, Cursor: gap.Cursor}
		}
	case message.Type == "price_update" || message.Type == "initial_prices" && latest:
		var update api.MessagePriceUpdate
		if err := json.Unmarshal(message.JSON, &update); err != nil {
			return nil, fmt.Errorf("reading %s: %w", message.Type, err)
		}
		return update.Data, nil
	}
	return nil, nil
}

// Messages gives whole messages in place of prices, those about the stream itself included. A gap is a message here, not an error; the server's own
// errors are a message and then what a failure is. Cursor moves when the next message is asked for.
func (s *Stream) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			err := s.follow(ctx, func(message Message) bool { return yield(message, nil) })
			if errors.Is(err, errOver) {
				return
			}
			wait, again := s.failed(err)
			again = again && ctx.Err() == nil && (s.options.Again == nil || s.options.Again(err, wait))
			if !again || !sleep(ctx, wait) {
				yield(Message{}, err)
				return
			}
			s.reconnects++
		}
	}
}

const (
	heartbeat = 5 * time.Second
	// A connection that is silent for so long is given up.
	silence = 4 * heartbeat
	// No message is longer, in bytes; the longest holds the prices of all coins.
	longestLine = 32 << 20
)

var (
	// errOver is the end of a replay, or that the caller has left the loop.
	errOver   = errors.New("the stream is over")
	errSilent = fmt.Errorf("nothing came for %s", silence)
	errEnded  = errors.New("the server ended the stream")
)

// follow gives the messages of one connection, until that fails or is over.
func (s *Stream) follow(ctx context.Context, yield func(Message) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	broken := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return &ConnectionFailed{URL: s.client.base, Err: err}
	}

	asked := s.asks()
	request, err := s.client.request(ctx, asked.method, asked.path+"?"+asked.query.Encode(), "application/x-ndjson", nil)
	if err != nil {
		return err
	}
	response, err := s.client.http.Do(request)
	if err != nil {
		return broken(err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent:
		return errOver // nothing is left of a replay
	default:
		return refusal(response)
	}
	lines := bufio.NewScanner(&heard{response.Body, quiet})
	lines.Buffer(nil, longestLine)
	lines.Split(wholeLines)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue // it keeps the connection open
		}
		message, failed := s.read(bytes.Clone(lines.Bytes()))
		if told := failed == nil || message.Type == "error"; told && !yield(message) {
			return errOver
		}
		if failed != nil {
			return failed
		}
		s.cursor = cmp.Or(message.Cursor, s.cursor)
		if message.Type == "replay_end" {
			return errOver
		}
		s.present = s.present || message.Type == "live"
	}
	if err := lines.Err(); err != nil {
		return broken(err)
	}
	return broken(errEnded)
}

// asks is what a connection begins with: a replay that has begun goes on with its cursor, and has no speed once it has come to the present.
func (s *Stream) asks() call {
	o := s.options
	asked := call{method: "GET", path: "/api/v1/stream", query: maps.Clone(o.Parameters)}
	asked.with("symbols", o.Symbols)
	asked.with("channels", o.Channels)
	asked.with("delivery", string(o.Delivery))
	asked.with("cursor", s.cursor)
	asked.with("intervalMs", o.Interval.Milliseconds())
	asked.with("heartbeatMs", heartbeat.Milliseconds())
	asked.with("to", o.Until)
	if o.WithoutSnapshot {
		asked.query.Set("snapshot", "false")
	}
	asked.with("from", o.Since)
	asked.with("speed", o.Speed)
	if s.cursor != "" {
		asked.query.Del("from")
	}
	if s.present {
		asked.query.Del("speed")
	}
	return asked
}

// read is the message in a line, or the error that it tells of.
func (s *Stream) read(line []byte) (Message, error) {
	message := Message{JSON: line}
	if err := json.Unmarshal(line, &message); err != nil {
		return message, &ConnectionFailed{URL: s.client.base, Err: fmt.Errorf("reading a message: %w", err)}
	}
	switch message.Type {
	case "welcome", "subscribed", "resumed": // a connection that ends after these has brought nothing: the next try waits longer
	case "error":
		var told api.MessageError
		if err := json.Unmarshal(line, &told); err != nil {
			return message, &ConnectionFailed{URL: s.client.base, Err: fmt.Errorf("reading an error: %w", err)}
		}
		if told.Error.Code == "LAGGING" {
			return message, &ConnectionFailed{URL: s.client.base, Err: errors.New(told.Error.Message)}
		}
		return message, errorOf(http.StatusBadRequest, api.ErrorDetail{Code: told.Error.Code, Message: told.Error.Message}, 0)
	default:
		s.failures = 0
	}
	if message.Type == "welcome" {
		var welcome api.MessageWelcome
		if err := json.Unmarshal(line, &welcome); err == nil { // what it tells is no price
			s.client.simulated.Store(welcome.Simulated)
		}
	}
	return message, nil
}

// failed is how long to wait until the next try, if there is one.
func (s *Stream) failed(err error) (wait time.Duration, is bool) {
	refused, isRefusal := errors.AsType[*APIError](err)
	if !again(err) && (!isRefusal || refused.Status < 500) {
		return 0, false
	}
	if s.failures == 0 {
		s.failingSince = time.Now()
	}
	wait = min(30*time.Second, pause(err, s.failures))
	s.failures++
	return wait, s.options.Patience < 0 || time.Since(s.failingSince)+wait <= s.options.Patience
}

// heard counts the silence of a connection while it is read from: what the caller takes for its work does not count as the server's silence.
type heard struct {
	from  io.Reader
	quiet *time.Timer
}

func (h *heard) Read(into []byte) (int, error) {
	h.quiet.Reset(silence)
	defer h.quiet.Stop()
	return h.from.Read(into)
}

// wholeLines splits into lines, without what is left when a connection ends: the part of a line that was lost, and comes again.
func wholeLines(text []byte, _ bool) (advance int, line []byte, err error) {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return end + 1, text[:end], nil
	}
	return 0, nil, nil
}
