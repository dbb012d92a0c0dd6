package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
)

// ParseURL checks the address of a server that a flag or variable holds, and returns it without a slash at its end.
func ParseURL(name, address string) (string, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return "", fmt.Errorf("%s %q is not an address; use one such as https://marketlog.example.com", name, address)
	case at.User != nil:
		return "", fmt.Errorf("%s holds a password; the key of the server belongs in %s", name, config.ApiKeyVariable)
	}
	return strings.TrimRight(address, "/"), nil
}

// Served is a running instance that serves REST.
type Served struct {
	// DataDir is its data directory, Base the address of its server.
	DataDir, Base string
	admin         string
}

// Served finds the running instance and its REST server.
func (rt *Runtime) Served(cmd *cobra.Command) (Served, error) {
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return Served{}, err
	}
	info, ok, err := RunningInstance(cmd.Context(), cfg.DataDir)
	switch {
	case err != nil:
		return Served{}, err
	case !ok:
		return Served{}, fmt.Errorf("no instance runs in %s: start one with `marketlog run`, or name a server in %s and its key in %s",
			cfg.DataDir, config.UrlVariable, config.ApiKeyVariable)
	case info.Listen == "":
		return Served{}, fmt.Errorf("the instance in %s serves no REST; name a server that does in %s", cfg.DataDir, config.UrlVariable)
	case cfg.TLS.Cert != "":
		return Served{}, fmt.Errorf("the instance in %s serves TLS under a name that only its certificate knows; set %s to its https:// address",
			cfg.DataDir, config.UrlVariable)
	}
	return Served{DataDir: cfg.DataDir, Base: "http://" + reachable(info.Listen), admin: info.Admin}, nil
}

// reachable is an address at which a listener on all addresses of the machine answers.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

// MakeKey makes an API key of a plan, with a label that says what it is for.
func (s Served) MakeKey(ctx context.Context, plan, label string) (string, error) {
	var made operations.KeyLine
	err := admin.CallRunning(ctx, s.admin, admin.Command{Name: "keys.create"}, admin.Start, operations.KeyInput{Plan: plan, Label: label},
		func(line json.RawMessage) error { return json.Unmarshal(line, &made) })
	if err != nil {
		return "", fmt.Errorf("making an API key: %w", err)
	}
	return made.Key, nil
}
