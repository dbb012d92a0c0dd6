package ws

import (
	"context"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
)

// item is an element of a declared channel: what its messages hold in data, encoded once for all who want it.
type item struct {
	second int64
	rank   int // 0 for what is of no coin
	json   []byte
}

// itemFrame is what an item takes beside its JSON.
const itemFrame = 40

func (e item) at() int64   { return e.second }
func (e item) order() int  { return e.rank }
func (e item) weight() int { return (len(e.json) + itemFrame + priceBytes - 1) / priceBytes }

// channel is the timeline of a declared channel.
type channel struct {
	query.Channel
	*line[item]
}

func (h *Hub) newChannel(declared query.Channel, partitions int) *channel {
	c := &channel{Channel: declared}
	c.line = &line[item]{hub: h, ring: newRing[item](partitions, h.cfg.ChannelBytes), step: int64(declared.Step / time.Second), store: declared.Store,
		filled: make(chan struct{}),
		wants:  func(of wanted, e item) bool { return e.rank == 0 || of.coins.has(e.rank) },
		batch:  func(found []item) entries { return items(found) },
		scan:   c.scanStore,
	}
	close(c.filled) // the tail is read from far enough back
	id := c.identityOf(declared.Identity)
	c.id.Store(&id)
	return c
}

// identityOf is that of a name. Channels that are read from one log must differ.
func (c *channel) identityOf(name string) identity {
	return identityOf(strconv.Itoa(int(c.Channel.Code)) + "/" + name)
}

func (c *channel) code() byte   { return c.Channel.Code }
func (c *channel) name() string { return c.Channel.Name }

// item is an element as memory holds it; false where its coin is not in the table.
func (c *channel) item(e query.ChannelElement) (item, bool) {
	if e.CoinID == "" {
		return item{second: e.Second, json: e.JSON}, true
	}
	coin, known := c.hub.deps.Prices.Coins().ByID(e.CoinID)
	return item{second: e.Second, rank: coin.Rank, json: e.JSON}, known
}

// apply takes a record of the channel's topic. It is true where seconds have ended.
func (c *channel) apply(partition int32, offset int64, read query.ChannelRecord) bool {
	if int(partition) >= c.partitions() {
		return false
	}
	for _, e := range read.Elements {
		if e, known := c.item(e); known {
			c.ring.add(partition, e)
		}
	}
	return read.Until > 0 && c.ring.pulse(partition, read.Until, offset, read.Partial)
}

func (c *channel) scanStore(ctx context.Context, _ *pastReader, first, last int64, _ position, of wanted, visit func(int32, item)) (rows, most int, err error) {
	err = c.Past(ctx, first, last, c.hub.named(of.coins), pageMost, func(partition int32, e query.ChannelElement) {
		rows++
		if e, known := c.item(e); known && c.wants(of, e) {
			visit(partition, e)
		}
	})
	return rows, pageMost, err
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
	for i, e := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e.json...)
	}
	return b
}
