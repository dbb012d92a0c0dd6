package pages

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// sendLLMs answers /llms.txt: where a language model finds what it needs (llmstxt.org). It needs no key.
func (u *Unit) sendLLMs(c *fiber.Ctx) error {
	var b strings.Builder
	u.writeLLMs(&b, c.Context())
	return u.sendPublicText(c.Context(), b.String())
}

// sendLLMsFull answers /llms-full.txt: the same with all guides and operations in it.
func (u *Unit) sendLLMsFull(c *fiber.Ctx) error {
	var b strings.Builder
	u.writeLLMs(&b, c.Context())
	b.WriteString("\n---\n\n# Operations\n\n")
	for _, group := range u.reference() {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", group.Name, group.About)
		for _, o := range group.Operations {
			fmt.Fprintf(&b, "- `%s %s`: %s", o.Method, o.Path, o.Summary)
			for i, p := range o.Params {
				b.WriteString(map[bool]string{true: "; parameters: ", false: ", "}[i == 0] + "`" + p.Name + "`")
			}
			if o.Related.Tool != "" {
				b.WriteString("; MCP tool `" + o.Related.Tool + "`")
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	for _, page := range u.guides.all {
		b.WriteString("---\n\n")
		b.Write(page.plain)
		b.WriteByte('\n')
	}
	return u.sendPublicText(c.Context(), b.String())
}

func (u *Unit) writeLLMs(b *strings.Builder, ctx *fasthttp.RequestCtx) {
	scheme, stream := "http", "ws"
	if ctx.IsTLS() {
		scheme, stream = "https", "wss"
	}
	host := plain(string(ctx.Host()), 100)
	at := scheme + "://" + host
	b.WriteString("# Marketlog\n\n> Crypto market data computed from one append-only log: prices that are the median over venues each second, with every input; " +
		"candles, coins, yields, stablecoin pegs, the whole market and DeFi. Over REST, a stream that loses nothing, SQL and MCP.\n\n")
	if u.cfg.Simulated {
		b.WriteString("The prices of this instance are simulated: real coins, invented numbers.\n\n")
	}
	b.WriteString("Requests need `Authorization: Bearer $MARKETLOG_API_KEY`: `eval \"$(marketlog env)\"` sets the variable, `marketlog keys create` makes a key.\n\n## Docs\n\n")
	for _, page := range u.guides.all {
		fmt.Fprintf(b, "- [%s](%s%s/%s.md)", page.Title, at, docsPath, page.Name)
		if page.About != "" {
			fmt.Fprintf(b, ": %s", page.About)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "\n## API\n\n- [OpenAPI 3.1](%s/openapi.json): every operation, parameter and field\n- [Reference](%s%s/api): the same to read and to try\n", at, at, docsPath)
	fmt.Fprintf(b, "\n## SQL\n\n- `POST %s/api/v1/sql`: ClickHouse's SQL on the views that [sql.md](%s%s/sql.md) lists\n", at, at, docsPath)
	fmt.Fprintf(b, "\n## Stream\n\n- `%s://%s/api/v1/prices/ws`: WebSocket\n- `%s/api/v1/stream`: server-sent events, and lines of JSON\n- [AsyncAPI 3.0](%s/asyncapi.json): every message of it\n", stream, host, at, at)
	fmt.Fprintf(b, "\n## MCP\n\n- `%s/mcp`: tools for language models\n", at)
	fmt.Fprintf(b, "\n## Optional\n\n- [All of it in one text](%s/llms-full.txt)\n", at)
}

func (u *Unit) sendPublicText(ctx *fasthttp.RequestCtx, text string) error {
	u.secure(ctx)
	ctx.Response.Header.Set(fiber.HeaderCacheControl, "public, max-age=300")
	return u.sendText(ctx, http.StatusOK, text)
}
