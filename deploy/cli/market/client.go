package market

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

const (
	// codeStarting is that of an answer that comes by itself when the server has read or folded enough: rates need a whole minute.
	codeStarting = "STARTING"
	// startWithin is how long such an answer is waited for.
	startWithin = 90 * time.Second
	timeout     = 20 * time.Second
)

// client asks the server of a command.
type client struct {
	*marketlog.Client
	server *server
}

// connect finds the server of a command.
func connect(rt *command.Runtime, cmd *cobra.Command) (*client, error) {
	s, err := findServer(rt, cmd)
	if err != nil {
		return nil, err
	}
	return s.client(func(why string) { fmt.Fprintln(cmd.ErrOrStderr(), "waiting: "+strings.TrimPrefix(why, "starting: ")) })
}

// client asks the server. What that has not got yet while it starts is waited for: waits is called once with what it is.
func (s *server) client(waits func(why string)) (*client, error) {
	c, told := &client{server: s}, false
	starting := func(err error, _ time.Duration) bool {
		refused, is := errors.AsType[*marketlog.APIError](err)
		is = is && refused.Code == codeStarting
		if is && !told {
			told = true
			waits(c.shown(err).Error())
		}
		return is
	}
	var err error
	c.Client, err = marketlog.New(marketlog.Options{URL: s.base, Key: s.key, Timeout: timeout, Transport: s,
		Retry: marketlog.Retry{Attempts: math.MaxInt, Longest: startWithin, Again: starting}})
	return c, err
}

// shown is an error of the client as a person reads it: without what only programs need, and with the server's address as it is now.
func (c *client) shown(err error) error {
	if failed, is := errors.AsType[*instanceError](err); is {
		return failed.error
	}
	if failed, is := errors.AsType[*marketlog.ConnectionFailed](err); is {
		return fmt.Errorf("asking %s: %w", c.server.base, failed.Err)
	}
	refused, is := errors.AsType[*marketlog.APIError](err)
	switch {
	case !is:
		return err
	case refused.Details.Message == "":
		return fmt.Errorf("%s answered %d", c.server.base, refused.Status)
	}
	text := refused.Message
	for _, name := range slices.Sorted(maps.Keys(refused.Details.Errors)) {
		text += fmt.Sprintf("\n%s: %s", name, strings.Join(refused.Details.Errors[name], "; "))
	}
	return errors.New(text)
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
	got, err := c.Get(cmd.Context(), path, query)
	if err != nil {
		return c.shown(err)
	}
	if out.Objects() {
		return out.Object(got)
	}
	var decoded T
	if err := json.Unmarshal(got, &decoded); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.server.base, err)
	}
	text(out, decoded)
	if c.Simulated() {
		out.Text("SIMULATED: these numbers are invented")
	}
	return out.Flush()
}
