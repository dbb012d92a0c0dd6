// Package client is where the gate generates a client from the API's document, with oapi-codegen, to see that it compiles.
// What is generated is not kept.
package client

import _ "github.com/oapi-codegen/runtime" // what a generated client needs
