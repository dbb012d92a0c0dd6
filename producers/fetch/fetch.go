// Package fetch is a well-behaved HTTP client: within a budget of requests, never before a
// server's Retry-After has passed, with bounded answers, and not at all for a while once a
// server keeps failing. One Client serves one source.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

// Config bounds what a Client does.
type Config struct {
	// Requests may be made within Per, in a burst or spread out; every attempt counts.
	Requests int
	Per      time.Duration
	// Timeout is for one attempt, from dialing to the last byte, in wall time.
	Timeout time.Duration
	// MaxBody is how many bytes an answer may have, unpacked.
	MaxBody int64
	// Attempts is how often one request is tried in all, when it fails in a way that may pass:
	// by the network, by 429 or by a 5xx status.
	Attempts int
	// MaxHold is how long a request may wait for a Retry-After to pass before it is given up.
	MaxHold time.Duration
	// UserAgent is the header of that name.
	UserAgent string
	// KeyHeader is the header that carries Key. Redirects stay on the requested host, so no other host receives it.
	KeyHeader, Key string
	// Sign signs each attempt with the space-separated parts of Key, of which the first goes into KeyHeader; see
	// producers.Source. Nil sends Key as it is.
	Sign func(secrets []string, r poll.Request, now time.Time) (poll.Request, error)
}

// DefaultConfig suits a public interface that allows n requests within per.
func DefaultConfig(n int, per time.Duration) Config {
	return Config{
		Requests: n, Per: per, Timeout: 15 * time.Second, MaxBody: 64 << 20,
		Attempts: 3, MaxHold: time.Minute, UserAgent: "marketlog",
	}
}

// SourceConfig suits a polled source. What may be large has time to come, at 256 kB a second.
func SourceConfig(s poll.Source) Config {
	c := DefaultConfig(s.Requests, s.Per)
	c.MaxBody = s.MaxBody
	c.Timeout += time.Duration(s.MaxBody>>18) * time.Second
	return c
}

// Validate reports every field that is wrong.
func (c Config) Validate() error {
	var faults []error
	for name, ok := range map[string]bool{
		"Requests": c.Requests > 0, "Per": c.Per > 0, "Timeout": c.Timeout > 0,
		"MaxBody": c.MaxBody > 0, "Attempts": c.Attempts > 0, "MaxHold": c.MaxHold >= 0, "KeyHeader": c.Key == "" || c.KeyHeader != "",
	} {
		if !ok {
			faults = append(faults, fmt.Errorf("%s is not set or not positive", name))
		}
	}
	return errors.Join(faults...)
}

// Result is the outcome of a request, also of one that failed: what the log records of it.
type Result struct {
	Body []byte
	// Status is the HTTP status of the last attempt, 0 if there was no answer.
	Status   int
	Started  time.Time
	Duration time.Duration
	Attempts int
}

// StatusError is an answer other than 200 to 299.
type StatusError struct {
	Status int
	// Text is the beginning of the body.
	Text string
}

// RefusedForGood is producers.RefusedForGood of its status.
func (e *StatusError) RefusedForGood() bool { return producers.RefusedForGood(e.Status) }

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Text) }

// ErrHeld means that the server asked for a pause, and it is too long to wait for.
var ErrHeld = errors.New("held back by the server's Retry-After")

// Client makes requests to one source. Safe for concurrent use.
type Client struct {
	config  Config
	clock   producers.Clock
	http    *http.Client
	budget  *producers.Budget
	execute failsafe.Executor[answer]

	mu sync.Mutex
	// held is when the server accepts requests again.
	held time.Time
}

type answer struct {
	body   []byte
	status int
	// state is what the server calls this state of the answer.
	state poll.Validators
}

// New prepares a client; transport nil is the default one.
func New(c Config, clock producers.Clock, transport http.RoundTripper) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configuring fetch: %w", err)
	}
	passing := func(_ answer, err error) bool { return mayPass(err) }
	retry := retrypolicy.NewBuilder[answer]().
		HandleIf(passing).
		WithMaxAttempts(c.Attempts).
		WithBackoff(500*time.Millisecond, 10*time.Second).
		WithJitterFactor(0.5).
		ReturnLastFailure().
		Build()
	// Half of ten failing: the server is down, and asking does not help it up.
	breaker := circuitbreaker.NewBuilder[answer]().
		HandleIf(passing).
		WithFailureThresholdRatio(5, 10).
		WithDelay(15 * time.Second).
		Build()
	return &Client{
		config: c, clock: clock,
		http:    &http.Client{Transport: transport, CheckRedirect: producers.StayOnHost},
		budget:  producers.NewBudget(clock, c.Requests, c.Per),
		execute: failsafe.With[answer](retry, breaker),
	}, nil
}

// Fetch returns the body of a successful answer; see Do.
func (c *Client) Fetch(ctx context.Context, method, url string) ([]byte, error) {
	result, err := c.Do(ctx, method, url)
	return result.Body, err
}

// Do makes a request, again if that may help, and returns its outcome also if it failed. An
// empty method is GET. The error wraps a StatusError, ErrHeld, producers.ErrLedAway, circuitbreaker.ErrOpen or what the
// network returned.
func (c *Client) Do(ctx context.Context, method, url string) (Result, error) {
	result, _, err := c.do(ctx, method, url, poll.Request{}, poll.Validators{})
	return result, err
}

