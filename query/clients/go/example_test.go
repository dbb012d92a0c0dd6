package marketlog_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

func Example() {
	ctx := context.Background()
	client, err := marketlog.New(marketlog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.GetPrice(ctx, "BTC", &marketlog.GetPriceOptions{Vs: "eur"})
	if err != nil {
		log.Fatal(err)
	}
	if price := answer.Data.Aggregated; price != nil {
		fmt.Println(price.Price, "EUR, the median of", price.Providers, "providers")
	}
}

func ExampleInvalidRequest() {
	client, err := marketlog.New(marketlog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.GetPrice(context.Background(), "BTC", &marketlog.GetPriceOptions{Vs: "zzz"})
	if wrong, is := errors.AsType[*marketlog.InvalidRequest](err); is {
		fmt.Println(wrong.Field, wrong.Reason)
	}
}

func ExampleClient_IterCoins() {
	client, err := marketlog.New(marketlog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for coin, err := range client.IterCoins(context.Background(), &marketlog.SearchCoinsOptions{Sort: "name"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(coin.ID, coin.Name)
	}
}

func ExampleClient_SQL() {
	client, err := marketlog.New(marketlog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	rows, err := client.SQL(context.Background(), "SELECT symbol, price FROM v_prices WHERE coin_id = {coin:String} LIMIT 2", map[string]any{"coin": "bitcoin"})
	if err != nil {
		log.Fatal(err)
	}
	for row := range rows.All() {
		fmt.Println(row["symbol"], row["price"])
	}
}

// Each price of two coins, exactly once. The cursor that is kept with what was made of the prices is where the next program goes on.
func ExampleStream_Prices() {
	client, err := marketlog.New(marketlog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stream := client.Stream(marketlog.StreamOptions{Symbols: []string{"BTC", "ETH"}, Delivery: marketlog.All})
	for price, err := range stream.Prices(context.Background()) {
		if gap, is := errors.AsType[*marketlog.GapError](err); is {
			log.Fatal("prices up to ", gap.Until, " are lost")
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(price.Symbol, price.Price, stream.Cursor())
	}
}
