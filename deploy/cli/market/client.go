package market

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/stream/retry"
)

const (
	// keyFile is where the key that these commands made lies in the data directory; only its owner may read it.
	keyFile  = "command-line.key"
	keyLabel = "command line"
	// maxBody bounds an answer, in bytes.
	maxBody = 32 << 20
	timeout = 20 * time.Second
)

// The server reads in the log of a key that was just made. It is asked for at most acceptWithin, after pauses between firstRetry and longestRetry:
// it slows whoever tries twenty bad keys within a minute.
const (
	acceptWithin = 20 * time.Second
	firstRetry   = 100 * time.Millisecond
	longestRetry = 2 * time.Second
)

const (
	// codeStarting is that of an answer that comes by itself when the server has read or folded enough: rates need a whole minute.
	codeStarting = "STARTING"
	// startWithin is how long such an answer is waited for.
	startWithin = 90 * time.Second
)

// client asks a server over REST.
type client struct {
	base, key string
	// make makes a key and keeps it; nil where the key came from elsewhere. made is when that was, zero if it was not needed yet.
	make func(context.Context) error
	made time.Time
	http http.Client
	// waits is called once with what the server waits for; nil for nobody.
	waits func(why string)
}

// connect finds the server: MARKETLOG_URL, else the running instance.
func connect(rt *command.Runtime, cmd *cobra.Command) (*client, error) {
	c := &client{key: rt.Variable(config.ApiKeyVariable)}
	c.waits = func(why string) { fmt.Fprintln(cmd.ErrOrStderr(), "waiting: "+strings.TrimPrefix(why, "starting: ")) }
	if address := rt.Variable(config.UrlVariable); address != "" {
		var err error
		if c.base, err = command.ParseURL(config.UrlVariable, address); err == nil && c.key == "" {
			err = fmt.Errorf("%s names the server %s, and %s no key for it", config.UrlVariable, c.base, config.ApiKeyVariable)
		}
		return c, err
	}
	served, err := rt.Served(cmd)
	if err != nil {
		return nil, err
	}
	c.base = served.Base
	if c.key != "" {
		return c, nil
	}
	path := filepath.Join(served.DataDir, keyFile)
	c.make = func(ctx context.Context) (err error) {
		c.key, err = makeKey(ctx, served, path)
		c.made = time.Now()
		return err
	}
	kept, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = c.make(cmd.Context())
	case err != nil:
		err = fmt.Errorf("reading the key of the command line: %w", err)
	default:
		c.key = strings.TrimSpace(string(kept))
	}
	return c, err
}

// makeKey makes a key and keeps it.
func makeKey(ctx context.Context, served command.Served, path string) (string, error) {
	key, err := served.MakeKey(ctx, limits.PlanPro, keyLabel)
	if err != nil {
		return "", err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keeping the key of the command line: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return "", fmt.Errorf("keeping the key of the command line: %w", err)
	}
	return key, nil
}

// refusal is the body of every answer that is not a success.
type refusal struct {
	Error struct {
		Code    string              `json:"code"`
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
	} `json:"error"`
}

// answer is what a server answered.
type answer struct {
	body []byte
	// simulated means that invented numbers are in it.
	simulated bool
}

// refusedError is an answer that is not a success.
type refusedError struct {
	status int
	text   string
	code   string        // empty where the server gave none
	after  time.Duration // when to ask again; 0 where the server does not say
}

func (e *refusedError) Error() string { return e.text }

// get asks for a path and reads the whole answer. What a server that starts has not got yet is waited for.
func (c *client) get(ctx context.Context, path string, query url.Values) (answer, error) {
	for began := time.Now(); ; {
		got, err := c.read(ctx, path, query)
		refused, ok := errors.AsType[*refusedError](err)
		left := startWithin - time.Since(began)
		if !ok || refused.code != codeStarting || left <= 0 {
			return got, err
		}
		if c.waits != nil {
			c.waits(refused.text)
			c.waits = nil
		}
		if err := retry.Wait(ctx, min(max(refused.after, time.Second), left)); err != nil {
			return answer{}, err
		}
	}
}

// read asks for a path once and reads the whole answer.
func (c *client) read(ctx context.Context, path string, query url.Values) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := c.open(ctx, path, query, "application/json")
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	if len(body) > maxBody {
		return answer{}, fmt.Errorf("%s answered with more than %d bytes", c.base, maxBody)
	}
	return answer{body: body, simulated: response.Header.Get("X-Data-Source") == "simulated"}, nil
}

// open asks for a path. The error is a *refusedError where the answer is not a success; the caller closes the body.
func (c *client) open(ctx context.Context, path string, query url.Values, accept string) (*http.Response, error) {
	pauses := retry.New(firstRetry, longestRetry)
	for {
		response, err := c.once(ctx, path, query, accept)
		if err != nil || response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNoContent {
			return response, err
		}
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxBody)) // a part of the reason is better than none
		_ = response.Body.Close()                                     // its status is what counts
		switch {
		case response.StatusCode != http.StatusUnauthorized || c.make == nil || !c.made.IsZero() && time.Since(c.made) > acceptWithin:
			return nil, c.refused(response, body)
		case c.made.IsZero(): // the kept key was revoked, or is of a log that is gone
			if err := c.make(ctx); err != nil {
				return nil, err
			}
		default:
			if err := retry.Wait(ctx, pauses.Next()); err != nil {
				return nil, err
			}
		}
	}
}

// refused is the error that an answer is.
func (c *client) refused(response *http.Response, body []byte) error {
	status := response.StatusCode
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // without it the client asks when it likes
	after := time.Duration(seconds) * time.Second
	var refused refusal
	if json.Unmarshal(body, &refused) != nil || refused.Error.Message == "" {
		return &refusedError{status, fmt.Sprintf("%s answered %d", c.base, status), "", after}
	}
	text := refused.Error.Message
	for _, name := range slices.Sorted(maps.Keys(refused.Error.Errors)) {
		text += fmt.Sprintf("\n%s: %s", name, strings.Join(refused.Error.Errors[name], "; "))
	}
	return &refusedError{status, text, refused.Error.Code, after}
}

func (c *client) once(ctx context.Context, path string, query url.Values, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.base, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Accept", accept)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.base, err)
	}
	return response, nil
}

// show asks for a path and prints the answer: as it is with -o json, else by text.
func show[T any](rt *command.Runtime, cmd *cobra.Command, path string, query url.Values, text func(out *command.Output, decoded T)) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	c, err := connect(rt, cmd)
	if err != nil {
		return err
	}
	got, err := c.get(cmd.Context(), path, query)
	if err != nil {
		return err
	}
	if out.Objects() {
		return out.Object(json.RawMessage(got.body))
	}
	var decoded T
	if err := json.Unmarshal(got.body, &decoded); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	text(out, decoded)
	if got.simulated {
		out.Text("SIMULATED: these numbers are invented")
	}
	return out.Flush()
}
