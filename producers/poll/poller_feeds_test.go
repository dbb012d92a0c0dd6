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

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/sources"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// hosts answer by address, without a network, and note what was asked.
type hosts struct {
	answers map[string]string // by the beginning of an address
	asked   []string
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked = append(h.asked, r.URL.String())
	for begin, body := range h.answers {
		if strings.HasPrefix(r.URL.String(), begin) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}
	}
	return nil, fmt.Errorf("no such host for %s", r.URL)
}

// timedOutbox is a log in memory that gives its records the time at which they came, as the real one does.
type timedOutbox struct{ memoryOutbox }

func (o *timedOutbox) Append(ctx context.Context, records ...*eventsv1.ReferenceRecord) error {
	for _, rec := range records {
		m := rec.ProtoReflect()
		body := m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("body"))).Message()
		if at := body.Descriptor().Fields().ByName("ingest_time"); at != nil {
			body.Set(at, protoreflect.ValueOfInt64(time.Now().UnixNano()))
		}
	}
	return o.memoryOutbox.Append(ctx, records...)
}

// pollSource runs a source for a time of a bubble.
func pollSource(t *testing.T, slug, url string, h http.RoundTripper, out *timedOutbox, d time.Duration) {
	t.Helper()
	for _, source := range sources.List() {
		if source.Slug != slug {
			continue
		}
		client, err := fetch.New(fetch.SourceConfig(source), producers.WallClock{}, h)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if err := poll.NewPoller(source, url, client, out, producers.WallClock{}, slog.New(slog.DiscardHandler)).Run(ctx); err != nil {
			t.Error(err)
		}
		return
	}
	t.Fatalf("there is no source %s", slug)
}

// A rate that still holds is reported each time, also by a server that could answer that nothing changed.
func TestRatesAreWrittenEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, out := &bank{answers: map[string]func() *http.Response{}}, &timedOutbox{}
		b.serves("apr", `{"yearlyAPR":"2.47"}`, "ETag", `"a"`)
		pollSource(t, "rocketpool", "", b, out, 150*time.Minute)
		n := 0
		for _, rec := range out.records {
			if rate := rec.GetRate(); rate != nil {
				n++
				if rate.Source != "rocketpool" || rate.Raw != "2.47" || time.Duration(rate.Interval) != time.Hour {
					t.Errorf("written is %v", rate)
				}
			}
		}
		if n != 3 {
			t.Errorf("%d rates are written within two hours and a half, want 3", n)
		}
	})
}

// What a source reports without a time holds when it was asked, and is written when it changes, or a day begins.
func TestRatesWithoutATimeHoldWhenTheyWereRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, out := &hosts{answers: map[string]string{"": `{"data":{"currency":"USD","rates":{"EUR":"0.9","JPY":"150"}}}`}}, &timedOutbox{}
		began := time.Now()
		pollSource(t, "coinbasefiat", "", h, out, 40*time.Minute)
		h.answers[""] = `{"data":{"currency":"USD","rates":{"EUR":"0.91","JPY":"150"}}}`
		pollSource(t, "coinbasefiat", "", h, out, time.Minute) // the next process knows what the log holds
		time.Sleep(24 * time.Hour)
		pollSource(t, "coinbasefiat", "", h, out, time.Minute)
		wantWritten(t, out.records,
			"coinbasefiat USD/EUR 0.9 2000-01-01", "coinbasefiat USD/JPY 150 2000-01-01", "exchange-rates?currency=USD: 200, 2 rows",
			"exchange-rates?currency=USD: 200, 2 rows", "exchange-rates?currency=USD: 200, 2 rows",
			"coinbasefiat USD/EUR 0.91 2000-01-01", "exchange-rates?currency=USD: 200, 2 rows",
			"coinbasefiat USD/EUR 0.91 2000-01-02", "coinbasefiat USD/JPY 150 2000-01-02", "exchange-rates?currency=USD: 200, 2 rows")
		var digests []uint64
		for _, rec := range out.records {
			if f := rec.GetFetch(); f != nil {
				digests = append(digests, f.Told)
			}
		}
		if a, b := digests[0], digests[3]; a == 0 || a == b || !slices.Equal(digests, []uint64{a, a, a, b, b}) {
			t.Errorf("the answers have the digests %x, want those of the values: one for the first three, another for the last two", digests)
		}
		if got := out.records[0].GetFixing().EventTime; got != began.UnixNano() {
			t.Errorf("the first rate was set at %s, want when it was read, %s", time.Unix(0, got), began)
		}
	})
}

