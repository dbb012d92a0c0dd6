package ws

import (
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

var update = flag.Bool("update", false, "write the frames of scripts anew")

// What differs from run to run.
var (
	epochs = regexp.MustCompile(`"epoch":"[A-Z2-7]{12}"`)
	ids    = regexp.MustCompile(`"clientId":"[A-Z2-7]{16}"`)
)

// cursorText are cursors, which are shown as the second that they are of.
var cursorText = regexp.MustCompile(`"(?:cursor|from|to)":"([12][\w-]{16,})"`)

func shownCursor(h *Hub, text string) string {
	name, cursor, _ := strings.Cut(text, ":")
	var r request
	if h.readCursor(&r, strings.Trim(cursor, `"`)) != nil {
		return text
	}
	shown := func(at position) string { return time.Unix(at.oldest(), 0).UTC().Format(time.TimeOnly) }
	if r.places == nil {
		return name + `:"<` + shown(r.from) + `>"`
	}
	var each []string
	for _, code := range slices.Sorted(maps.Keys(r.places)) {
		channel := channelPrices
		for _, c := range h.channels {
			if c.code() == code {
				channel = c.name()
			}
		}
		each = append(each, channel+" "+shown(r.places[code]))
	}
	return name + `:"<` + strings.Join(each, ", ") + `>"`
}

func scriptCoins(t testing.TB) *schemas.CoinTable {
	table, err := schemas.ParseCoins(strings.Join([]string{
		"id,symbol,name,rank,kind,peg,aliases",
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"solana,SOL,Solana,3,coin,,",
		"sol-wormhole,SOL,SOL (Wormhole),4,wrapped,,",
		"tether,USDT,Tether,5,stablecoin,USD,",
		"",
	}, "\n"), "code,name,aliases\nUSD,United States Dollar,\n")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Each script feeds the log, speaks as clients and shows every frame that they read, all of which the document describes.
func TestFramesFollowTheScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	schemas := newMessageSchemas(t, documented(t).document())
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(text), "----\n")
			got := play(t, script, schemas)
			if *update {
				if err := os.WriteFile(path, []byte(script+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	// A heartbeat comes after a silence, which takes its time: TestChannelsResumeAtAnyCut holds it against the document.
	if missing := schemas.missing(); !slices.Equal(missing, []string{"heartbeat"}) {
		t.Errorf("no script came to the messages %v of the document", missing)
	}
}

func play(t *testing.T, script string, described *messageSchemas) string {
	coins := scriptCoins(t)
	candles := newCandleLog(coins)
	market, yields := &marketLog{name: "market"}, &yieldLog{coins: coins}
	w := newFixture(t, func(s *setup) {
		s.coins, s.auth, s.channels = coins, query.AuthOpen, slices.Concat(candles.channels(), market.channels(), yields.channels(), pegChannels(coins))
	})
	applyCandles, next := w.hub.ApplyTo(schemas.TopicCandles), make([]int, 8)
	clients, last := map[string]*client{}, map[string]string{} // last cursors read
	var cursors []string
	kept := strings.NewReplacer()
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch words[0] {
		case "price": // coin price source volume
			p := &eventsv1.Price{CoinId: words[1], Source: words[3], Simulated: true}
			p.Price, p.Volume24H = number(t, words[2]), number(t, words[4])
			w.price(p)
		case "without": // coin reason
			w.price(&eventsv1.Price{CoinId: words[1], Reason: words[2], Simulated: true})
		case "ago": // coin price
			w.ago.Store(words[1], number(t, words[2]))
		case "tick":
			w.tick()
		case "candle": // coin start open high low close volume volumeUsd trades
			coin, known := coins.ByID(words[1])
			if !known {
				t.Fatalf("no such coin: %s", line)
			}
			candles.candle(coin, &eventsv1.Candle{CoinId: coin.ID, Start: clock(t, words[2]).UnixNano(), Open: number(t, words[3]), High: number(t, words[4]),
				Low: number(t, words[5]), Close: number(t, words[6]), Volume: words[7], VolumeUsd: number(t, words[8]), Trades: uint64(number(t, words[9]))})
		case "stored": // the store has all from here on
			candles.stored = slices.Repeat([]int{math.MaxInt32}, 8)
		case "closed": // end of the last minute that has closed
			for p := range next {
				candles.pulse(p, clock(t, words[1]).Add(schemas.AllowedLateness))
			}
			candles.follow(t, applyCandles, next, candles.ends())
		case "market": // end of the minute, market cap, volume
			market.minute(t, w.hub, clock(t, words[1]), number(t, words[2]), number(t, words[3]))
		case "rate": // end of the minute, coin, symbol, pool, APY, perhaps ended
			yields.rate(t, w.hub, clock(t, words[1]), words[2], words[3], words[4], number(t, words[5]), len(words) > 6)
		case "rated": // end of the minute
			yields.pulse(t, w.hub, clock(t, words[1]))
		case "skip": // seconds
			w.now.Add(int64(number(t, words[1])))
		case "open": // client query
			clients[words[1]] = w.open(dialing{query: kept.Replace(strings.Join(words[2:], " "))})
		case "send": // client message
			clients[words[1]].send(kept.Replace(strings.Join(words[2:], " ")))
		case "keep": // client name
			cursors = append(cursors, "{"+words[2]+"}", last[words[1]])
			kept = strings.NewReplacer(cursors...)
		case "read": // client
			text, err := clients[words[1]].next()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if err := described.fault(text); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if c := cursorText.FindStringSubmatch(text); c != nil {
				last[words[1]] = c[1]
			}
			text = cursorText.ReplaceAllStringFunc(text, func(text string) string { return shownCursor(w.hub, text) })
			text = epochs.ReplaceAllString(text, `"epoch":"E"`)
			out.WriteString(words[1] + " " + ids.ReplaceAllString(text, `"clientId":"C"`) + "\n")
		default:
			t.Fatalf("no such line: %s", line)
		}
	}
	return out.String()
}

// clock is a time of the day of scripts.
func clock(t *testing.T, text string) time.Time {
	at, err := time.Parse(time.DateTime, "2026-03-01 "+text+":00")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func number(t *testing.T, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
