package poll_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
)

// catalogue answers as CoinGecko does, for a few coins, the largest first.
type catalogue struct {
	coins []string
	// refused are statuses of the pages of coins.
	refused map[string]int
	asked   []askedPath
}

type askedPath struct {
	at   time.Time
	path string
}

func (c *catalogue) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	c.asked = append(c.asked, askedPath{time.Now(), path})
	status, body := http.StatusOK, "[]"
	rows := func(format string, most int) string {
		var rows []string
		for i, id := range c.coins[:min(len(c.coins), most)] {
			rows = append(rows, fmt.Sprintf(format, id, i+1))
		}
		return "[" + strings.Join(rows, ",") + "]"
	}
	switch id, page := strings.CutPrefix(path, "/coins/"); {
	case path == "/coins/list":
		body = rows(`{"id":"%[1]s","symbol":"s","name":"%[1]s"}`, len(c.coins))
	case path == "/coins/markets":
		if r.URL.Query().Get("page") == "1" {
			body = rows(`{"id":"%[1]s","symbol":"s","name":"%[1]s","current_price":1,"market_cap_rank":%[2]d,"last_updated":"1999-12-31T23:00:00Z"}`, 20)
		}
	case path == "/global":
		body = `{"data":{"total_market_cap":{"usd":1}}}`
	case strings.HasSuffix(path, "/market_chart"):
		body = `{"prices":[],"market_caps":[],"total_volumes":[]}`
	case page && c.refused[id] != 0:
		status, body = c.refused[id], `{"error":"no"}`
	case page:
		body = fmt.Sprintf(`{"id":%q,"symbol":"s","name":%q}`, id, id)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// pages are the coins whose pages were asked for, in this order.
func (c *catalogue) pages() []string {
	var ids []string
	for _, a := range c.asked {
		if id, ok := strings.CutPrefix(a.path, "/coins/"); ok && id != "list" && id != "markets" && !strings.HasSuffix(id, "/market_chart") {
			ids = append(ids, id)
		}
	}
	return ids
}

// crawl polls CoinGecko for a time of a bubble.
func crawl(t *testing.T, c *catalogue, out *memoryOutbox, d time.Duration) {
	t.Helper()
	i := slices.IndexFunc(sources.List(), func(s poll.Source) bool { return s.Slug == "coingecko" })
	source := sources.List()[i]
	client, err := fetch.New(fetch.SourceConfig(source), producers.WallClock{}, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := poll.NewPoller(source, "", client, out, producers.WallClock{}, slog.New(slog.DiscardHandler)).Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestCoinsAreReadByRankAndAgainAfterAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, out := &catalogue{coins: strings.Fields("zebra yak ox newt mole lynx ant")}, &memoryOutbox{}
		crawl(t, c, out, time.Hour)
		if got := c.pages(); !slices.Equal(got, c.coins) {
			t.Fatalf("read %v, want each once and the largest first: %v", got, c.coins)
		}
		c.coins = append(c.coins, "bat")
		// Another process goes on: it knows from the log what was read.
		c.asked = nil
		crawl(t, c, out, 2*24*time.Hour)
		if got := c.pages(); !slices.Equal(got, []string{"bat"}) {
			t.Fatalf("read %v the next days, want the coin that is new", got)
		}
		c.asked = nil
		crawl(t, c, out, 5*24*time.Hour-30*time.Minute)
		if got := c.pages(); !slices.Equal(got, c.coins[:len(c.coins)-1]) {
			t.Errorf("read %v by the end of the week, want those of its beginning, oldest first", got)
		}
	})
}

// A coin that the source does not have is skipped; one that it does not show us is asked for until it does.
func TestOnlyRefusedCoinsArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, out := &catalogue{coins: strings.Fields("zebra yak ox"), refused: map[string]int{"zebra": 404, "yak": 403}}, &memoryOutbox{}
		crawl(t, c, out, time.Hour)
		pages := c.pages()
		counts := map[string]int{}
		for _, id := range pages {
			counts[id]++
		}
		if counts["zebra"] != 1 || counts["yak"] < 3 || counts["ox"] != 0 {
			t.Fatalf("asked for %v, want the first once, the second again and again, and no further one", pages)
		}
		c.refused, c.asked = nil, nil
		crawl(t, c, out, time.Hour)
		if got := c.pages(); !slices.Equal(got, []string{"yak", "ox"}) {
			t.Errorf("asked for %v once it was shown, want it and what comes after", got)
		}
	})
}

// The limit of a source holds over all its feeds, whatever there is to read; and what changes most is read in time.
func TestACrawlStaysWithinItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &catalogue{}
		for i := range 1000 {
			c.coins = append(c.coins, fmt.Sprintf("coin-%03d", i))
		}
		const hours = 3
		crawl(t, c, &memoryOutbox{}, hours*time.Hour)
		if most := 5*60*hours + 5; len(c.asked) > most || len(c.asked) < most*9/10 {
			t.Errorf("%d requests in %d hours, want nearly the %d that are allowed", len(c.asked), hours, most)
		}
		top := 0
		for _, a := range c.asked {
			if a.path == "/coins/markets" {
				top++
			}
		}
		if want := 4 * 12 * hours; top < want*9/10 {
			t.Errorf("%d pages of markets, want about %d", top, want)
		}
	})
}
