package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
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
			base, err := baseURL(cmd)
			if err != nil {
				return err
			}
			bridge, err := mcp.NewBridge(cmd.Context(), base, variable(rt, config.ApiKeyVariable))
			if err != nil {
				return err
			}
			return bridge.Run(cmd.Context(), rt.Stdin, rt.Stdout)
		},
	}
	cmd.PersistentFlags().String("base-url", "http://"+config.DefaultConfig().Listen, "`URL` of the server")
	config := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration to paste into an MCP client",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := baseURL(cmd)
			if err != nil {
				return err
			}
			name, _ := cmd.Flags().GetString("client")
			write, ok := mcpClients[name]
			if !ok {
				return fmt.Errorf("--client %q is unknown; use %s", name, strings.Join(mcpClientNames(), ", "))
			}
			snippet, err := write(base)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(rt.Stdout, snippet)
			return err
		},
	}
	config.Flags().String("client", "claude-desktop", strings.Join(mcpClientNames(), ", "))
	cmd.AddCommand(config)
	return cmd
}

// variable returns the value of an environment variable; empty where it is not set.
func variable(rt *command.Runtime, name string) string {
	for _, set := range slices.Backward(rt.Env) {
		if value, ok := strings.CutPrefix(set, name+"="); ok {
			return value
		}
	}
	return ""
}

func baseURL(cmd *cobra.Command) (string, error) {
	base, _ := cmd.Flags().GetString("base-url")
	parsed, err := url.Parse(base)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return "", fmt.Errorf("--base-url %q is not an address; use one such as https://marketlog.example.com", base)
	}
	return strings.TrimRight(base, "/"), nil
}

func mcpClientNames() []string { return slices.Sorted(maps.Keys(mcpClients)) }

// keyPlaceholder represents the key where a client keeps it in the file itself.
const keyPlaceholder = "ck_live_..."

// mcpClients write what each client's configuration wants. Those that can read the key from elsewhere are reported
// to, since such files are copied and committed.
var mcpClients = map[string]func(base string) (string, error){
	"claude-desktop": func(base string) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"command": "marketlog", "args": []string{"mcp", "--base-url", base}, "env": map[string]string{config.ApiKeyVariable: keyPlaceholder}}}})
	},
	"claude-code": func(base string) (string, error) {
		return `claude mcp add --transport http marketlog ` + base + `/mcp --header "Authorization: Bearer $` + config.ApiKeyVariable + `"`, nil
	},
	"cursor": func(base string) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"url": base + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:" + config.ApiKeyVariable + "}"}}}})
	},
	"vscode": func(base string) (string, error) {
		return asSnippet(map[string]any{
			"inputs": []any{map[string]any{"type": "promptString", "id": "marketlog-key", "description": "Marketlog API key", "password": true}},
			"servers": map[string]any{"marketlog": map[string]any{
				"type": "http", "url": base + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${input:marketlog-key}"}}}})
	},
	"windsurf": func(base string) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"serverUrl": base + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:" + config.ApiKeyVariable + "}"}}}})
	},
	"gemini-cli": func(base string) (string, error) {
		return asSnippet(map[string]any{"mcpServers": map[string]any{"marketlog": map[string]any{
			"httpUrl": base + "/mcp", "headers": map[string]string{"Authorization": "Bearer $" + config.ApiKeyVariable}}}})
	},
	"codex": func(base string) (string, error) {
		return fmt.Sprintf("[mcp_servers.marketlog]\nurl = %q\nbearer_token_env_var = %q", base+"/mcp", config.ApiKeyVariable), nil
	},
}

// asSnippet writes JSON for people to paste.
func asSnippet(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}
