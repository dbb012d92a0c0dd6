package ws

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// item is an element of a declared channel: what its messages hold in data, encoded once for all who want it.
type item struct {
	second int64
	rank   int // 0 for what is of no coin, unranked for what is of a coin that no venue trades
	json   []byte
	// encode makes json, where memory holds size bytes to make it from.
	encode func() []byte
	size   int
}

// itemFrame is what an item takes beside its JSON.
const itemFrame = 40

func (e item) at() int64   { return e.second }
func (e item) order() int  { return e.rank }
func (e item) weight() int { return (len(e.json) + e.size + itemFrame + priceBytes - 1) / priceBytes }

// channel is the timeline of a declared channel.
type channel struct {
	query.Channel
	memory
	hub *Hub
	// line and offsets are its memory: by second, or by offset.
	line    *line[item]
	offsets *offsetLine
	demand  demand
}

func (h *Hub) newChannel(declared query.Channel, partitions int) *channel {
	c := &channel{Channel: declared, hub: h, demand: demand{wanted: make(chan struct{}, 1)}}
	id := c.identityOf(declared.Identity)
	wants := func(of wanted, e item) bool {
		return e.rank == 0 || e.rank == unranked && of.everything || e.rank > 0 && of.coins.has(e.rank)
	}
	if declared.Offsets {
		c.offsets = newOffsetLine(id, partitions, h.cfg.OffsetBytes, wants)
		c.memory = c.offsets
		return c
	}
	c.line = &line[item]{hub: h, ring: newRing[item](partitions, h.cfg.ChannelBytes), step: int64(declared.Step / time.Second), store: declared.Store,
		filled: make(chan struct{}),
		wants:  wants,
		batch:  func(found []item) entries { return items(found) },
		scan:   c.scanStore,
	}
	close(c.line.filled) // the tail is read from far enough back
	c.line.id.Store(&id)
	c.memory = c.line
	return c
}

// identityOf is that of a name. Channels that are read from one log must differ.
func (c *channel) identityOf(name string) identity {
	return identityOf(strconv.Itoa(int(c.Channel.Code)) + "/" + name)
}

func (c *channel) code() byte   { return c.Channel.Code }
func (c *channel) name() string { return c.Channel.Name }

// unranked is the rank of coins that are not in the table: nobody can choose them.
const unranked = -1

// item is an element as memory holds it.
func (c *channel) item(e query.ChannelElement) item {
	i := item{second: e.Second, json: e.JSON, encode: e.Encode, size: e.Size}
	if e.CoinID == "" {
		return i
	}
	i.rank = unranked
	if coin, known := c.hub.deps.Prices.Coins().ByID(e.CoinID); known {
		i.rank = coin.Rank
	}
	return i
}

// apply takes a record of the channel's topic. It is true where seconds have ended.
func (c *channel) apply(partition int32, offset int64, read query.ChannelRecord) bool {
	if int(partition) >= c.partitions() {
		return false
	}
	if c.offsets != nil {
		elements := make([]item, len(read.Elements))
		for i, e := range read.Elements {
			elements[i] = c.item(e)
		}
		c.offsets.add(partition, offset, elements, read.Partial, read.Until > 0)
		return read.Until > 0
	}
	for _, e := range read.Elements {
		c.line.ring.add(partition, c.item(e))
	}
	return read.Until > 0 && c.line.ring.pulse(partition, read.Until, offset, read.Partial)
}

func (c *channel) scanStore(ctx context.Context, _ *pastReader, first, last int64, _ position, of wanted, visit func(int32, item)) (rows, most int, err error) {
	var ids []string
	if !of.everything {
		ids = c.hub.named(of.coins)
	}
	most = cmp.Or(c.Page, pageMost)
	err = c.Past(ctx, first, last, ids, most, func(partition int32, e query.ChannelElement) {
		rows++
		if e := c.item(e); c.line.wants(of, e) {
			visit(partition, e)
		}
	})
	return rows, most, err
}

// encode writes a message of the channel.
func (c *channel) encode(b batch) []byte {
	out := appendText(append(open(make([]byte, 0, 160+260*b.count()), c.Event), `,"channel":`...), c.Name)
	out = append(b.entries.append(append(out, `,"data":[`...)), ']')
	return appendTail(out, b.second*int64(time.Second))
}

// items are those of one second.
type items []item

func (l items) count() int { return len(l) }

