package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// followed are the coins that followers ask for, by symbol; the simulator prices them nearly each second.
var followed = map[string]string{"BTC": "bitcoin", "ETH": "ethereum", "SOL": "solana"}

// fromTheDocument is docs/examples/follow.py, which was written from /asyncapi.json alone and has no library. It prints elements of messages.
var fromTheDocument = clientLibrary{name: "docs/examples/follow.py", follow: []string{"python3", "-B", "follow.py", "9999"}, folder: "../../docs/examples", elements: true}

// follower is a program that prints prices.
type follower struct {
	name    string
	process *exec.Cmd
	// elements means that it prints elements of messages, in place of [coin, milliseconds, price].
	elements bool
	errors   strings.Builder

	mu     sync.Mutex
	prices []followedPrice
	// ended is why no more comes.
	ended error
}

// followedPrice is one price that was published.
type followedPrice struct {
	coin  string
	at    int64 // Unix milliseconds
	price float64
}

// losesNothing kills an instance twice while clients follow it with delivery all: what each got is what the log has, each price once.
func losesNothing(t *testing.T, libraries []clientLibrary) {
	m := startMortal(t)
	key, err := m.newKey("enterprise")
	if err != nil {
		t.Fatal(err)
	}
	m.key = key
	var followers []*follower
	for _, library := range append(libraries, fromTheDocument) {
		followers = append(followers, m.follow(t, library))
	}
	for range 2 {
		m.followedBeyond(t, followers, time.Now())
		m.kill(t)
		m.start(t)
	}
	until := time.Now().Truncate(time.Second)
	m.followedBeyond(t, followers, until)
	written := m.written(t, until.UnixMilli())
	for _, f := range followers {
		got := f.byCoin()
		for _, coin := range followed {
			prices := slices.DeleteFunc(got[coin], func(p followedPrice) bool { return p.at > until.UnixMilli() })
			want := slices.DeleteFunc(slices.Clone(written[coin]), func(p followedPrice) bool { return p.at < prices[0].at || p.at > until.UnixMilli() })
			if !slices.Equal(prices, want) {
				t.Errorf("%s: of %s it got\n%v\nand v_prices has\n%v", f.name, coin, prices, want)
			}
			t.Logf("%s: %d prices of %s over two kills", f.name, len(prices), coin)
		}
	}
}

// follow runs a follower until the test ends.
func (m *mortal) follow(t *testing.T, library clientLibrary) *follower {
	t.Helper()
	f := &follower{name: library.name, elements: library.elements}
	var symbols []string
	for symbol := range followed {
		symbols = append(symbols, symbol)
	}
	if library.elements { // it has symbols of its own, these
		symbols = nil
	}
	f.process = library.command(t.Context(), library.follow, symbols, "MARKETLOG_URL="+m.base, "MARKETLOG_API_KEY="+m.key)
	f.process.Stderr = &f.errors
	out, err := f.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.process.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { defer close(over); f.read(out) }()
	t.Cleanup(func() {
		_ = f.process.Process.Kill() // fails when it has ended already, which is reported elsewhere
		<-over
		_ = f.process.Wait() // it was killed
	})
	return f
}

// read reads lines, each of a price.
func (f *follower) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	err := errors.New("the end of the output")
	for lines.Scan() {
		var p followedPrice
		if err = f.decode(lines.Bytes(), &p); err != nil {
			err = fmt.Errorf("reading %q: %w", lines.Text(), err)
			break
		}
		f.mu.Lock()
		f.prices = append(f.prices, p)
		f.mu.Unlock()
		err = errors.New("the end of the output")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = err
}

// decode reads a line.
func (f *follower) decode(line []byte, p *followedPrice) error {
	if !f.elements {
		return json.Unmarshal(line, &[]any{&p.coin, &p.at, &p.price})
	}
	var element struct {
		CoinID    string
		Timestamp int64 // a gap, which is a message and no element, has a text here: an error
		Price     float64
	}
	err := json.Unmarshal(line, &element)
	p.coin, p.at, p.price = element.CoinID, element.Timestamp, element.Price
	return err
}

// byCoin is what was printed.
func (f *follower) byCoin() map[string][]followedPrice {
	f.mu.Lock()
	defer f.mu.Unlock()
	prices := map[string][]followedPrice{}
	for _, p := range f.prices {
		prices[p.coin] = append(prices[p.coin], p)
	}
	return prices
}

// newest is the time up to which all coins have been printed, in Unix milliseconds.
func newest(prices map[string][]followedPrice) (at int64) {
	for _, coin := range followed {
		of := prices[coin]
		if len(of) == 0 {
			return 0
		}
		if last := of[len(of)-1].at; at == 0 || last < at {
			at = last
		}
	}
	return at
}

// followedBeyond waits until each follower has prices of all coins that are newer than a time.
func (m *mortal) followedBeyond(t *testing.T, followers []*follower, after time.Time) {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(50 * time.Millisecond) {
		var behind *follower
		for _, f := range followers {
			f.mu.Lock()
			ended := f.ended
			f.mu.Unlock()
			if ended != nil {
				_ = f.process.Wait() // its output says why
				t.Fatalf("%s: %v\n%s", f.name, ended, strings.ReplaceAll(f.errors.String(), m.key, "KEY"))
			}
			if newest(f.byCoin()) <= after.UnixMilli() {
				behind = f
			}
		}
		if behind == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has no prices after %s\n%s", behind.name, after, m.logEnd())
		}
	}
}

// written are the prices that v_prices has, once it has those up to a time in Unix milliseconds.
func (m *mortal) written(t *testing.T, until int64) map[string][]followedPrice {
	t.Helper()
	var coins []string
	for _, coin := range followed {
		coins = append(coins, "'"+coin+"'")
	}
	statement := "SELECT coin_id, toUnixTimestamp(time) * 1000, price FROM v_prices WHERE coin_id IN (" + strings.Join(coins, ", ") + ") AND price IS NOT NULL " +
		"ORDER BY time FORMAT JSONCompactEachRow SETTINGS output_format_json_quote_64bit_integers = 0"
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get(m.sql + "/?query=" + url.QueryEscape(statement))
		if err != nil {
			t.Fatal(err)
		}
		rows := &follower{}
		rows.read(answer.Body)
		answer.Body.Close()
		if prices := rows.byCoin(); answer.StatusCode == http.StatusOK && newest(prices) > until {
			return prices
		}
		if time.Now().After(deadline) {
			t.Fatalf("v_prices has not come to %d: %d, %v", until, answer.StatusCode, rows.ended)
		}
	}
}
