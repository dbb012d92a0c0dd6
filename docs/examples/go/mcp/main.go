// Command mcp prints the tools that a model is offered, and what one of them answers.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if err := call(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func call(ctx context.Context) error {
	url := cmp.Or(os.Getenv("MARKETLOG_URL"), "http://127.0.0.1:8080") + "/mcp"
	key := map[string]string{"Authorization": "Bearer " + os.Getenv("MARKETLOG_API_KEY")}
	c, err := client.NewStreamableHttpClient(url, transport.WithHTTPHeaders(key))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		return err
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "example", Version: "1"}}}); err != nil {
		return err
	}
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	for _, tool := range tools.Tools {
		fmt.Println(tool.Name)
	}
	price := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "get_price", Arguments: map[string]any{"symbols": []string{"BTC", "ETH"}}}}
	result, err := c.CallTool(ctx, price)
	if err != nil {
		return err
	}
	fmt.Println(result.StructuredContent)
	return nil
}
