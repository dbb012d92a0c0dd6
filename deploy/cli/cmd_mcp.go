package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/mcp"
)

func mcpCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the endpoints as MCP tools over stdio",
		Long: "Serve the Model Context Protocol over stdin and stdout, for clients that start MCP servers as programs, and forward requests to --base-url.\n" +
			"The API key is read from " + config.ApiKeyVariable + "; without one, tools are listed and calls are rejected.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := baseURL(rt, cmd)
			if err != nil {
				return err
			}
			bridge, err := mcp.NewBridge(cmd.Context(), base, rt.Variable(config.ApiKeyVariable))
			if err != nil {
				return err
			}
			return bridge.Run(cmd.Context(), rt.Stdin, rt.Stdout)
		},
	}
	cmd.PersistentFlags().String("base-url", "", "`URL` of the server, else $"+config.UrlVariable+", else the running instance")
	config.AddInstanceFlags(cmd.PersistentFlags())
	cmd.AddCommand(mcpConfigCommand(rt))
	return cmd
}

func mcpConfigCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Print the configuration to paste into an MCP client",
		Example: "  marketlog mcp config --client claude-desktop --key new",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := baseURL(rt, cmd)
			if err != nil {
				return err
			}
			name, _ := cmd.Flags().GetString("client")
			write, ok := mcpClients[name]
			if !ok {
				return fmt.Errorf("--client %q is unknown; use %s", name, strings.Join(mcpClientNames(), ", "))
			}
			key, err := newKey(rt, cmd, name)
			if err != nil {
				return err
			}
			// Clients start programs without the PATH of a shell.
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			snippet, err := write(mcpServer{base: base, program: program, key: cmp.Or(key, keyPlaceholder)})
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(rt.Stdout, snippet); err != nil {
				return err
			}
			if key != "" && !strings.Contains(snippet, key) {
				fmt.Fprintf(rt.Stderr, "%s reads the key from elsewhere, as described above; it is not shown again:\n%s\n", name, key)
			}
			return nil
		},
	}
	cmd.Flags().String("client", "claude-desktop", strings.Join(mcpClientNames(), ", "))
	cmd.Flags().String("key", "", "new: make a key of the running instance for the client")
	return cmd
}

// newKey makes a key if --key asks for it.
func newKey(rt *command.Runtime, cmd *cobra.Command, client string) (string, error) {
	switch key, _ := cmd.Flags().GetString("key"); key {
	case "":
		return "", nil
	case "new":
		served, err := rt.Served(cmd)
		if err != nil {
			return "", err
		}
		return served.MakeKey(cmd.Context(), limits.PlanPro, "mcp "+client)
	default: // it may be a key, which then stays out of the message
		return "", errors.New("--key takes only the word new; a key of yours belongs in the configuration of the client")
	}
}

// baseURL is the address of the server: --base-url, else MARKETLOG_URL, else the running instance's, else the default one.
func baseURL(rt *command.Runtime, cmd *cobra.Command) (string, error) {
	if base, _ := cmd.Flags().GetString("base-url"); base != "" {
		return command.ParseURL("--base-url", base)
	}
	if base := rt.Variable(config.UrlVariable); base != "" {
		return command.ParseURL(config.UrlVariable, base)
	}
	if served, err := rt.Served(cmd); err == nil {
		return served.Base, nil
	}
	return "http://" + config.DefaultConfig().Listen, nil
}

func mcpClientNames() []string { return slices.Sorted(maps.Keys(mcpClients)) }

// keyPlaceholder represents the key where a client keeps it in the file itself.
const keyPlaceholder = "ck_live_..."

// mcpServer is what a client is given of the server: its address, the path of this program, and the key.
type mcpServer struct{ base, program, key string }

// mcpClients write what each client's configuration wants. Those that can read the key from elsewhere are reported
// to, since such files are copied and committed.
var mcpClients = map[string]func(s mcpServer) (string, error){
	"claude-desktop": func(s mcpServer) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"command": s.program, "args": []string{"mcp", "--base-url", s.base}, "env": map[string]string{config.ApiKeyVariable: s.key}}}})
	},
	"claude-code": func(s mcpServer) (string, error) {
		return `claude mcp add --transport http marketlog ` + s.base + `/mcp --header "Authorization: Bearer $` + config.ApiKeyVariable + `"`, nil
	},
	"cursor": func(s mcpServer) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"url": s.base + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:" + config.ApiKeyVariable + "}"}}}})
	},
	"vscode": func(s mcpServer) (string, error) {
		return asSnippet(map[string]any{
			"inputs": []any{map[string]any{"type": "promptString", "id": "marketlog-key", "description": "Marketlog API key", "password": true}},
			"servers": map[string]any{"marketlog": map[string]any{
				"type": "http", "url": s.base + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${input:marketlog-key}"}}}})
	},
	"windsurf": func(s mcpServer) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"serverUrl": s.base + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:" + config.ApiKeyVariable + "}"}}}})
	},
	"gemini-cli": func(s mcpServer) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"httpUrl": s.base + "/mcp", "headers": map[string]string{"Authorization": "Bearer $" + config.ApiKeyVariable}}}})
	},
	"codex": func(s mcpServer) (string, error) {
		return fmt.Sprintf("[mcp_servers.marketlog]\nurl = %q\nbearer_token_env_var = %q", s.base+"/mcp", config.ApiKeyVariable), nil
	},
}

// asSnippet writes JSON for people to paste.
func asSnippet(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}
