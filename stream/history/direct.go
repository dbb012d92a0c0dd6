package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/marketlog/marketlog/stream"
)

const dialTimeout = 5 * time.Second

func (c Config) direct() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConns:        c.Connections,
		MaxIdleConnsPerHost: c.Connections,
		// Less than the 30 s after which a server closes an idle connection by default: on one that
		// it has just closed an insert fails.
		IdleConnTimeout: 20 * time.Second,
		TLSClientConfig: c.TLS.Clone(), // a nil one stays nil
	}
}

// send makes one statement over ClickHouse's HTTP interface
// (https://clickhouse.com/docs/interfaces/http) and returns what it puts out, to be closed.
func (s *Store) send(ctx context.Context, statement string, rows io.Reader) (io.ReadCloser, error) {
	values := url.Values{
		"query":    {statement},
		"database": {s.cfg.Database},
		// An asynchronous insert is acknowledged before it is kept, or merged with others' rows.
		"async_insert": {"0"},
		// Without it a block is written as it is; with it, replaced by its own rules first, which FINAL
		// and merges do anyway. It would double the cost of an insert.
		"optimize_on_insert":              {"0"},
		"max_partitions_per_insert_block": {strconv.Itoa(maxPartitions)},
	}
	addr, scheme := cmp.Or(s.cfg.Addr, "embedded"), "http"
	if s.cfg.TLS != nil {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+addr+"/?"+values.Encode(), rows)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if s.cfg.User != "" || s.cfg.Password != "" {
		req.Header.Set("X-ClickHouse-User", cmp.Or(s.cfg.User, "default")) // as the driver does
		req.Header.Set("X-ClickHouse-Key", s.cfg.Password)
	}
	resp, err := s.direct.RoundTrip(req)
	if err != nil {
		return nil, Unavailable(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, Unavailable(refusal(resp))
	}
	return &output{ReadCloser: resp.Body, tag: resp.Header.Get("X-ClickHouse-Exception-Tag")}, nil
}

// refusal is ClickHouse's exception in a response, or what else is in its place.
func refusal(resp *http.Response) error {
	const most = 4 << 10
	text, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // a part of the message is better than none
	code, err := strconv.ParseInt(resp.Header.Get("X-ClickHouse-Exception-Code"), 10, 32)
	if err != nil {
		return fmt.Errorf("ClickHouse answers %s: %s", resp.Status, text)
	}
	return &clickhouse.Exception{Code: int32(code), Message: strings.TrimSpace(string(text))}
}

// output is what a statement puts out. Where a statement fails after its first bytes are out,
// ClickHouse ends them by an exception between tags; a reader gets an error in place of the end.
type output struct {
	io.ReadCloser
	tag  string
	last []byte
}

func (o *output) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	end := o.tag + "\r\n__exception__\r\n"
	o.last = append(o.last, p[max(0, n-len(end)):n]...)
	o.last = o.last[max(0, len(o.last)-len(end)):]
	switch {
	case err == nil:
	case !errors.Is(err, io.EOF):
		err = Unavailable(err)
	case o.tag != "" && string(o.last) == end:
		err = fmt.Errorf("%w: the statement failed after some of its output", stream.ErrUnavailable)
	}
	return n, err
}

// passing are what ClickHouse refuses now and may accept later, by its error codes
// (https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp).
var passing = []int32{
	74,   // CANNOT_READ_FROM_FILE_DESCRIPTOR
	75,   // CANNOT_WRITE_TO_FILE_DESCRIPTOR
	76,   // CANNOT_OPEN_FILE
	159,  // TIMEOUT_EXCEEDED
	202,  // TOO_MANY_SIMULTANEOUS_QUERIES
	209,  // SOCKET_TIMEOUT
	210,  // NETWORK_ERROR
	225,  // NO_ZOOKEEPER
	236,  // ABORTED, by a server that shuts down
	241,  // MEMORY_LIMIT_EXCEEDED
	242,  // TABLE_IS_READ_ONLY
	243,  // NOT_ENOUGH_SPACE
	252,  // TOO_MANY_PARTS
	279,  // ALL_CONNECTION_TRIES_FAILED
	285,  // TOO_FEW_LIVE_REPLICAS
	286,  // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319,  // UNKNOWN_STATUS_OF_INSERT
	394,  // QUERY_WAS_CANCELLED
	439,  // CANNOT_SCHEDULE_TASK
	741,  // TABLE_UUID_MISMATCH, where tables changed names meanwhile
	999,  // KEEPER_EXCEPTION
	1000, // POCO_EXCEPTION
	1001, // STD_EXCEPTION
}

// Unavailable marks errors after which the outcome is unknown or the same may succeed later; what
// ClickHouse refuses for good is not one.
func Unavailable(err error) error {
	var refused *clickhouse.Exception
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && !slices.Contains(passing, refused.Code):
		return err
	default:
		return fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
}
