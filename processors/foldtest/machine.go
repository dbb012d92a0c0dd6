package foldtest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// day is the day that all scripts play on.
var day = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// Time is a time of the day that all scripts play on, "10:00:00.5", in Unix nanoseconds.
func Time(clock string) (int64, error) {
	at, err := time.Parse("15:04:05.999999999", clock)
	if err != nil {
		return 0, fmt.Errorf("%q is no time like 10:00:00.5", clock)
	}
	return day.Add(at.Sub(at.Truncate(24 * time.Hour))).UnixNano(), nil
}

// machine is a fold and how far its script has come.
type machine struct {
	script Script
	fold   processors.Fold
	out    processors.Outputs
	offset int64
	// now is the newest time that the script named.
	now    int64
	events uint64
	text   strings.Builder
}

func newMachine(s Script) *machine {
	if s.Rates != nil {
		clear(s.Rates.newest)
	}
	return &machine{script: s, fold: s.New()}
}

// command is one line of a script, split.
type command struct {
	words   []string
	options map[string]string
}

func (c command) word(i int) string {
	if i >= len(c.words) || c.words[i] == "-" {
		return ""
	}
	return c.words[i]
}

func (c command) option(name string) string {
	if c.options[name] == "-" {
		return ""
	}
	return c.options[name]
}

// commands are the least numbers of words, options and meanings of all commands of a topic.
type meaning struct {
	words   int
	options string
	do      func(*machine, command) error
}

const tickOptions = " id at heard "

var meanings = map[string]map[string]meaning{
	schemas.TopicTicksRaw: {
		"clock":   {2, " epoch ", (*machine).clock},
		"trade":   {6, tickOptions, (*machine).tick},
		"quote":   {6, tickOptions, (*machine).tick},
		"ticker":  {5, tickOptions + "bid ask volume turnover ", (*machine).tick},
		"gap":     {5, " missed ", (*machine).gap},
		"control": {3, "", (*machine).control},
		"raw":     {1, "", (*machine).raw},
		"rate":    {3, " offset ", (*machine).rate},
	},
	schemas.TopicTicks: {
		"pulse":   {2, "", (*machine).pulse},
		"trade":   {6, tickOptions + "rate flags origin ", (*machine).tick},
		"quote":   {6, tickOptions + "rate flags origin ", (*machine).tick},
		"ticker":  {5, tickOptions + "bid ask volume turnover rate flags origin ", (*machine).tick},
		"control": {3, "", (*machine).control},
		"price":   {3, " refused reason day simulated ", (*machine).price},
	},
}

// Output is what the fold put out.
func (m *machine) Output() string {
	output := m.text.String()
	m.text.Reset()
	return output
}

// Read runs one line.
func (m *machine) Read(text string) error {
	c := command{options: map[string]string{}}
	fields := strings.Fields(text)
	known, ok := meanings[m.script.Topic][fields[0]]
	if !ok {
		return fmt.Errorf("%s has no such input", m.script.Topic)
	}
	for _, f := range fields[1:] {
		name, value, isOption := strings.Cut(f, "=")
		switch {
		case !isOption:
			c.words = append(c.words, f)
		case !strings.Contains(known.options, " "+name+" "):
			return fmt.Errorf("option %s is not known", name)
		default:
			c.options[name] = value
		}
	}
	if len(c.words) < known.words {
		return fmt.Errorf("got %d words, want %d", len(c.words), known.words)
	}
	c.words = append([]string{fields[0]}, c.words...)
	return known.do(m, c)
}

func (m *machine) clock(c command) error {
	from, err := Time(c.words[2])
	to := from
	if err == nil && len(c.words) > 3 {
		to, err = Time(c.words[3])
	}
	epoch := day.UnixNano() // when all producers started, unless the script says otherwise
	if err == nil && c.option("epoch") != "" {
		epoch, err = Time(c.option("epoch"))
	}
	if err != nil {
		return err
	}
	for at := from; at <= to; at += int64(time.Second) {
		m.now = max(m.now, at)
		for _, producer := range strings.Split(c.words[1], ",") {
			err := m.feed(&eventsv1.RawRecord{Producer: producer, Epoch: epoch, Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at}}})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *machine) pulse(c command) error {
	origin, err := strconv.ParseInt(c.words[1], 10, 32)
	if err != nil {
		return fmt.Errorf("%q is no partition", c.words[1])
	}
	now, err := Time(c.words[2])
	watermark := now
	if err == nil && len(c.words) > 3 {
		watermark, err = Time(c.words[3])
	}
	if err != nil {
		return err
	}
	m.now = max(m.now, now)
	return m.derived(int32(origin), &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: now, Watermark: watermark}}})
}

