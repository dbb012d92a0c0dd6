package decode

import (
	"bytes"
	"net/http"
	"strings"
)

// requested splits an answer from the lines of its request that come before it in some collections of samples: the
// method, the path and whether the request was signed.
func requested(text []byte) (path string, body []byte, ok bool) {
	method, rest, _ := bytes.Cut(text, []byte("\n"))
	if strings.TrimSpace(string(method)) != http.MethodGet {
		return "", nil, false
	}
	line, body, _ := bytes.Cut(rest, []byte("\n"))
	if path = strings.TrimSpace(string(line)); !strings.HasPrefix(path, "/") {
		return "", nil, false
	}
	signed, after, _ := bytes.Cut(body, []byte("\n"))
	if word := strings.TrimSpace(string(signed)); word == "true" || word == "false" {
		body = after
	}
	return path, body, true
}
