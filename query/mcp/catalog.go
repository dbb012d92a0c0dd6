package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/marketlog/marketlog/query"
)

// The sets of tools, by the names that `toolset` takes.
var sets = map[string]query.ToolSet{"default": query.DefaultTools, "full": query.FullTools}

// toolset is the tools of one set and the library's server of them.
type toolset struct {
	tools   map[string]bool
	server  *server.StreamableHTTPServer
	catalog *query.Body
}

// catalogBody is what GET /mcp/tools.json answers: what a client would read after it has connected.
type catalogBody struct {
	ServerInfo       mcp.Implementation `json:"serverInfo"`
	Instructions     string             `json:"instructions"`
	ProtocolVersions []string           `json:"protocolVersions"`
	Tools            []mcp.Tool         `json:"tools"`
}

// newToolset makes the set of the given tools.
func newToolset(who identity, declared []query.ToolDeclaration, set query.ToolSet) (*toolset, error) {
	t := &toolset{tools: map[string]bool{}}
	tools := []mcp.Tool{}
	for _, d := range declared {
		if d.Set <= set {
			t.tools[d.Name] = true
			tools = append(tools, describeTool(d))
		}
	}
	var err error
	if t.catalog, err = query.NewBody(catalogBody{who.implementation(), who.instructions(), mcp.ValidProtocolVersions, tools}); err != nil {
		return nil, fmt.Errorf("writing the catalog of tools: %w", err)
	}
	t.server = server.NewStreamableHTTPServer(newServer(who.implementation(), who.instructions(), tools), server.WithStateLess(true), server.WithDisableStreaming(true),
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)))
	return t, nil
}

// newServer makes the library's server of tools, which knows the handshakes of both eras and the list.
func newServer(about mcp.Implementation, instructions string, tools []mcp.Tool) *server.MCPServer {
	library := server.NewMCPServer(about.Name, about.Version, server.WithTitle(about.Title), server.WithDescription(about.Description),
		server.WithInstructions(instructions), server.WithToolCapabilities(false),
		server.WithMethodCacheHints(mcp.MethodToolsList, catalogAge.Milliseconds(), mcp.CacheScopePublic))
	for _, tool := range tools {
		library.AddTool(tool, accept)
	}
	return library
}

// describeTool writes a declaration as the protocol does. Every tool only reads, from tables that change.
func describeTool(d query.ToolDeclaration) mcp.Tool {
	yes, no := true, false
	return mcp.Tool{Name: d.Name, Description: d.Description, RawInputSchema: d.Input, RawOutputSchema: d.Output,
		Annotations: mcp.ToolAnnotation{ReadOnlyHint: &yes, DestructiveHint: &no, IdempotentHint: &yes, OpenWorldHint: &yes}}
}

// acceptedKey is where a request's context has the place that accept writes to.
type acceptedKey struct{}

var errAccepted = errors.New("accepted")

// accept is the handler of every tool as the library knows it: it only reports that the library found no
// fault with the request. The handler calls the tool, since the library would answer each of its errors as
// a fault of the server.
func accept(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if accepted, ok := ctx.Value(acceptedKey{}).(*bool); ok {
		*accepted = true
	}
	return nil, errAccepted
}

// stamps are what results carry beside the answer, by era and by whether invented numbers are in it.
type stamps [2][2]string

func newStamps(who identity) (s stamps, err error) {
	for era := range s {
		for simulated := range s[era] {
			about, text := map[string]any{}, ""
			if era == 1 {
				about[mcp.MetaKeyServerInfo] = who.implementation()
				text = `,"resultType":"complete"`
			}
			if simulated == 1 {
				about[metaSimulated] = true
			}
			if len(about) > 0 {
				encoded, err := json.Marshal(about)
				if err != nil {
					return s, fmt.Errorf("encoding the server's identity: %w", err)
				}
				text += `,"_meta":` + string(encoded)
			}
			s[era][simulated] = text
		}
	}
	return s, nil
}

func (s *stamps) of(modern, simulated bool) string {
	era, kind := 0, 0
	if modern {
		era = 1
	}
	if simulated {
		kind = 1
	}
	return s[era][kind]
}
