package ws

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// connectParams are the query parameters by which a client says what it wants when it connects. The key is not one of them.
var connectParams = []string{"symbols", "channels", "intervalMs", "delivery", "cursor", "snapshot", "heartbeatMs", "from", "to", "speed"}

// asked reads what a client asks for in the query of its request; nil if it asks for nothing. Its faults are a 400: with strict any
// parameter that there is not.
func (h *Hub) asked(ctx *fasthttp.RequestCtx, strict bool) (*request, error) {
	args := ctx.QueryArgs()
	wrong := unknownParams(args, strict)
	if len(wrong) == 0 && !slices.ContainsFunc(connectParams, args.Has) {
		return nil, nil
	}
	m := message{Type: "subscribe", Delivery: string(args.Peek("delivery")), Cursor: string(args.Peek("cursor")), From: string(args.Peek("from")), To: string(args.Peek("to"))}
	m.Symbols, m.Channels = list(args.Peek("symbols")), list(args.Peek("channels"))
	number := func(name, wanted string) *float64 {
		if !args.Has(name) {
			return nil
		}
		n, err := strconv.ParseFloat(string(args.Peek(name)), 64)
		if err != nil {
			wrong.note(faulty(name, "%s", wanted))
			return nil
		}
		return &n
	}
	m.IntervalMs, m.HeartbeatMs, m.Speed = number("intervalMs", millisecondsWanted), number("heartbeatMs", millisecondsWanted), number("speed", speedWanted)
	if args.Has("snapshot") {
		wanted, err := strconv.ParseBool(string(args.Peek("snapshot")))
		if err != nil {
			wrong.note(faulty("snapshot", "must be 1 or 0"))
		}
		m.Snapshot = &wanted
	}
	r, more := h.request(&m)
	wrong = append(wrong, more...)
	snapshot := h.deps.Catalog.Snapshot()
	ranks, unknown := find(snapshot, m.Symbols)
	wrong.note(unknownCoins(snapshot, unknown))
	if len(wrong) > 0 {
		return nil, wrong.refusal()
	}
	r.ranks = ranks
	if !r.priceless && (r.delivery == deliveryAll && r.from == nil && !h.begun() || r.from != nil && !h.placed()) {
		return nil, query.Starting(notBegun)
	}
	for _, c := range r.channels {
		if chosen := len(r.ranks); c.Coins > 0 && (chosen == 0 || chosen > c.Coins) {
			return nil, query.Invalid("symbols", "must name 1 to %d coins with the channel %s", c.Coins, c.name())
		}
		if !c.onDemand() && !c.begun() {
			return nil, query.Starting(c.notBegun())
		}
	}
	if r.replay != nil && r.replay.speed > 0 && h.paced.Load() >= pacedMost {
		return nil, &query.Error{Status: http.StatusServiceUnavailable, Code: query.CodeOverloaded, Message: tooManyReplays, RetryAfter: 5}
	}
	r.extended = true
	return &r, nil
}

// entitled refuses one whose plan lacks what a channel needs that it asks for.
func (h *Hub) entitled(ctx *fasthttp.RequestCtx, a *admission) error {
	if a.asks == nil || !a.known || a.refused != nil {
		return nil
	}
	if why := a.asks.beyond(a.caller.Plan, time.Now()); why != "" {
		h.release(a.caller)
		return &query.Error{Status: http.StatusPaymentRequired, Code: query.CodePlanRequired, Message: why}
	}
	for _, c := range a.asks.channels {
		if c.Needs == limits.NoFeature {
			continue
		}
		if err := a.gate.RequirePlan(ctx, a.caller, c.Needs, time.Now()); err != nil {
			h.release(a.caller)
			return err
		}
	}
	return nil
}

// notBegun is why no cursor can be given.
const notBegun = "a partition of prices.v1 has not reported yet how far it is"

// begun means that cursors can be given.
func (h *Hub) begun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position.whole()
}

// placed means that cursors can be compared with what this replica has read.
func (h *Hub) placed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position.newest() > 0
}

