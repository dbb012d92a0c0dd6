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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/limits"
)

const (
	// keyFile is where the key that these commands made lies in the data directory; only its owner may read it.
	keyFile  = "command-line.key"
	keyLabel = "command line"
	// maxBody bounds an answer, in bytes.
	maxBody = 32 << 20
	timeout = 20 * time.Second
)

// client asks a server over REST.
type client struct {
	base, key string
	http      *http.Client
	// renew makes another key where the server no longer knows the one that was kept; nil where the key came from elsewhere.
	renew func(context.Context) (string, error)
}

// connect finds the server: MARKETLOG_URL, else the running instance.
func connect(rt *command.Runtime, cmd *cobra.Command) (*client, error) {
	c := &client{key: rt.Variable(config.ApiKeyVariable), http: &http.Client{Timeout: timeout}}
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
	c.renew = func(ctx context.Context) (string, error) { return makeKey(ctx, served, path) }
	kept, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.key, err = c.renew(cmd.Context())
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

// get asks for a path and returns the body of the answer.
func (c *client) get(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	for first := true; ; first = false {
		status, body, err := c.once(ctx, path, query)
		if err != nil {
			return nil, err
		}
		if status == http.StatusOK {
			return body, nil
		}
		if status == http.StatusUnauthorized && first && c.renew != nil {
			// The kept key was revoked, or is of a log that is gone.
			if c.key, err = c.renew(ctx); err != nil {
				return nil, err
			}
			continue
		}
		var refused refusal
		if json.Unmarshal(body, &refused) != nil || refused.Error.Message == "" {
			return nil, fmt.Errorf("%s answered %d", c.base, status)
		}
		text := refused.Error.Message
		for _, name := range slices.Sorted(maps.Keys(refused.Error.Errors)) {
			text += fmt.Sprintf("\n%s: %s", name, strings.Join(refused.Error.Errors[name], "; "))
		}
		return nil, errors.New(text)
	}
}

func (c *client) once(ctx context.Context, path string, query url.Values) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking %s: %w", c.base, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking %s: %w", c.base, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	if len(body) > maxBody {
		return 0, nil, fmt.Errorf("%s answered with more than %d bytes", c.base, maxBody)
	}
	return response.StatusCode, body, nil
}

// show asks for a path and prints the answer: as it is with -o json, else by text.
func show[T any](rt *command.Runtime, cmd *cobra.Command, path string, query url.Values, text func(out *command.Output, answer T)) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	c, err := connect(rt, cmd)
	if err != nil {
		return err
	}
	body, err := c.get(cmd.Context(), path, query)
	if err != nil {
		return err
	}
	if out.JSON {
		return out.Object(body)
	}
	var answer T
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	text(out, answer)
	return out.Flush()
}
