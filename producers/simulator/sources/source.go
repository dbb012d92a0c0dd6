// Package sources serves the interfaces that are polled for coins, currencies, value locked and yields, each as its provider
// documents it. It imports nothing of the adapters that read them, so that neither hides the other's mistakes.
package sources

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// Source declares the simulated side of an interface that is polled for reference values: coins, their
// markets, value locked, stablecoins, sentiment and currencies. It follows the provider's documentation and
// knows nothing of the adapter that will read it.
type Source struct {
	// Slug is the source's name in the adapters' list.
	Slug string
	// Base is the path at the provider's host that a client counts all others from; empty is the host.
	Base string
	// Requests may be made within Per; 0 means no limit.
	Requests int
	Per      time.Duration
	// Metered means that Config.SourceRequests replaces the limit.
	Metered bool
	// Tagged means that answers carry an ETag, and that one which has not changed is answered with 304.
	Tagged bool
	// MaxAge is for how long an answer may be kept, as Cache-Control says; 0 sets no header.
	MaxAge time.Duration

	// Routes are handlers by patterns of http.ServeMux, with the paths of the provider's host.
	Routes func(r *Reference) map[string]http.HandlerFunc
	// Throttled answers a request beyond the limit.
	Throttled func(w http.ResponseWriter)
}

// List returns every source that can be simulated, in alphabetical order.
func List() []Source {
	return []Source{
		aave(),
		alternative(),
		bankOfCanada(),
		binanceEarn(),
		binanceStaked(),
		bitfinexFunding(),
		bybitEarn(),
		bybitMargin(),
		coinbaseStaked(),
		coinbaseFiat(),
		coinGecko(),
		coinPaprika(),
		defiLlama(),
		defiLlamaYields(),
		centralBank(),
		erAPI(),
		frankfurter(),
		frax(),
		gateLend(),
		jito(),
		kamino(),
		krakenEarn(),
		kucoinEarn(),
		lido(),
		marinade(),
		morpho(),
		okxEarn(),
		rocketPool(),
		swell(),
	}
}

// Reference is one simulated source at work.
type Reference struct {
	source    Source
	world     *market.World
	catalogue *market.Catalogue
	clock     provider.Clock
	url       string
	routes    *http.ServeMux
	requests  *provider.Bucket
	// hurried is an accelerated run, whose time does not advance while a client waits: instead of silence it hangs up.
	hurried bool

	mu     sync.Mutex
	faults provider.Faults
	// frozen is since when the source is frozen, if it is.
	frozen  time.Time
	random  uint64
	counter provider.Counter
}

// Now is the time of the source's values: it does not advance while the source is frozen.
func (r *Reference) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.faults = r.faults.At(now)
	if r.faults.Frozen {
		return r.frozen
	}
	return now
}

// root is the provider's host.
func (s *Source) root() string { return "/" + s.Slug }

// Config says of which market sources answer.
type Config struct {
	World *market.World
	Clock provider.Clock
	// Addr is where clients find them, HOST:PORT.
	Addr string
	// Coins are how many coins the sources know, at least those of the coin table.
	Coins int
	// Requests replaces, a minute, the budget of the sources that are Metered; 0 is as documented.
	Requests int
	// Accelerated is a run whose time does not advance while a client waits.
	Accelerated bool
}

// Server serves all sources, each below the path of its slug.
type Server struct {
	references []*Reference
	mux        *http.ServeMux
}

// New prepares all sources.
func New(cfg Config) *Server {
	s, coins := &Server{mux: http.NewServeMux()}, market.NewCatalogue(cfg.World, cfg.Coins)
	for _, source := range List() {
		s.references = append(s.references, s.open(source, coins, cfg))
	}
	return s
}

// ServeHTTP answers as the source does that the path begins with.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// References are the served sources, in alphabetical order.
func (s *Server) References() []*Reference { return s.references }

func (s *Server) open(source Source, coins *market.Catalogue, cfg Config) *Reference {
	if source.Metered && cfg.Requests > 0 {
		source.Requests, source.Per = cfg.Requests, time.Minute
	}
	r := &Reference{
		source: source, world: cfg.World, catalogue: coins, clock: cfg.Clock, routes: http.NewServeMux(),
		url:      "http://" + cfg.Addr + source.root() + source.Base,
		requests: provider.NewBucket(source.Requests, source.Per), random: uint64(cfg.World.Seed.Of("faults of " + source.Slug)),
		hurried: cfg.Accelerated,
	}
	for pattern, handle := range source.Routes(r) {
		r.routes.HandleFunc(pattern, handle)
	}
	s.mux.Handle(source.root()+"/", http.StripPrefix(source.root(), http.HandlerFunc(r.serve)))
	return r
}

// Slug is the source's name.
func (r *Reference) Slug() string { return r.source.Slug }

// URL is where a client finds the source, without a slash at the end.
func (r *Reference) URL() string { return r.url }

// Faults are in force now.
func (r *Reference) Faults() provider.Faults {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = r.faults.At(r.clock.Now())
	return r.faults
}

// SetFaults makes the source misbehave from now on, in place of what it did wrong before.
func (r *Reference) SetFaults(f provider.Faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults, r.frozen = f, r.clock.Now()
}

// Stats are what the source did so far.
func (r *Reference) Stats() provider.Stats { return r.counter.Stats() }

// retryAfter is what a source asks of a client beyond its limit, in seconds.
const retryAfter = 30

func (r *Reference) serve(w http.ResponseWriter, req *http.Request) {
	r.counter.Requests.Add(1)
	now := r.clock.Now()
	r.mu.Lock()
	r.faults = r.faults.At(now)
	faults := r.faults
	r.random = market.Mix(r.random + 1)
	bits := r.random
	r.mu.Unlock()
	switch {
	case faults.Refuse:
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	case faults.Silence && r.hurried:
		panic(http.ErrAbortHandler)
	case faults.Silence: // until the client gives up
		<-req.Context().Done()
		return
	case faults.Flood > 0 || !r.requests.Allow(now):
		r.counter.Throttled.Add(1)
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		if r.source.Throttled == nil {
			http.Error(w, "Too Many Requests", http.StatusTooManyRequests)
			return
		}
		r.source.Throttled(w)
		return
	}
	response := &answer{header: w.Header(), status: http.StatusOK}
	r.routes.ServeHTTP(response, req)
	if body, spoilt := faults.Spoil(bits, response.body.Bytes()); spoilt {
		_, _ = w.Write(body)
		return
	}
	if r.source.MaxAge > 0 {
		w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d, public", int(r.source.MaxAge.Seconds())))
	}
	if r.source.Tagged && response.status == http.StatusOK {
		sum := fnv.New128a()
		_, _ = sum.Write(response.body.Bytes())
		tag := fmt.Sprintf(`W/"%x"`, sum.Sum(nil))
		w.Header().Set("ETag", tag)
		if req.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(response.status)
	_, _ = w.Write(response.body.Bytes())
}

// answer keeps what a handler says until its state is known.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is for http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is for http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write is for http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// flag reads a parameter that is true or false.
func flag(r *http.Request, name string, absent bool) bool {
	return cmp.Or(r.URL.Query().Get(name), strconv.FormatBool(absent)) == "true"
}