var kinds = map[string]eventsv1.TickKind{
	"trade": eventsv1.TickKind_TICK_KIND_TRADE, "quote": eventsv1.TickKind_TICK_KIND_QUOTE, "ticker": eventsv1.TickKind_TICK_KIND_TICKER,
}

var sides = map[string]eventsv1.Side{
	"": eventsv1.Side_SIDE_UNSPECIFIED, "buy": eventsv1.Side_SIDE_BUY, "sell": eventsv1.Side_SIDE_SELL,
}

func (m *machine) tick(c command) error {
	t := &eventsv1.Tick{
		Venue: c.word(1), Symbol: c.word(2), Base: c.word(3), Quote: c.word(4), Kind: kinds[c.words[0]],
		EventId: m.eventID(c), IngestTime: m.now,
	}
	switch c.words[0] {
	case "trade":
		t.Price, t.Size, t.Side, t.TradeId = c.word(5), c.word(6), sides[c.word(7)], c.option("id")
	case "quote":
		t.Bid, t.Ask = c.word(5), c.word(6)
	case "ticker":
		t.Last, t.Bid, t.Ask = c.word(5), c.option("bid"), c.option("ask")
		t.VolumeBase, t.VolumeQuote = c.option("volume"), c.option("turnover")
	}
	var err error
	if received := c.option("heard"); received != "" {
		if t.IngestTime, err = Time(received); err != nil {
			return err
		}
		m.now = max(m.now, t.IngestTime)
	}
	t.EventTime = t.IngestTime
	if at, ok := c.options["at"]; ok {
		t.EventTime = 0
		if at != "-" {
			if t.EventTime, err = Time(at); err != nil {
				return err
			}
		}
	}
	if m.script.Topic == schemas.TopicTicksRaw {
		return m.feed(&eventsv1.RawRecord{Producer: t.Venue, Epoch: day.UnixNano(), Body: &eventsv1.RawRecord_Tick{Tick: t}})
	}
	return m.resolved(c, t)
}

func (m *machine) eventID(c command) []byte {
	var id schemas.EventID
	if named := c.option("id"); named != "" {
		id = schemas.NumberedState(c.words[1], c.words[2], c.words[0], "script", named)
		return id[:]
	}
	m.events++
	binary.BigEndian.PutUint64(id[:], m.events)
	return id[:]
}

func (m *machine) resolved(c command, t *eventsv1.Tick) error {
	r := &eventsv1.ResolvedTick{Tick: t, RateTime: t.IngestTime}
	if coin, _, ok := schemas.Coins().Resolve(t.Venue, t.Base); ok {
		r.CoinId = coin.ID
	}
	if quote, ok := schemas.Coins().ResolveQuote(t.Venue, t.Quote); ok {
		r.QuoteId = quote.ID
	}
	var origin int64
	var err error
	if o := c.option("origin"); o != "" {
		if origin, err = strconv.ParseInt(o, 10, 32); err != nil {
			return fmt.Errorf("%q is no partition", o)
		}
	}
	flags, err := parseFlags(c.option("flags"))
	if err != nil {
		return err
	}
	switch rate := c.option("rate"); {
	case rate != "":
		if r.Rate, err = strconv.ParseFloat(rate, 64); err != nil {
			return err
		}
	case r.QuoteId == schemas.USD:
		r.Rate = 1
	case flags&schemas.NoRate == 0:
		return errors.New("a quote other than USD needs rate= or flags=no_rate")
	}
	r.Flags = uint32(flags)
	return m.derived(int32(origin), &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: r}})
}

func parseFlags(text string) (flags schemas.Flag, err error) {
	if text == "" {
		return 0, nil
	}
	for _, name := range strings.Split(text, ",") {
		flag := schemas.Flag(1)
		for flag.String() != name {
			if flag <<= 1; flag.String() == "" {
				return 0, fmt.Errorf("flag %s is not known", name)
			}
		}
		flags |= flag
	}
	return flags, nil
}

func (m *machine) gap(c command) error {
	from, err := Time(c.words[4])
	if err != nil {
		return err
	}
	to, err := Time(c.words[5])
	if err != nil {
		return err
	}
	gap := &eventsv1.Gap{Venue: c.word(1), Symbol: c.word(2), Reason: c.word(3), FromTime: from, ToTime: to}
	if missed := c.option("missed"); missed != "" {
		if gap.Missed, err = strconv.ParseUint(missed, 10, 64); err != nil {
			return err
		}
	}
	return m.feed(&eventsv1.RawRecord{Producer: gap.Venue, Epoch: day.UnixNano(), Body: &eventsv1.RawRecord_Gap{Gap: gap}})
}

