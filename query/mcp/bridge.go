package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/marketlog/marketlog/query"
)

const (
	// maxLine bounds one message over stdio, as the server bounds the body of a request.
	maxLine = 64 << 10
	// maxAnswer bounds what is read of an answer; the largest are lists of some hundred coins.
	maxAnswer = 16 << 20
	// maxCalls bounds the calls under way at one time; further messages wait.
	maxCalls = 16
	// callPatience bounds one call, beyond what the server itself allows for it.
	callPatience = 30 * time.Second
)

// Bridge speaks the protocol over stdio for clients that start a program, and asks a server over HTTP. What
// needs no data (the handshakes and the list of tools) it answers from the server's catalog, without a key;
// calls it hands on, with the key.
type Bridge struct {
	base, key string
	client    *http.Client
	library   *server.MCPServer

	writing sync.Mutex
	out     io.Writer
}

// NewBridge reads the catalog of the server at an address. An empty key lists tools and refuses calls.
func NewBridge(ctx context.Context, base, key string) (*Bridge, error) {
	b := &Bridge{base: strings.TrimRight(base, "/"), key: key, client: &http.Client{Timeout: callPatience}}
	address := b.base + "/mcp/tools.json"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", address, err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog of tools: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog of tools from %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading the catalog of tools: %s answers %s", address, response.Status)
	}
	var catalog struct {
		catalogBody
		// The schemas stay as the server wrote them.
		Tools []struct {
			Name         string          `json:"name"`
			Description  string          `json:"description"`
			InputSchema  json.RawMessage `json:"inputSchema"`
			OutputSchema json.RawMessage `json:"outputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &catalog); err != nil || catalog.ServerInfo.Name == "" {
		return nil, fmt.Errorf("%s has no catalog of tools: is this the address of a Marketlog server?", address)
	}
	tools := make([]mcp.Tool, len(catalog.Tools))
	for i, t := range catalog.Tools {
		tools[i] = describeTool(query.ToolDeclaration{Name: t.Name, Description: t.Description, Input: t.InputSchema, Output: t.OutputSchema})
	}
	b.library = newServer(catalog.ServerInfo, catalog.Instructions, tools)
	return b, nil
}

// Run answers the messages of a client, one a line, until there are no more or the context ends. Calls
// under way are finished.
func (b *Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	b.out = out
	if closer, ok := in.(io.Closer); ok {
		// Else a program that is asked to end would wait for one message more.
		defer context.AfterFunc(ctx, func() { _ = closer.Close() })()
	}
	lines := bufio.NewReaderSize(in, maxLine)
	var calls sync.WaitGroup
	defer calls.Wait()
	free := make(chan struct{}, maxCalls)
	for ctx.Err() == nil {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if err := b.write(invalidRequest("the message has more than %d bytes", maxLine).frame(nil)); err != nil {
				return err
			}
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = lines.ReadSlice('\n')
			}
			line = nil
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			message := bytes.Clone(line)
			free <- struct{}{}
			calls.Go(func() {
				defer func() { <-free }()
				if frame := b.answer(ctx, message); frame != nil {
					// A client that reads no more has gone, and its input ends.
					_ = b.write(frame)
				}
			})
		}
		if err == io.EOF || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading messages: %w", err)
		}
	}
	return nil
}

func (b *Bridge) write(frame []byte) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	_, err := b.out.Write(append(bytes.TrimSpace(frame), '\n'))
	return err
}

// answer answers one message; nil where it wants no answer.
func (b *Bridge) answer(ctx context.Context, line []byte) []byte {
	m, fault := read(line)
	switch {
	case fault != nil:
		return fault.frame(m.ID)
	case m.notification():
		return nil
	case m.Method != string(mcp.MethodToolsCall):
		return b.ask(ctx, m, line)
	case b.key == "":
		return (&frameError{Code: codeUnauthorized, Message: "no API key: set MARKETLOG_API_KEY to one made with `marketlog keys create --plan pro`",
			Data: errorData{Code: textUnauthorized}}).frame(m.ID)
	}
	frame, err := b.call(ctx, m, line)
	if err != nil {
		return (&frameError{Code: mcp.INTERNAL_ERROR, Message: "asking " + b.base + ": " + err.Error(), Data: errorData{Code: textServerError}}).frame(m.ID)
	}
	return frame
}

// ask lets the library answer what is not a call.
func (b *Bridge) ask(ctx context.Context, m message, line []byte) []byte {
	answer := b.library.HandleMessage(ctx, line)
	frame, err := json.Marshal(answer)
	if err != nil {
		return (&frameError{Code: mcp.INTERNAL_ERROR, Message: "internal error", Data: errorData{Code: textServerError}}).frame(m.ID)
	}
	if failed, ok := answer.(mcp.JSONRPCError); ok && failed.Error.Data == nil {
		return named(failed.Error.Code, failed.Error.Message).frame(m.ID)
	}
	return frame
}

// call hands a call on and returns the frame that answers it.
func (b *Bridge) call(ctx context.Context, m message, line []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/mcp", bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentJSON)
	request.Header.Set("Accept", contentJSON)
	request.Header.Set("Authorization", "Bearer "+b.key)
	if version := versionOf(m.Params); mcp.IsModernProtocol(version) {
		// Over HTTP the newer era says in headers too what a message is.
		request.Header.Set(mcp.HeaderProtocolVersion, version)
		for name, value := range mcp.StandardHeaders(version, mcp.MCPMethod(m.Method), m.Params) {
			request.Header.Set(name, value)
		}
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var frame struct {
		JSONRPC string      `json:"jsonrpc"`
		Error   *frameError `json:"error"`
	}
	if json.Unmarshal(body, &frame) != nil || frame.JSONRPC == "" {
		return nil, fmt.Errorf("it answers %s without a frame", response.Status)
	}
	if frame.Error != nil && frame.Error.Code == codeRateLimited {
		frame.Error.Data.Code = textRateLimitStdio
		return frame.Error.frame(m.ID), nil
	}
	return body, nil
}
