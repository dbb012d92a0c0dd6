package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Action is what a command asks about long work.
type Action string

// What can be asked about long work.
const (
	Start  Action = http.MethodPost
	Attach Action = http.MethodGet
	Cancel Action = http.MethodDelete
)

// errDetached means that the caller left and the work goes on.
var errDetached = errors.New("detached: the work goes on in the running instance; --attach shows it, --cancel ends it")

// CallRunning calls a verb of a running instance and hands each line of the answer to onLine.
func CallRunning(ctx context.Context, socket string, v Command, action Action, input any, onLine func(json.RawMessage) error) error {
	body, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encoding the input of %s: %w", v.Name, err)
	}
	place := "verbs"
	if v.Long {
		place = "jobs"
	}
	request, err := http.NewRequestWithContext(ctx, string(action), "http://marketlog/"+place+"/"+v.Name, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking the running instance: %w", err)
	}
	transport := unixTransport(socket)
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("asking the running instance: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return errors.New(strings.TrimSpace(string(text)))
	}
	lines := json.NewDecoder(answer.Body)
	for {
		var r Reply
		err := lines.Decode(&r)
		switch {
		case err != nil && ctx.Err() != nil && v.Long:
			return errDetached
		case err != nil:
			return fmt.Errorf("the running instance went away in the middle of %s: %w", v.Name, err)
		case r.Error != "":
			return errors.New(r.Error)
		case r.End:
			return nil
		}
		if err := onLine(r.Line); err != nil {
			return err
		}
	}
}

// unixTransport reaches whoever serves on a unix socket.
func unixTransport(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
}

// CallHere calls a verb on parts that this process opened itself: there is nobody to leave long work to, so it ends
// with ctx.
func CallHere(ctx context.Context, v Command, action Action, input any, onLine func(json.RawMessage) error) error {
	if v.Long && action != Start {
		return fmt.Errorf("no instance is running, so no %s is", v.Name)
	}
	body, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encoding the input of %s: %w", v.Name, err)
	}
	return v.do(ctx, body, func(line any) error {
		encoded, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("encoding a line: %w", err)
		}
		return onLine(encoded)
	})
}
