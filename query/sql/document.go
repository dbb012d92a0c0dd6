package sql

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/marketlog/marketlog/query"
)

const sample = "SELECT symbol, price, time FROM v_prices ORDER BY time DESC LIMIT 3"

// Operation describes the route for the OpenAPI document.
func Operation() *huma.Operation {
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	least, most := 1, maxStatement
	var named []any
	content := map[string]*huma.MediaType{}
	for _, f := range formats {
		named = append(named, f.name)
		if f.name != formatJSON {
			kind, _, _ := strings.Cut(f.contentType, ";")
			content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		}
	}
	statement := text("One statement that reads: SELECT, WITH, SHOW, DESCRIBE, EXISTS or EXPLAIN.")
	statement.MinLength, statement.MaxLength, statement.Examples = &least, &most, []any{sample}
	format := &huma.Schema{Type: huma.TypeString, Enum: named, Default: formatJSON}
	content["application/json"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject, Required: []string{"meta", "data", "rows"}, Properties: map[string]*huma.Schema{
		"meta": {Type: huma.TypeArray, Description: "The columns", Items: &huma.Schema{Type: huma.TypeObject, Required: []string{"name", "type"}, Properties: map[string]*huma.Schema{
			"name": text(""), "type": text("Type of ClickHouse"),
		}}},
		"data": {Type: huma.TypeArray, Description: "The rows, each with a value for each column. Integers of 64 bits and more are texts, as are values that are not numbers (nan, inf)",
			Items: &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{}}},
		"rows":                       {Type: huma.TypeInteger, Description: "How many rows data has"},
		"rows_before_limit_at_least": {Type: huma.TypeInteger, Description: "With LIMIT: at least so many rows there would be without it"},
		"statistics": {Type: huma.TypeObject, Properties: map[string]*huma.Schema{
			"elapsed": {Type: huma.TypeNumber, Description: "Seconds"}, "rows_read": {Type: huma.TypeInteger}, "bytes_read": {Type: huma.TypeInteger},
		}},
	}}}
	op := &huma.Operation{
		Method: http.MethodPost, Path: Path, OperationID: "runSQL", Tags: []string{"sql"},
		Summary: "Rows of a SQL statement on the views",
		Description: "ClickHouse's SQL, on the views that docs/sql.md lists. A statement has 10 seconds, 512 MB and one thread; an answer in JSON at most 100,000 rows and 16 MB, " +
			"the other formats 5,000,000 rows, passed on as they come: one that fails then breaks off. Two statements of a key run at once. A fault of a statement is reported with its place in it. " +
			"The statement may also be sent as `text/plain`, and values of its `{name:Type}` as `param_name` in the address.",
		Parameters: []*huma.Param{{Name: "format", In: "query", Description: "Format of the answer; a FORMAT in the statement is refused.", Schema: format}},
		RequestBody: &huma.RequestBody{Required: true, Description: "At most 64 kB.", Content: map[string]*huma.MediaType{
			"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, Required: []string{"query"}, Properties: map[string]*huma.Schema{
				"query":      statement,
				"format":     {Type: huma.TypeString, Enum: named, Description: "Takes the place of the parameter of the same name"},
				"parameters": {Type: huma.TypeObject, Description: "Values of {name:Type} in the statement, at most 32", AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
			}}},
			"text/plain": {Schema: statement},
		}},
		Responses: map[string]*huma.Response{
			"200": {Description: "Success", Content: content},
			"403": {Description: "A web page of another site sent it without a key (`" + query.CodeForbidden + "`)", Content: query.ErrorResponseContent()},
		},
	}
	for _, status := range []int{400, 401, 402, 404, 413, 415, 429, 431, 500, 503} {
		op.Responses[strconv.Itoa(status)] = query.ErrorResponse(status)
	}
	return op
}