func (m *machine) control(c command) error {
	generation, err := strconv.ParseUint(c.words[3], 10, 32)
	if err != nil {
		return err
	}
	control := &eventsv1.Control{Action: c.word(1), View: c.word(2), Generation: uint32(generation)}
	if m.script.Topic == schemas.TopicTicksRaw {
		return m.feed(&eventsv1.RawRecord{Body: &eventsv1.RawRecord_Control{Control: control}})
	}
	return m.derived(0, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Control{Control: control}})
}

func (m *machine) raw(c command) error {
	value, err := hex.DecodeString(c.words[1])
	if err != nil {
		return err
	}
	return m.apply(processors.Input{Value: value})
}

func (m *machine) rate(c command) error {
	if m.script.Rates == nil {
		return errors.New("the fold takes no rates")
	}
	usd, err := strconv.ParseFloat(c.words[2], 64)
	if err != nil {
		return err
	}
	at, err := Time(c.words[3])
	if err != nil {
		return err
	}
	offset := int64(0)
	if o := c.option("offset"); o != "" {
		if offset, err = strconv.ParseInt(o, 10, 64); err != nil {
			return err
		}
	}
	m.script.Rates.newest[c.words[1]] = Rate{USD: usd, Time: at, Offset: offset}
	return nil
}

// price hands a published price to a fold that follows the median.
func (m *machine) price(c command) error {
	follower, ok := m.fold.(processors.Follower)
	if !ok {
		return errors.New("the fold follows no other")
	}
	at, err := Time(c.words[1])
	if err != nil {
		return err
	}
	coins := schemas.Coins().BySymbol(c.words[2])
	if len(coins) == 0 {
		return fmt.Errorf("%q is no symbol of a coin", c.words[2])
	}
	m.now = max(m.now, at)
	price := &eventsv1.Price{CoinId: coins[0].ID, Time: at, Reason: c.option("reason"), Simulated: c.option("simulated") == "yes"}
	if volume := c.option("day"); volume != "" {
		if price.Volume24H, err = strconv.ParseFloat(volume, 64); err != nil {
			return err
		}
	}
	if price.Price, err = strconv.ParseFloat(c.words[3], 64); err != nil {
		return err
	}
	if len(c.words) > 4 {
		for _, venue := range strings.Split(c.words[4], ",") {
			price.Inputs = append(price.Inputs, &eventsv1.PriceInput{Provider: venue, Accepted: true})
		}
	}
	if refused := c.option("refused"); refused != "" {
		for _, venue := range strings.Split(refused, ",") {
			price.Inputs = append(price.Inputs, &eventsv1.PriceInput{Provider: venue, Reason: schemas.InputOutlier})
		}
	}
	return follower.Follow(processors.Output{
		Topic: schemas.TopicPrices, Key: price.CoinId, Time: at,
		Record: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: price}},
	}, &m.out)
}

// feed applies a raw record.
func (m *machine) feed(rec *eventsv1.RawRecord) error {
	value, err := rec.MarshalVT()
	if err != nil {
		return err
	}
	return m.apply(processors.Input{Value: value})
}

// derived applies a record that a fold before this one wrote.
func (m *machine) derived(origin int32, rec *eventsv1.ResolvedRecord) error {
	rec.Mark = &eventsv1.Mark{LogicVersion: processors.LogicVersion(schemas.TopicTicks), Partition: origin, Offset: m.offset}
	value, err := rec.MarshalVT()
	if err != nil {
		return err
	}
	borrowed, err := stream.NewBorrower(schemas.TopicTicks).Decode(value)
	if err != nil {
		return err
	}
	defer overwrite(value, borrowed) // what a fold kept of it shows
	return m.apply(processors.Input{Value: value, Record: borrowed})
}

// overwrite does to a record that was lent what the next one does.
func overwrite(value []byte, lent eventsv1.Marked) {
	for i := range value {
		value[i] = '?'
	}
	proto.Reset(lent.(proto.Message))
}

func (m *machine) apply(in processors.Input) error {
	in.Topic, in.Offset = m.script.Topic, m.offset
	m.offset++
	m.out.Begin(in)
	if err := m.fold.Apply(in, &m.out); err != nil {
		return err
	}
	last := ""
	for _, o := range m.out.List {
		// What goes to all partitions is printed once.
		if line := describe(o, m.script.Pulses); line != "" && line != last {
			m.text.WriteString(line + "\n")
			last = line
		}
	}
	return nil
}

// Rate is what the command rate set last.
type Rate struct {
	USD    float64
	Time   int64
	Offset int64
}

// Rates holds what the command rate set.
type Rates struct{ newest map[string]Rate }

// NewRates holds no rate.
func NewRates() *Rates { return &Rates{newest: map[string]Rate{}} }

// Newest is the last rate of a quote asset.
func (r *Rates) Newest(quoteID string) (Rate, bool) {
	rate, ok := r.newest[quoteID]
	return rate, ok
}
