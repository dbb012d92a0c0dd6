// Command stream prints the first three frames with prices that changed.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/coder/websocket"
)

func main() {
	if err := follow(3); err != nil {
		log.Fatal(err)
	}
}

func follow(frames int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := cmp.Or(os.Getenv("MARKETLOG_URL"), "http://127.0.0.1:8080") + "/api/v1/prices/ws"
	header := http.Header{"Authorization": {"Bearer " + os.Getenv("MARKETLOG_API_KEY")}}
	stream, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return fmt.Errorf("opening the stream: %w", err)
	}
	defer func() { _ = stream.CloseNow() }()
	stream.SetReadLimit(16 << 20) // the first frame holds all prices
	for frames > 0 {
		_, message, err := stream.Read(ctx)
		if err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
		var frame struct {
			Type, Timestamp string
			Data            json.RawMessage
		}
		if err := json.Unmarshal(message, &frame); err != nil {
			return fmt.Errorf("reading a frame: %w", err)
		}
		if frame.Type == "price_update" {
			frames--
			fmt.Printf("%s %.120s\n", frame.Timestamp, frame.Data)
		}
	}
	return nil
}
