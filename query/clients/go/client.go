package marketlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// Options are how a client is made; all may be left out.
type Options struct {
	// URL is the server's, else the variable MARKETLOG_URL, else http://127.0.0.1:8080.
	URL string
	// Key is an API key, else the variable MARKETLOG_API_KEY.
	Key string
	// Timeout is of each attempt of a call; 30 s.
	Timeout time.Duration
	Retry   Retry
	// Transport sends the requests; [http.DefaultTransport].
	Transport http.RoundTripper
}

// Client asks one server. It may be used by several goroutines.
type Client struct {
	base, key string
	timeout   time.Duration
	retry     Retry
	http      *http.Client
	simulated atomic.Bool
	position  atomic.Value // a string
}

// New returns a client; nothing is asked yet. It fails where the address of the server is not one of HTTP.
func New(options Options) (*Client, error) {
	base := cmp.Or(options.URL, os.Getenv("MARKETLOG_URL"), "http://127.0.0.1:8080")
	if !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return nil, fmt.Errorf("the address of the server is %q; it must begin with http:// or https://", base)
	}
	key := cmp.Or(options.Key, os.Getenv("MARKETLOG_API_KEY"))
	c := &Client{base: strings.TrimRight(base, "/"), key: key, timeout: options.Timeout, retry: options.Retry.whole()}
	if c.timeout == 0 {
		c.timeout = 30 * time.Second
	}
	// An answer that sends elsewhere is an error: the key is for this server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &http.Client{Transport: options.Transport, CheckRedirect: stay}
	return c, nil
}

// Simulated reports whether the last answer was made from invented numbers; false before the first.
func (c *Client) Simulated() bool { return c.simulated.Load() }

// Position is what the last answer was made of: whoever gives it for AsOfPosition gets the same answer again. It is empty before the first.
func (c *Client) Position() string {
	position, _ := c.position.Load().(string)
	return position
}

// Get asks for a path of the server, such as /api/v1/system, and gives the JSON of its answer as it came, for a program that passes an answer on, or
// asks for what this module does not know yet. What is put into the path is escaped by [url.PathEscape]; a nil query is none.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("the path %q does not begin with a slash", path)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.send(ctx, http.MethodGet, path, nil)
}

// longestAnswer bounds what is read of one answer, in bytes; the longest are files of five million rows.
const longestAnswer = 4 << 30

// send asks until there is an answer, or no other attempt; path has the parameters.
func (c *Client) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	var posted []byte
	if body != nil {
		var err error
		if posted, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("writing the body of %s: %w", path, err)
		}
	}
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		answer, err := c.attempt(ctx, method, path, posted)
		if err == nil {
			return answer, nil
		}
		if failed, ok := errors.AsType[*ConnectionFailed](err); ok {
			failed.Attempts = attempt
		}
		wait := pause(err, attempt)
		if ctx.Err() != nil || !again(err) || attempt >= c.retry.Attempts || waited+wait > c.retry.Longest {
			return nil, err
		}
		if c.retry.Again != nil && !c.retry.Again(err, wait) || !sleep(ctx, wait) {
			return nil, err
		}
		waited += wait
	}
}

// attempt asks once.
func (c *Client) attempt(ctx context.Context, method, path string, posted []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := c.request(ctx, method, path, "application/json", bytes.NewReader(posted))
	if err != nil {
		return nil, err
	}
	if posted != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, &ConnectionFailed{URL: c.base, Err: err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer+1))
	if err == nil && len(answer) > longestAnswer {
		err = fmt.Errorf("an answer of more than %d bytes", longestAnswer)
	}
	if err != nil {
		return nil, &ConnectionFailed{URL: c.base, Err: err}
	}
	c.simulated.Store(response.Header.Get("X-Data-Source") == "simulated")
	c.position.Store(response.Header.Get("X-Position"))
	return answer, nil
}

// request is one with the key.
func (c *Client) request(ctx context.Context, method, path, accept string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "marketlog-go")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	return request, nil
}