// A source with two hosts is asked at both; at a configured address, only there.
func TestAFeedMayHaveAHostOfItsOwn(t *testing.T) {
	answers := map[string]string{
		"/stablecoins": `{"peggedAssets":[{"id":"1","name":"A","symbol":"A","pegType":"peggedUSD","circulating":{"peggedUSD":5},"price":1}]}`,
		"/v2/chains":   `[{"name":"Acme","tvl":7,"tokenSymbol":"ACM","gecko_id":null}]`,
		"/protocols":   `[{"slug":"acme","name":"Acme","tvl":3,"chainTvls":{}}]`,
	}
	for configured, want := range map[string][]string{
		"":                    {"https://stablecoins.llama.fi/stablecoins?includePrices=true", "https://api.llama.fi/v2/chains", "https://api.llama.fi/protocols"},
		"http://127.0.0.1/x/": {"http://127.0.0.1/x/stablecoins?includePrices=true", "http://127.0.0.1/x/v2/chains", "http://127.0.0.1/x/protocols"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, out := &hosts{answers: map[string]string{}}, &timedOutbox{}
			for i, path := range []string{"/stablecoins", "/v2/chains", "/protocols"} {
				h.answers[want[i]] = answers[path]
			}
			pollSource(t, "defillama", configured, h, out, time.Minute)
			if got := strings.Join(h.asked, "\n"); got != strings.Join(want, "\n") {
				t.Errorf("asked for\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
			var written []string
			for _, rec := range out.records {
				switch {
				case rec.GetStablecoin() != nil:
					written = append(written, "stablecoin of "+rec.GetStablecoin().Source)
				case rec.GetChainTvl() != nil:
					written = append(written, "chain of "+rec.GetChainTvl().Source)
				case rec.GetProtocol() != nil:
					written = append(written, "protocol of "+rec.GetProtocol().Source)
				case rec.GetFetch().GetError() != "":
					t.Errorf("failed: %v", rec)
				}
			}
			if got, want := strings.Join(written, ", "), "stablecoin of defillama, chain of defillama, protocol of defillama"; got != want {
				t.Errorf("written: %s, want %s", got, want)
			}
			// What is not new is not written again, also not by the next process.
			before := len(out.records)
			pollSource(t, "defillama", configured, h, out, time.Minute)
			for _, rec := range out.records[before:] {
				if rec.GetFetch() == nil {
					t.Errorf("written again: %v", rec)
				}
			}
		})
	}
}

// A first start reads all days that the index has, a later one the days that it may have missed; an index of the future
// would be the newest for ever.
func TestAnIndexOfDaysIsReadBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		midnight := time.Now().Truncate(24 * time.Hour)
		day := func(at time.Time) string {
			return fmt.Sprintf(`{"value":"40","value_classification":"Fear","timestamp":"%d"}`, at.Unix())
		}
		index := `{"data":[` + day(midnight.AddDate(0, 0, 9)) + "," + day(midnight) + "," + day(midnight.AddDate(0, 0, -1)) + `]}`
		h, out := &hosts{answers: map[string]string{"": index}}, &timedOutbox{}
		pollSource(t, "alternative", "", h, out, time.Minute)
		time.Sleep(48 * time.Hour)
		pollSource(t, "alternative", "", h, out, time.Minute)
		var limits []string
		for _, address := range h.asked {
			_, query, _ := strings.Cut(address, "?limit=")
			limit, _, _ := strings.Cut(query, "&")
			limits = append(limits, limit)
		}
		if got := strings.Join(limits, " "); got != "0 2 30 2" {
			t.Errorf("asked for %s days, want 0 (all), 2, and after two days 30, 2", got)
		}
		var days []*eventsv1.FearGreed
		for _, rec := range out.records {
			if f := rec.GetFearGreed(); f != nil {
				days = append(days, f)
			}
		}
		if len(days) != 2 || days[0].EventTime != midnight.UnixNano() {
			t.Errorf("written: %v, want today and yesterday once", days)
		}
		if len(out.dead) != 2 || out.dead[0].Reason != "future" {
			t.Errorf("dead letters %v, want the day of the future, once a process", out.dead)
		}
	})
}

// All days since 1999 are read when the log holds none, or none that the file of 90 days reaches back to.
func TestAFirstStartReadsAllYears(t *testing.T) {
	for name, c := range map[string]struct {
		newest string
		want   string
	}{
		"an empty log":       {"", allFile},
		"cut off on its way": {"1999-03-01", allFile},
		"a week away":        {"1999-12-23", historyFile},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, out := &hosts{answers: map[string]string{"": days("1999-12-31 USD=1.1", "1999-03-01 USD=1.2", "1999-01-04 USD=1.3")}}, &timedOutbox{}
			if c.newest != "" {
				out.records = []*eventsv1.ReferenceRecord{{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "1.2", Date: c.newest}}}}
			}
			pollSource(t, "ecb", "", h, out, time.Minute)
			if got := h.asked[0]; !strings.HasSuffix(got, "/"+c.want) {
				t.Errorf("%s: asked for %s, want %s", name, got, c.want)
			}
		})
	}
}

// Lists of markets hold the image of each coin. It is written as a part of the coin, where readers of coins find it, and once.
func TestImagesOfMarketsAreWrittenOnceAsPartsOfTheirCoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		row := `{"id":%q,"symbol":"hbr","name":"Harbor","image":%q,"current_price":%d,"market_cap_rank":1,"last_updated":"2000-01-01T00:00:00Z"}`
		const markets = "https://coingecko.example/coins/markets"
		h := &hosts{answers: map[string]string{markets: "[" + fmt.Sprintf(row, "harbor", "https://img.example/1.png", 7) + "," + fmt.Sprintf(row, "quiet", "", 1) + "]"}}
		out := &timedOutbox{}
		pollSource(t, "coingecko", "https://coingecko.example", h, out, 20*time.Minute)
		h.answers[markets] = "[" + fmt.Sprintf(row, "harbor", "https://img.example/2.png", 8) + "]"
		pollSource(t, "coingecko", "https://coingecko.example", h, out, 20*time.Minute)
		var images []string
		prices := 0
		for _, rec := range out.records {
			if c := rec.GetCoin(); c != nil {
				images = append(images, strings.Join([]string{c.Source, c.SourceId, c.Part, c.Symbol, c.Name, c.ImageUrl}, " "))
			}
			if rec.GetCoinMarket() != nil {
				prices++
			}
		}
		want := []string{"coingecko harbor market hbr Harbor https://img.example/1.png", "coingecko harbor market hbr Harbor https://img.example/2.png"}
		if !slices.Equal(images, want) || prices < 3 {
			t.Errorf("got the images %q beside %d prices, want %q", images, prices, want)
		}
	})
}
