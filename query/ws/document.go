package ws

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/marketlog/marketlog/query"
)

// Operation describes the stream over plain HTTP for the OpenAPI document. What comes over a WebSocket has no place in one.
func (h *Hub) Operation() *huma.Operation {
	least, most := 1000.0, 60_000.0
	longest, explode := mixedMax, false
	var channels []any
	told := "What is sent. `" + channelPrices + "`: the price of each coin as it changes."
	for _, name := range h.channelNames() {
		channels = append(channels, name)
	}
	for _, c := range h.channels {
		told += " `" + c.name() + "`: " + c.Doc
	}
	text := &huma.Schema{Type: huma.TypeString}
	names := &huma.Schema{Type: huma.TypeArray, Items: text}
	millis := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least, Maximum: &most}
	cursor := &huma.Schema{Type: huma.TypeString, MaxLength: &longest}
	param := func(name, doc string, schema *huma.Schema) *huma.Param {
		p := &huma.Param{Name: name, In: "query", Description: doc, Schema: schema}
		if schema.Type == huma.TypeArray {
			p.Style, p.Explode = "form", &explode
		}
		return p
	}
	op := &huma.Operation{
		Method: http.MethodGet, Path: LinesPath, OperationID: "getStream", Tags: []string{"stream"},
		Summary: "Prices and other channels as they change, as server-sent events or as lines of JSON",
		Description: "The messages of the WebSocket stream, until the client goes. `Accept: application/x-ndjson` makes it lines. With `delivery=all` every price " +
			"comes exactly once over any number of connections, each begun with the last cursor. So does everything in the other channels.",
		Parameters: []*huma.Param{
			param("symbols", "Only these coins, by symbol or id; without it all that have their symbol.", names),
			param("channels", told, &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: channels}, Default: []any{channelPrices}}),
			param("delivery", "The newest price of each coin, or every price.", &huma.Schema{Type: huma.TypeString, Enum: []any{deliveryLatest, deliveryAll}, Default: deliveryLatest}),
			param("cursor", "Go on where this cursor was given.", cursor),
			param(paramLastID, "As `cursor`, for clients that cannot set the header `"+headerLastID+"`.", cursor),
			param("snapshot", "Whether the current prices come first.", &huma.Schema{Type: huma.TypeBoolean, Default: true}),
			param("intervalMs", "The least time between two messages of prices; not with `delivery=all`.", millis),
			param("heartbeatMs", "After how long a silence a heartbeat with a cursor is sent.", millis),
			{Name: headerLastID, In: "header", Description: "As `cursor`; browsers send it when they come back by themselves.", Schema: cursor},
		},
		Responses: map[string]*huma.Response{
			"200": {Description: "Messages, for as long as the connection lasts", Content: map[string]*huma.MediaType{
				contentEvents: {Schema: text}, contentLines: {Schema: text},
			}},
			"403": {Description: "The page's origin is not allowed (`" + query.CodeForbidden + "`)", Content: query.ErrorResponseContent()},
		},
	}
	for _, status := range []int{400, 401, 429, 431, 500, 503} {
		op.Responses[strconv.Itoa(status)] = query.ErrorResponse(status)
	}
	return op
}
