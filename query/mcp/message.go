package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxDepth bounds how deep a message nests. What tools take nests three levels in its frame; a parser that
// recurses into whatever is sent is a client's way to spend our memory.
const maxDepth = 32

// message is one JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// notification means that no answer is wanted.
func (m *message) notification() bool { return m.ID == nil }

// read takes a message apart, or returns why it is not one. What is known of the message is returned beside
// the fault: its id belongs into the answer.
func read(body []byte) (m message, fault *frameError) {
	body = bytes.TrimSpace(body)
	if !shallow(body) {
		return message{}, invalidRequest("the message nests deeper than %d levels", maxDepth)
	}
	if !json.Valid(body) {
		return message{}, &frameError{Code: mcp.PARSE_ERROR, Message: "the body is not JSON", Data: errorData{Code: textParse}}
	}
	switch body[0] {
	case '{':
	case '[':
		return message{}, invalidRequest("send one request at a time: batches are not part of the protocol")
	default:
		return message{}, invalidRequest("a request is a JSON object")
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return message{ID: idOf(body)}, invalidRequest("jsonrpc and method must be strings")
	}
	if m.ID != nil && !validID(m.ID) {
		return message{}, invalidRequest("id must be a string or an integer")
	}
	switch {
	case m.JSONRPC != mcp.JSONRPC_VERSION:
		return m, invalidRequest(`jsonrpc must be "2.0"`)
	case m.Method == "":
		return m, invalidRequest("there is no method: this server asks its clients nothing, so it expects no responses")
	}
	return m, nil
}

// validID reports whether an id can be sent back: a string, or a number without a fraction.
func validID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	return (id[0] == '-' || id[0] >= '0' && id[0] <= '9') && !bytes.ContainsAny(id, ".eE")
}

// idOf finds the id of what is otherwise no message; nil where there is none.
func idOf(body []byte) json.RawMessage {
	var only struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &only) != nil || only.ID == nil || !validID(only.ID) {
		return nil
	}
	return only.ID
}

// shallow reports whether text, JSON or not, opens no more than maxDepth brackets within each other.
func shallow(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\\':
			if quoted {
				i++
			}
		case '[', '{':
			if quoted {
				continue
			}
			if depth++; depth > maxDepth {
				return false
			}
		case ']', '}':
			if !quoted {
				depth--
			}
		}
	}
	return true
}

// callParams are those of tools/call.
type callParams struct {
	Name      string                     `json:"name"`
	Arguments map[string]json.RawMessage `json:"arguments"`
}

// versionOf is the revision of the protocol that a request of the newer era names in its body; empty
// for one of the older era, whose revision was agreed on at its beginning.
func versionOf(params json.RawMessage) string {
	var parsed struct {
		Meta *mcp.Meta `json:"_meta"`
	}
	if json.Unmarshal(params, &parsed) != nil {
		return ""
	}
	return parsed.Meta.ProtocolVersion()
}
