package ws

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
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
