// Command cases runs ../cases.json, this module being the current folder: cases URL KEY. It prints what does not hold.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	marketlog "github.com/marketlog/marketlog/query/clients/go"
)

// testCase is one of cases.json, which states what its parts mean.
type testCase struct {
	Name, Call, Of, Key, Distinct string
	With                          map[string]any
	Holds, Fails                  map[string]any
	Take, AtOnce                  int
	Messages                      bool
}

func main() {
	found, count, err := run(os.Args[1], os.Args[2])
	switch {
	case err != nil:
		fmt.Println(err)
	case len(found) > 0:
		fmt.Println(strings.Join(found, "\n"))
	default:
		fmt.Println(count, "cases hold")
		return
	}
	os.Exit(1)
}

func run(url, key string) (found []string, count int, err error) {
	text, err := os.ReadFile("../cases.json")
	if err != nil {
		return nil, 0, err
	}
	var file struct{ Cases []testCase }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, 0, err
	}
	for _, c := range file.Cases {
		client, err := marketlog.New(marketlog.Options{URL: url, Key: or(c.Key, key)})
		if err != nil {
			return nil, 0, err
		}
		for _, fault := range c.faults(client) {
			found = append(found, c.Name+": "+fault)
		}
	}
	return found, len(file.Cases), nil
}

// faults makes the call, as often at once as the case states, and returns what does not hold.
func (c testCase) faults(client *marketlog.Client) (found []string) {
	var calls sync.WaitGroup
	var mu sync.Mutex
	for range max(1, c.AtOnce) {
		calls.Go(func() {
			answer, err := c.make(context.Background(), client)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, c.check(answer, err)...)
		})
	}
	calls.Wait()
	return found
}

func or(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}
