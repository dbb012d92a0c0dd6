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

// graphQLAnswer reads the answer to a query, which reports errors with a good status: in place of data, or beside as much of
// it as could be had, and then they are refused alone.
func graphQLAnswer[T any](body []byte, out *poll.Readings) (*T, error) {
	var response struct {
		Data   *T `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, producers.Unreadable("parsing: %w", err)
	}
	var serverErr error
	if len(response.Errors) > 0 {
		serverErr = producers.Unreadable("it says %d errors, the first: %.200q", len(response.Errors), response.Errors[0].Message)
	}
	if response.Data == nil {
		if serverErr == nil {
			serverErr = producers.Unreadable("no data in it")
		}
		return nil, serverErr
	}
	if serverErr != nil {
		out.Refused = append(out.Refused, fmt.Errorf("reading the whole answer: %w", serverErr))
	}
	return response.Data, nil
}