func (l items) append(b []byte) []byte {
	for _, e := range l {
		encoded := e.json
		if e.encode != nil {
			encoded = e.encode()
		}
		if len(encoded) == 0 {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(b, encoded...)
	}
	return b
}

const (
	// linger is how long a channel that is fed on demand is fed beyond its last reader, so that one who lost its connection finds
	// it going on.
	linger = time.Minute
	// demandLook is how often readers are counted.
	demandLook = time.Second
)

// demand is who reads a channel that is fed only while somebody does.
type demand struct {
	readers atomic.Int64
	// wanted has one place: a first reader came.
	wanted chan struct{}
	// ready means that every partition has reported how far it is since the feeding began.
	ready  atomic.Bool
	stated map[int32]bool
	// watched means that new elements will be looked for; looked is when they last were, which who sets watched may read.
	watched atomic.Bool
	looked  time.Time
}

// onDemand means that a channel is fed only while it has readers.
func (c *channel) onDemand() bool { return c.Follow != nil }

// begun means that one who follows a channel can be given a place in it.
func (c *channel) begun() bool {
	if c.onDemand() {
		return c.demand.ready.Load()
	}
	return c.heads().whole()
}

// states means that a channel's elements are states: those before the newest are sent to nobody.
func (c *channel) states() bool { return c.Present != nil }

// refuses is why one who has chosen some coins may not follow a channel, and the code of the error; empty where it may.
func (c *channel) refuses(plan *limits.Plan, chosen selection) (code, why string) {
	switch n := chosen.count(); {
	case !plan.Allows(c.Needs):
		return query.CodePlanRequired, "the plan " + plan.Name + " does not include the channel " + c.name()
	case c.Coins > 0 && n > c.Coins:
		return query.CodeValidation, fmt.Sprintf("the channel %s takes at most %d coins, and %d are chosen: name them in symbols", c.name(), c.Coins, n)
	}
	return "", ""
}

func (c *channel) join() {
	if c.demand.readers.Add(1); c.onDemand() {
		signal(c.demand.wanted)
	}
}

func (c *channel) leave() { c.demand.readers.Add(-1) }

// attend feeds a channel while it has readers, until the context ends.
func (h *Hub) attend(ctx context.Context, c *channel) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.demand.wanted:
		}
		if c.demand.readers.Load() > 0 { // or the signal was that of one who came while it was fed
			h.feedWhileRead(ctx, c)
		}
	}
}

func (h *Hub) feedWhileRead(ctx context.Context, c *channel) {
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.demand.stated = map[int32]bool{}
		if err := c.Follow(ctx, func(partition int32, offset int64, read query.ChannelRecord) { h.feed(c, partition, offset, read) }); err != nil && ctx.Err() == nil {
			h.deps.Log.Error("a channel of the stream ended", "channel", c.name(), "error", err)
		}
	}()
	defer func() {
		stop()
		<-over
		c.demand.ready.Store(false)
		if c.demand.readers.Load() > 0 {
			signal(c.demand.wanted) // it came meanwhile
		}
	}()
	look := time.NewTicker(demandLook)
	defer look.Stop()
	for read := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-over:
			select {
			case <-ctx.Done():
			case <-time.After(demandLook):
			}
			return
		case now := <-look.C:
			if c.demand.readers.Load() > 0 {
				read = now
			} else if now.Sub(read) >= linger {
				return
			}
		}
	}
}

// feed takes the new elements of a channel that is fed on demand.
func (h *Hub) feed(c *channel, partition int32, offset int64, read query.ChannelRecord) {
	if !c.apply(partition, offset, read) {
		return
	}
	c.demand.stated[partition] = true
	if len(c.demand.stated) == c.partitions() {
		c.demand.ready.Store(true)
	}
	if c.Pace == 0 {
		signal(h.together)
		return
	}
	if c.demand.watched.CompareAndSwap(false, true) {
		// At once where nothing came for so long: what is rare is not delayed.
		time.AfterFunc(c.Pace-time.Since(c.demand.looked), func() {
			c.demand.looked = time.Now()
			c.demand.watched.Store(false)
			signal(h.together)
		})
	}
}

// begin gives those feeds a place that began before their channels did, and sends the present of those that have states. Its
// caller holds s.mu.
func (s *subscriber) begin(h *Hub) {
	for _, f := range s.channels {
		c, declared := f.of.(*channel)
		if !declared || !f.begins || !c.begun() {
			continue
		}
		f.begins = false
		if f.unplaced {
			f.unplaced, f.offered = false, c.heads()
			if f.at = f.offered; f.place != nil {
				f.at = f.place
				h.resumed(s, f, f.asked)
			}
		}
		if !c.states() || f.silent {
			continue
		}
		if elements := c.Present(); len(elements) > 0 {
			found := make(items, len(elements))
			for i, e := range elements {
				found[i] = c.item(e)
			}
			s.enqueue(frame{own: s.render(c.encode(batch{second: f.at.newest(), entries: found, after: f.at}), h.reachedCursor(s))})
		}
	}
}
