// Command rest prints the price of bitcoin, and what lending USDC earns.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	var price struct {
		Data struct {
			Aggregated struct {
				Price     float64 `json:"price"`
				Providers int     `json:"providers"`
			} `json:"aggregated"`
		} `json:"data"`
	}
	get("/api/v1/prices/BTC", &price)
	fmt.Printf("BTC %v USD, the median of %d providers\n", price.Data.Aggregated.Price, price.Data.Aggregated.Providers)

	var lending struct {
		Data struct {
			Rates []struct {
				Provider string  `json:"provider"`
				Rate     float64 `json:"rate"`
			} `json:"rates"`
		} `json:"data"`
	}
	get("/api/v1/rates/USDC?category=lending", &lending)
	for _, rate := range lending.Data.Rates {
		fmt.Printf("%s %.2f %% a year\n", rate.Provider, rate.Rate)
	}
}

func get(path string, into any) {
	url := cmp.Or(os.Getenv("MARKETLOG_URL"), "http://127.0.0.1:8080") + path
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("MARKETLOG_API_KEY"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s", path, answer.Status) //nolint:gocritic // the process ends, and the connection with it
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		log.Fatal(err)
	}
}
