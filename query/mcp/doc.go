// Package mcp lets models use the endpoints as tools, by the Model Context Protocol: POST /mcp answers one
// JSON-RPC request with one frame and keeps nothing between two of them. A tool is an endpoint, generated
// from its declaration: what it takes, what it answers, who may ask and what that costs are the
// endpoint's, and its result is the answer of the endpoint in the tool view.
//
// Both eras of the protocol are spoken: clients that begin with initialize (2024-11-05 to 2025-11-25) and
// those whose every request names the client (2026-07-28).
package mcp
