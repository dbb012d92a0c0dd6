// Command follow prints each price of the coins that follow as [coin, milliseconds, price], until it is ended.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

func main() {
	if err := follow(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func follow(symbols []string) error {
	client, err := marketlog.New(marketlog.Options{})
	if err != nil {
		return err
	}
	stream := client.Stream(marketlog.StreamOptions{Symbols: symbols, Delivery: marketlog.All})
	for price, err := range stream.Prices(context.Background()) {
		if err != nil {
			return err
		}
		line, err := json.Marshal([]any{price.CoinID, price.Timestamp, price.Price})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
