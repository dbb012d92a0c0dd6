package yields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

// graphQL is the request of a query. Line ends and indentation of a query have no meaning, and are left out.
func graphQL(query string) poll.Request {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]string{"query": strings.Join(strings.Fields(query), " ")}); err != nil {
		panic("encoding a query: " + err.Error())
	}
	return poll.Request{Path: "/graphql", Body: strings.TrimSpace(body.String())}
}

// graphQLAnswer reads the answer to a query, which says errors with a good status: in place of data, or beside as much of
// it as could be had, and then they are refused alone.
func graphQLAnswer[T any](body []byte, out *poll.Readings) (*T, error) {
	var told struct {
		Data   *T `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return nil, producers.Unreadable("parsing: %w", err)
	}
	var said error
	if len(told.Errors) > 0 {
		said = producers.Unreadable("it says %d errors, the first: %.200q", len(told.Errors), told.Errors[0].Message)
	}
	if told.Data == nil {
		if said == nil {
			said = producers.Unreadable("no data in it")
		}
		return nil, said
	}
	if said != nil {
		out.Refused = append(out.Refused, fmt.Errorf("reading the whole answer: %w", said))
	}
	return told.Data, nil
}