// list splits what is separated by commas; nil of nothing.
func list(value []byte) (items []string) {
	if len(value) == 0 {
		return nil
	}
	for item := range strings.SplitSeq(string(value), ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items
}

// welcome answers what a subscriber asked for when it connected; its caller holds h.mu and s.mu.
func (h *Hub) welcome(s *subscriber, asks *request) bool {
	r := *asks
	if !r.silent && r.from == nil && r.delivery != deliveryAll {
		// It has no coins yet, as one who subscribes has: all that it asks for are new to it.
		s.chosen = newSelection(s.coins)
		if !r.named {
			r.ranks, r.named = h.all.ranks(), true
		}
	}
	return h.grant(s, r)
}

// fault is what is wrong with one field of a message, or with the parameter of that name.
type fault struct {
	field, what string
	// alone means that what is a sentence without the field before it.
	alone bool
	// candidates are what may be meant, likeliest first, hint says so in words; nil and empty for none.
	candidates any
	hint       string
}

func faulty(field, format string, args ...any) *fault {
	return &fault{field: field, what: fmt.Sprintf(format, args...)}
}

func (f *fault) text() string {
	if f.alone {
		return f.what
	}
	return f.field + " " + f.what
}

// faults are all that is wrong with a request.
type faults []*fault

// note adds a fault; nil is none.
func (all *faults) note(f *fault) {
	if f != nil {
		*all = append(*all, f)
	}
}

// text is the message of all.
func (all faults) text() string {
	texts := make([]string, len(all))
	for i, f := range all {
		texts[i] = f.text()
	}
	return strings.Join(texts, "; ")
}

// refusal has them as every operation answers its faults: by field, with what may be meant.
func (all faults) refusal() *query.Error {
	e := query.Invalid(all[0].field, "%s", all[0].what)
	for i, f := range all {
		if i > 0 {
			e.Fields[f.field] = append(e.Fields[f.field], f.what)
		}
		if e.Hint == "" {
			e.Candidates, e.Hint = f.candidates, f.hint
		}
	}
	return e
}

// refuseFaults answers a message that has faults.
func (h *Hub) refuseFaults(s *subscriber, id string, all faults) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.refuseFaultsLocked(s, id, all)
}

// refuseFaultsLocked is refuseFaults for one who holds h.mu and s.mu.
func (h *Hub) refuseFaultsLocked(s *subscriber, id string, all faults) bool {
	shown := all.refusal()
	body, err := json.Marshal(Fault{Code: shown.Code, Message: all.text(), Errors: shown.Fields, Candidates: shown.Candidates, Hint: shown.Hint})
	if err != nil {
		panic(err) // strings, and names of coins and channels, always encode
	}
	b := append(appendID(open(nil, typeError), id), `,"error":`...)
	return s.reply(h.stamp(s).close(append(b, body...)))
}

// unknownCoins is the fault of names that no coin has; nil without such.
func unknownCoins(snapshot *views.Snapshot, names []string) *fault {
	if len(names) == 0 {
		return nil
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	f := faulty("symbols", "no coin has the symbol or id %s", strings.Join(shown, ", "))
	f.alone = true
	// To look for what is near takes a look at every coin: for the first few names only.
	var near []views.Alternative
	for _, name := range names[:min(len(names), nearMost)] {
		near = append(near, snapshot.Near(name)...)
	}
	if len(near) > 0 {
		f.candidates, f.hint = near, "did you mean "+near[0].CoinID+"?"
	}
	return f
}

// nearMost is for how many unknown names of one request others are suggested.
const nearMost = 3

// unknownParams are the faults of names that are no parameters: with strict all of them, else those that one must be meant by.
func unknownParams(args *fasthttp.Args, strict bool) (all faults) {
	for key := range args.All() {
		name := string(key)
		if name == paramLastID || slices.Contains(connectParams, name) {
			continue
		}
		const no = "is not a parameter of this operation"
		shown := strings.ToValidUTF8(name[:min(len(name), longestName)], "\uFFFD")
		if i := slices.IndexFunc(connectParams, func(known string) bool { return query.Slipped(known, name) || strict && schemas.OneSlip(known, name) }); i >= 0 {
			f := faulty(shown, "%s: did you mean %s?", no, connectParams[i])
			f.candidates, f.hint = []string{connectParams[i]}, "did you mean "+connectParams[i]+"?"
			all = append(all, f)
		} else if strict {
			all = append(all, faulty(shown, "%s; it has %s", no, strings.Join(connectParams, ", ")))
		}
	}
	return all
}