// Get makes a request below a base URL, conditional on a change since the response with the given validators (RFC 9110, 13.1);
// with the zero value it is unconditional. An unchanged response has status 304, no body and no error.
func (c *Client) Get(ctx context.Context, base string, r poll.Request, since poll.Validators) (poll.Answer, error) {
	result, state, err := c.do(ctx, r.Method(), base, r, since)
	return poll.Answer{
		Body: result.Body, Status: result.Status, Started: result.Started, Duration: result.Duration, Validators: state,
	}, err
}

func (c *Client) do(ctx context.Context, method, base string, r poll.Request, since poll.Validators) (Result, poll.Validators, error) {
	result := Result{Started: c.clock.Now()}
	a, err := c.execute.WithContext(ctx).GetWithExecution(func(failsafe.Execution[answer]) (answer, error) {
		result.Attempts++
		a, err := c.attempt(ctx, method, base, r, since)
		result.Status = a.status
		return a, err
	})
	result.Duration = c.clock.Now().Sub(result.Started)
	if err != nil {
		return result, poll.Validators{}, fmt.Errorf("fetching %s: %w", base+r.Path, err)
	}
	result.Body = a.body
	return result, a.state, nil
}

func (c *Client) attempt(ctx context.Context, method, base string, r poll.Request, since poll.Validators) (answer, error) {
	if err := c.wait(ctx); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, base+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return answer{}, fmt.Errorf("making a request: %w", err)
	}
	request.Header.Set("User-Agent", c.config.UserAgent)
	request.Header.Set("Accept", "application/json, */*;q=0.1")
	if r.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	if c.config.Key != "" {
		if err := c.authorize(request, r.Body); err != nil {
			return answer{}, err
		}
	}
	conditional := since != poll.Validators{}
	if since.ETag != "" {
		request.Header.Set("If-None-Match", since.ETag)
	}
	if since.LastModified != "" {
		request.Header.Set("If-Modified-Since", since.LastModified)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if pause := retryAfter(response, c.clock.Now()); pause > 0 {
		c.hold(pause)
	}
	if conditional && response.StatusCode == http.StatusNotModified {
		return answer{status: response.StatusCode, state: since}, nil
	}
	a := answer{status: response.StatusCode, state: poll.Validators{
		ETag: response.Header.Get("ETag"), LastModified: response.Header.Get("Last-Modified"),
	}}
	// The transport unpacks gzip, so the bound is on what comes out of it.
	a.body, err = io.ReadAll(io.LimitReader(response.Body, c.config.MaxBody+1))
	if err != nil {
		return a, fmt.Errorf("reading the answer: %w", err)
	}
	if int64(len(a.body)) > c.config.MaxBody {
		return answer{status: a.status}, fmt.Errorf("%w: more than %d bytes", errTooLarge, c.config.MaxBody)
	}
	if a.status < 200 || a.status > 299 {
		return answer{status: a.status}, &StatusError{Status: a.status, Text: string(a.body[:min(len(a.body), 200)])}
	}
	return a, nil
}

// What another attempt would meet as well.
var (
	errTooLarge = errors.New("the answer is too large")
	errUnsigned = errors.New("the request cannot be signed")
)

// authorize adds the key, and the signature where the source wants one.
func (c *Client) authorize(request *http.Request, body string) error {
	if c.config.Sign == nil {
		request.Header.Set(c.config.KeyHeader, c.config.Key)
		return nil
	}
	secrets := strings.Fields(c.config.Key)
	signed, err := c.config.Sign(secrets, poll.Request{Path: request.URL.RequestURI(), Body: body}, c.clock.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsigned, err)
	}
	at, err := request.URL.Parse(signed.Path)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsigned, err)
	}
	request.URL = at
	request.Header.Set(c.config.KeyHeader, secrets[0])
	for name, value := range signed.Header {
		request.Header.Set(name, value)
	}
	if signed.Body != body {
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(signed.Body)), int64(len(signed.Body))
		request.GetBody = nil
	}
	return nil
}

// wait lets a request pass when the budget and the server's last Retry-After allow it.
func (c *Client) wait(ctx context.Context) error {
	if err := c.budget.Wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	pause := c.held.Sub(c.clock.Now())
	c.mu.Unlock()
	if pause > c.config.MaxHold {
		return fmt.Errorf("%w for %s more", ErrHeld, pause.Round(time.Second))
	}
	return producers.Sleep(ctx, c.clock, pause)
}

func (c *Client) hold(pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := c.clock.Now().Add(pause); until.After(c.held) {
		c.held = until
	}
}

// retryAfter reads the pause that an overloaded or offended server asks for (RFC 9110, 10.2.3);
// 418 is how Binance bans an address.
func retryAfter(r *http.Response, now time.Time) time.Duration {
	switch r.StatusCode {
	case http.StatusTooManyRequests, http.StatusTeapot, http.StatusServiceUnavailable:
	default:
		return 0
	}
	header := r.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 7*24*3600)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return at.Sub(now)
	}
	return 0
}

// mayPass reports whether another attempt may succeed.
func mayPass(err error) bool {
	for _, lasting := range []error{context.Canceled, ErrHeld, errTooLarge, producers.ErrLedAway, errUnsigned} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	if err == nil {
		return false
	}
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status == http.StatusTooManyRequests || status.Status >= 500
	}
	return true
}
