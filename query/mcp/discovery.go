package mcp

import (
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
)

// Media types of the documents that describe the endpoint.
const (
	typeCard    = "application/mcp-server-card+json"
	typeCatalog = "application/ai-catalog+json"
)

// card is a Server Card: who answers, where, and in which revisions. Tools are not in it: clients ask for
// them. The registry's server.json has the same fields under its own schema.
type card struct {
	Schema      string   `json:"$schema"`
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	Repository  source   `json:"repository"`
	Remotes     []remote `json:"remotes"`
}

type source struct {
	URL    string `json:"url"`
	Source string `json:"source"`
}

type remote struct {
	Type             string              `json:"type"`
	URL              string              `json:"url"`
	Headers          []header            `json:"headers"`
	Variables        map[string]variable `json:"variables,omitempty"`
	ProtocolVersions []string            `json:"supportedProtocolVersions,omitempty"`
}

type header struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
}

type variable struct {
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Placeholder string `json:"placeholder"`
}

const keyDescription = "Bearer and an API key of plan Pro or Enterprise: Bearer ck_live_..."

// card describes the endpoint at an address.
func (i identity) card(base string) card {
	return card{
		Schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		Name:   serverName, Title: i.title(), Description: i.description(), Version: i.version, Repository: source{repository, "github"},
		Remotes: []remote{{Type: "streamable-http", URL: base + "/mcp", ProtocolVersions: mcp.ValidProtocolVersions,
			Headers: []header{{Name: "Authorization", Description: keyDescription, Required: true, Secret: true}}}},
	}
}

// Registration is the entry for the registry of servers, whose schema names the host by a variable: everybody runs
// their own.
func Registration(version string) any {
	c := identity{version: version}.card("https://{host}")
	c.Schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
	r := &c.Remotes[0]
	r.ProtocolVersions = nil // a field of cards only
	r.Variables = map[string]variable{"host": {Description: "Host name of the Marketlog server", Required: true, Placeholder: "marketlog.example.com"}}
	return c
}

// wellKnown is the card of the first draft, which the specification's path has: one object that also says
// how to speak and that a key is needed.
type wellKnown struct {
	Schema           string             `json:"$schema"`
	Version          string             `json:"version"`
	ProtocolVersion  string             `json:"protocolVersion"`
	ProtocolVersions []string           `json:"supportedProtocolVersions"`
	ServerInfo       mcp.Implementation `json:"serverInfo"`
	Description      string             `json:"description"`
	Transport        transport          `json:"transport"`
	Capabilities     map[string]any     `json:"capabilities"`
	Authentication   authentication     `json:"authentication"`
	Instructions     string             `json:"instructions"`
	Tools            []string           `json:"tools"`
	ToolsURL         string             `json:"toolsUrl"`
	Remotes          []remote           `json:"remotes"`
}

type transport struct {
	Type     string `json:"type"`
	Endpoint string `json:"endpoint"`
}

type authentication struct {
	Required bool     `json:"required"`
	Schemes  []string `json:"schemes"`
}

func (i identity) wellKnown(base string, open bool) wellKnown {
	c := i.card(base)
	return wellKnown{
		Schema: "https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json", Version: "1.0",
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ProtocolVersions: mcp.ValidProtocolVersions,
		ServerInfo: i.implementation(), Description: c.Description, Transport: transport{c.Remotes[0].Type, "/mcp"},
		Capabilities: map[string]any{"tools": map[string]any{}}, Authentication: authentication{!open, []string{"bearer"}},
		Instructions: i.instructions(), Tools: []string{"dynamic"}, ToolsURL: base + "/mcp/tools.json", Remotes: c.Remotes,
	}
}

// aiCatalog is the list of what a host offers to models: one server.
type aiCatalog struct {
	SpecVersion string         `json:"specVersion"`
	Host        catalogHost    `json:"host"`
	Entries     []catalogEntry `json:"entries"`
}

type catalogHost struct {
	DisplayName string `json:"displayName"`
	Identifier  string `json:"identifier"`
}

type catalogEntry struct {
	Identifier  string `json:"identifier"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	URL         string `json:"url"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

func (i identity) aiCatalog(base, host string) aiCatalog {
	c := i.card(base)
	name := c.Name[strings.IndexByte(c.Name, '/')+1:]
	return aiCatalog{SpecVersion: "1.0", Host: catalogHost{c.Title, host}, Entries: []catalogEntry{{
		Identifier: "urn:air:" + host + ":" + name, DisplayName: c.Title, Type: typeCard, URL: c.Remotes[0].URL + "/server-card",
		Description: c.Description, Version: c.Version}}}
}

func (d *Handler) catalog(c *fiber.Ctx) error {
	set, known := sets[strings.ToLower(c.Query("toolset", "default"))]
	if !known {
		return query.Invalid("toolset", "must be default or full")
	}
	d.server.SendPublic(c.Context(), d.sets[set].catalog)
	crossOrigin(c)
	return nil
}

func (d *Handler) serverCard(c *fiber.Ctx) error {
	base, _ := address(c.Context())
	return d.document(c, typeCard, d.who.card(base))
}

func (d *Handler) wellKnown(c *fiber.Ctx) error {
	base, _ := address(c.Context())
	return d.document(c, contentJSON, d.who.wellKnown(base, d.server.Open()))
}

func (d *Handler) aiCatalog(c *fiber.Ctx) error {
	base, host := address(c.Context())
	return d.document(c, typeCatalog, d.who.aiCatalog(base, host))
}

// address is the one by which the client knows us. Of a proxy only the scheme is believed: a name that
// anybody can write into a header must not be kept by a cache for others.
func address(ctx *fasthttp.RequestCtx) (base, host string) {
	scheme, name := "http", string(ctx.Host())
	if ctx.IsTLS() || string(ctx.Request.Header.Peek(fiber.HeaderXForwardedProto)) == "https" {
		scheme = "https"
	}
	host = name
	if bare, _, err := net.SplitHostPort(name); err == nil {
		host = bare
	}
	return scheme + "://" + name, host
}

// document sends what depends on the address by which the client knows us.
func (d *Handler) document(c *fiber.Ctx, kind string, v any) error {
	body, err := query.NewBody(v)
	if err != nil {
		return err
	}
	d.server.SendPublic(c.Context(), body)
	crossOrigin(c)
	c.Set(fiber.HeaderVary, "Accept-Encoding, Host, "+fiber.HeaderXForwardedProto)
	c.Context().Response.Header.SetContentType(kind)
	return nil
}

// crossOrigin lets pages of other sites read a public document.
func crossOrigin(c *fiber.Ctx) { c.Set(fiber.HeaderAccessControlAllowOrigin, "*") }
