package views_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
)

// reach is a past of rates that notes from when on it is read.
type reach struct{ earliest time.Time }

func (r *reach) note(q views.RateQuery) {
	if r.earliest.IsZero() || q.From.Before(r.earliest) {
		r.earliest = q.From
	}
}

func (r *reach) RateSeries(_ context.Context, q views.RateQuery) ([]views.RateSeries, error) {
	r.note(q)
	return nil, nil
}

func (r *reach) RateHistory(_ context.Context, q views.RateQuery) ([]views.RatePoint, error) {
	r.note(q)
	return nil, nil
}

func (r *reach) RatesSince(context.Context, views.RateQuery) (time.Time, error) {
	return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), nil
}

func (r *reach) PriceHistory(ctx context.Context, q views.RateQuery) ([]views.RatePoint, error) {
	return r.RateHistory(ctx, q)
}

func (r *reach) PricesSince(ctx context.Context, q views.RateQuery) (time.Time, error) {
	return r.RatesSince(ctx, q)
}

// spans are the parameters that say how far back an operation looks, with the furthest that each takes.
func spans(p *query.Param) []string {
	switch {
	case p.Kind == query.Time && p.Name == "from":
		return []string{"2010-01-01"}
	case p.Name == "days":
		return []string{strconv.FormatInt(p.Max, 10)}
	case p.Name == "timeframe":
		return p.Allowed
	}
	return nil
}

// No operation reads the history of rates from before what the caller's plan allows, whatever its span is called, and each
// says what it cut off.
func TestNoOperationServesRatesFromBeforeThePlan(t *testing.T) {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	for _, line := range []string{"now 2026-11-20T10:00:00Z", "rate lido lending bitcoin 2.5 interval=24h", "rated 2026-11-20T10:00:00Z"} {
		w.Run(line)
	}
	past := &reach{}
	for name, plan := range limits.DefaultPlans() {
		walked := 0
		plans := limits.DefaultPlans()
		plan.PerMinute, plan.ChartsPerMinute, plan.PerMonth = 0, 0, 0
		plans[limits.PlanFree] = plan // which those without a key are served by
		reader := views.NewRateCharts(w.Yields, past)
		endpoints := append(rates.New(w.Yields, w.Prices, w.Catalog, past, rates.Served{}, reader, nil, nil).Endpoints(),
			charts.New(w.Prices, w.Catalog, views.NewCandles(w.Prices, nil), nil, w.Yields, reader).Endpoints()...)
		cfg := query.DefaultConfig()
		cfg.Listen, cfg.Auth = "127.0.0.1:0", query.AuthOptional
		server, err := query.NewServer(cfg, query.Deps{Limiter: limits.NewLimiter(time.Now, nil), Plans: plans, Now: func() time.Time { return w.Now },
			Endpoints: endpoints, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Version: "test"})
		w.Must(err)
		w.Must(server.Bind())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Run(ctx) }()
		for _, e := range endpoints {
			if !strings.Contains(e.Path, "rates") {
				continue
			}
			for i := range e.Params {
				for _, span := range spans(&e.Params[i]) {
					path, asked := strings.NewReplacer("{symbol}", "bitcoin", "{coinId}", "bitcoin", "{category}", "lending").Replace(e.Path), url.Values{}
					for _, p := range e.Params {
						if p.Required && p.In == query.Query {
							asked.Set(p.Name, p.Example)
						}
					}
					if e.ID == "listRateSeries" {
						asked.Set("coin", "bitcoin")
					}
					asked.Set(e.Params[i].Name, span)
					past.earliest = time.Time{}
					w.Now = w.Now.Add(time.Minute) // what was read is kept for one
					what := name + ": " + path + "?" + asked.Encode()
					response, err := http.Get("http://" + server.Addr() + path + "?" + asked.Encode())
					w.Must(err)
					content, err := io.ReadAll(response.Body)
					w.Must(err)
					response.Body.Close()
					var body struct{ Meta query.Meta }
					w.Must(json.Unmarshal(content, &body))
					if response.StatusCode != http.StatusOK || past.earliest.IsZero() {
						t.Errorf("%s: %d, read from %s: %s", what, response.StatusCode, past.earliest, content)
						continue
					}
					walked++
					// Series are of whole days, of which the one under way is read besides.
					oldest := w.Now.AddDate(0, 0, -plan.HistoryDays).Truncate(24 * time.Hour)
					if past.earliest.Before(oldest) {
						t.Errorf("%s: read from %s, the plan allows it from %s", what, past.earliest, oldest)
					}
					cut := len(body.Meta.Clamped) > 0
					if days := time.Duration(plan.HistoryDays) * 24 * time.Hour; cut && w.Now.Sub(past.earliest) < days-24*time.Hour {
						t.Errorf("%s: cut to %v, and read from %s only", what, body.Meta.Clamped, past.earliest)
					}
					if longest := span == "2010-01-01" || plan.HistoryDays < 365 && (span == "1y" || span == "max" || span == "all"); longest && !cut {
						t.Errorf("%s: says nothing of what was cut off", what)
					}
				}
			}
		}
		if walked < 6 {
			t.Errorf("%s: only %d spans were tried", name, walked)
		}
		cancel()
		w.Must(<-done)
	}
}
