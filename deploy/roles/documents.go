package roles

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/docs"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/mcp"
	"github.com/marketlog/marketlog/query/pages"
	"github.com/marketlog/marketlog/query/sql"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/stream/history/read"
)

// documentsWhileStarting serves what the API says of itself before there is a log, a store or a key to read: the guides, and the
// descriptions of all operations and messages. It is made at the first look: most starts are over before there is one.
func documentsWhileStarting(in *instance.Instance, listen string) http.Handler {
	made := sync.OnceValues(func() (http.Handler, error) { return newDocuments(in, listen) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, err := made()
		if err != nil {
			in.Log.Error("describing the API before it is served failed", "error", err)
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// newDocuments makes a server of all declarations that never runs, of an instance that has nothing open: that of the process is being opened
// meanwhile.
func newDocuments(opening *instance.Instance, listen string) (http.Handler, error) {
	in := &instance.Instance{Config: opening.Config, Clock: opening.Clock, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}
	r, err := newReading(in, nil, keys.NewPepper())
	if err != nil {
		return nil, err
	}
	u := newUnits(r, nil, nil)
	channels := declareChannels(in, read.Reader{}, channelPasts{}, u.priced, u.pegging, u.providing)
	hub, err := ws.NewHub(ws.DefaultConfig(), ws.Deps{Prices: u.priceCache, Catalog: u.catalog, DayAgo: u.figures, Channels: channels, Waiting: r.keysTail.Waiting,
		Version: operations.Version(), Now: in.Clock.Now, Metrics: in.Metrics, Log: in.Log})
	if err != nil {
		return nil, err
	}
	simulated := in.Config.Feeds == "sim"
	shown, err := pages.New(pages.Config{Listen: listen, Simulated: simulated, Hosts: in.Config.Page.Hosts, Version: operations.Version()},
		pages.Deps{Pepper: keys.NewPepper(), Keys: r.keys, Links: pages.NewLinks(time.Now), SQL: func() bool { return false }, Docs: docs.Files})
	if err != nil {
		return nil, err
	}
	plans, err := in.Config.LoadPlans()
	if err != nil {
		return nil, err
	}
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Auth = listen, query.AuthMode(in.Config.Auth.Mode)
	var mounting error
	server, err := query.NewServer(cfg, query.Deps{
		Keys: r.keys, Plans: plans, Endpoints: u.endpoints(func() bool { return simulated }), Mounted: []*huma.Operation{hub.Operation(), sql.Operation()},
		Mount: func(router fiber.Router, server *query.Server) {
			if mounting = hub.Mount(router, server); mounting != nil {
				return
			}
			shown.Mount(router, server)
			tools, err := mcp.New(mcp.Config{Version: operations.Version(), Simulated: simulated}, server)
			if err != nil {
				mounting = fmt.Errorf("describing the tools: %w", err)
				return
			}
			tools.MountDocuments(router)
			mounting = operations.MountSchemas(router)
		},
		Now: in.Clock.Now, Metrics: in.Metrics, Log: in.Log, Version: operations.Version(),
	})
	switch {
	case err != nil:
		return nil, err
	case mounting != nil:
		return nil, fmt.Errorf("serving documents: %w", mounting)
	}
	return server.Documents(), nil
}
