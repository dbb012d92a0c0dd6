package simulator

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Source declares the simulated side of an interface that is polled for reference values: coins, their
// markets, value locked, stablecoins, sentiment and currencies. It follows the provider's documentation and
// knows nothing of the adapter that will read it.
type Source struct {
	// Slug is the source's name in the adapters' list.
	Slug string
	// Base is the path at the provider's host that a client counts all others from; empty is the host.
	Base string
	// Requests may be made within Per; 0 is no limit.
	Requests int
	Per      time.Duration
	// Metered says that Config.SourceRequests replaces the limit.
	Metered bool
	// Tagged says that answers carry an ETag, and that one which has not changed is answered with 304.
	Tagged bool
	// MaxAge is for how long an answer may be kept, as Cache-Control says; 0 says nothing.
	MaxAge time.Duration

	// Routes are handlers by patterns of http.ServeMux, with the paths of the provider's host.
	Routes func(r *Reference) map[string]http.HandlerFunc
	// Throttled answers a request beyond the limit.
	Throttled func(w http.ResponseWriter)
}

// Sources returns every source that can be simulated, in alphabetical order.
func Sources() []Source {
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
	world     *world
	catalogue *catalogue
	clock     Clock
	url       string
	routes    *http.ServeMux
	requests  *bucket
	// hurried is an accelerated run, whose time stands while a client waits: instead of silence it hangs up.
	hurried bool

	mu     sync.Mutex
	faults Faults
	// frozen is since when the source is frozen, if it is.
	frozen  time.Time
	random  uint64
	counter counter
}

// Now is the time of which the source tells: it stands while the source is frozen.
func (r *Reference) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.heal(now)
	if r.faults.Frozen {
		return r.frozen
	}
	return now
}

// root stands for the provider's host.
func (s *Source) root() string { return "/" + s.Slug }

func (s *Simulator) openSource(source Source) *Reference {
	if source.Metered && s.cfg.SourceRequests > 0 {
		source.Requests, source.Per = s.cfg.SourceRequests, time.Minute
	}
	r := &Reference{
		source: source, world: s.world, catalogue: s.catalogue, clock: s.cfg.Clock, routes: http.NewServeMux(),
		url:      "http://" + s.listener.Addr().String() + source.root() + source.Base,
		requests: newBucket(source.Requests, source.Per), random: uint64(s.world.seed.of("faults of " + source.Slug)),
		hurried: s.cfg.Delivered != nil,
	}
	for pattern, handle := range source.Routes(r) {
		r.routes.HandleFunc(pattern, handle)
	}
	s.mux.Handle(source.root()+"/", http.StripPrefix(source.root(), http.HandlerFunc(r.serve)))
	return r
}

// SourceURLs are where a client finds each simulated source instead of at the base that its documentation
// names, by slug, without a slash at the end.
func (s *Simulator) SourceURLs() map[string]string {
	urls := map[string]string{}
	for _, r := range s.references {
		urls[r.source.Slug] = r.url
	}
	return urls
}

// SourceSlugs are the simulated sources, in the order of Sources.
func (s *Simulator) SourceSlugs() []string {
	var slugs []string
	for _, r := range s.references {
		slugs = append(slugs, r.source.Slug)
	}
	return slugs
}

// retryAfter is what a source asks of a client beyond its limit, in seconds.
const retryAfter = 30

func (r *Reference) serve(w http.ResponseWriter, req *http.Request) {
	r.counter.requests.Add(1)
	now := r.clock.Now()
	r.mu.Lock()
	r.heal(now)
	faults := r.faults
	r.random = mix(r.random + 1)
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
	case faults.Flood > 0 || !r.requests.allow(now):
		r.counter.throttled.Add(1)
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		if r.source.Throttled == nil {
			http.Error(w, "Too Many Requests", http.StatusTooManyRequests)
			return
		}
		r.source.Throttled(w)
		return
	}
	said := &answer{header: w.Header(), status: http.StatusOK}
	r.routes.ServeHTTP(said, req)
	if faults.Garbage > 0 && float64(bits>>11)/(1<<53) < faults.Garbage {
		_, _ = w.Write(garbage(bits, said.body.Bytes()))
		return
	}
	if r.source.MaxAge > 0 {
		w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d, public", int(r.source.MaxAge.Seconds())))
	}
	if r.source.Tagged && said.status == http.StatusOK {
		sum := fnv.New128a()
		_, _ = sum.Write(said.body.Bytes())
		tag := fmt.Sprintf(`W/"%x"`, sum.Sum(nil))
		w.Header().Set("ETag", tag)
		if req.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(said.status)
	_, _ = w.Write(said.body.Bytes())
}

// heal ends faults whose time is over; r.mu is held.
func (r *Reference) heal(now time.Time) {
	if until := r.faults.Until; !until.IsZero() && !now.Before(until) {
		r.faults = Faults{}
	}
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

// reference finds a source, nil if there is none.
func (s *Simulator) reference(slug string) *Reference {
	for _, r := range s.references {
		if r.source.Slug == slug {
			return r
		}
	}
	return nil
}

// flag reads a parameter that is true or false.
func flag(r *http.Request, name string, absent bool) bool {
	return cmp.Or(r.URL.Query().Get(name), strconv.FormatBool(absent)) == "true"
}
