package market

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
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
)

// The server reads in the log of a key that was just made. It is asked for at most acceptWithin, after pauses between firstRetry and longestRetry:
// it slows whoever tries twenty bad keys within a minute.
const (
	acceptWithin = 20 * time.Second
	firstRetry   = 100 * time.Millisecond
	longestRetry = 2 * time.Second
)

// server sends the requests of one goroutine to the server of a command, with the key of that.
type server struct {
	base, key string
	// find finds the running instance and its key, which after a restart are others; nil where variables name the server.
	find func(context.Context) error
	// make makes a key and keeps it; nil where the key came from elsewhere. made is when that was, zero if it was not needed yet.
	make      func(context.Context) error
	made      time.Time
	asked     bool // since find was called first
	transport http.RoundTripper
}

// findServer finds the server: MARKETLOG_URL, else the running instance.
func findServer(rt *command.Runtime, cmd *cobra.Command) (*server, error) {
	s := &server{key: rt.Variable(config.ApiKeyVariable), transport: http.DefaultTransport}
	if address := rt.Variable(config.UrlVariable); address != "" {
		var err error
		if s.base, err = command.ParseURL(config.UrlVariable, address); err == nil && s.key == "" {
			err = fmt.Errorf("%s names the server %s, and %s no key for it", config.UrlVariable, s.base, config.ApiKeyVariable)
		}
		return s, err
	}
	given := s.key != ""
	s.find = func(ctx context.Context) error {
		served, err := rt.Served(cmd)
		if err != nil {
			return err
		}
		if s.base = served.Base; given {
			return nil
		}
		return s.keep(ctx, served)
	}
	return s, s.find(cmd.Context())
}

// keep takes the key that is kept for an instance, and makes one where none is.
func (s *server) keep(ctx context.Context, served command.Served) error {
	path := filepath.Join(served.DataDir, keyFile)
	s.made = time.Time{}
	s.make = func(ctx context.Context) (err error) {
		s.key, err = makeKey(ctx, served, path)
		s.made = time.Now()
		return err
	}
	kept, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.make(ctx)
	case err != nil:
		return fmt.Errorf("reading the key of the command line: %w", err)
	}
	s.key = strings.TrimSpace(string(kept))
	return nil
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

// instanceError is why no request could be sent: there is no instance, or no key of it.
type instanceError struct{ error }

// RoundTrip sends a request to where the server is now. A key that it does not know is made anew, and waited for.
func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if s.asked && s.find != nil {
		if err := s.find(ctx); err != nil {
			return nil, &instanceError{err}
		}
	}
	s.asked = true
	pauses := retry.New(firstRetry, longestRetry)
	for {
		response, err := s.transport.RoundTrip(s.addressed(request))
		if err != nil || response.StatusCode != http.StatusUnauthorized || s.make == nil || !s.made.IsZero() && time.Since(s.made) > acceptWithin {
			return response, err
		}
		_ = response.Body.Close() // its status is what counts
		if !s.made.IsZero() {
			err = retry.Wait(ctx, pauses.Next())
		} else if err = s.make(ctx); err != nil { // the kept key was revoked, or is of a log that is gone
			err = &instanceError{err}
		}
		if err != nil {
			return nil, err
		}
	}
}

// addressed is a request with the key, to where the server is now.
func (s *server) addressed(request *http.Request) *http.Request {
	sent := request.Clone(request.Context())
	sent.Header.Set("Authorization", "Bearer "+s.key)
	if s.find != nil {
		sent.URL.Host = strings.TrimPrefix(s.base, "http://") // which an instance is at, without a path
		sent.Host = sent.URL.Host
	}
	return sent
}
