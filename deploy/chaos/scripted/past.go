package scripted

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"time"
)

// Candle is one candle of a venue's past, as it spells it.
type Candle struct{ Low, High, Open, Close, Volume string }

// Past is the candle of a market that begins at start (Unix seconds) and lasts for so many seconds: the
// same whenever it is asked for.
func Past(symbol string, seconds, start int64) Candle {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %d", symbol, seconds, start)
	n := int64(h.Sum64() >> 1)
	low := 100_00 + n%900_000_00
	return Candle{
		Low: spell(low, 2), Open: spell(low+n%17, 2), Close: spell(low+n%23, 2), High: spell(low+23+n%31, 2),
		Volume: spell(1+n%10_000_000_000, 8),
	}
}

// mostCandles is how many one answer holds.
const mostCandles = 300

// candles answers with the newest candle first, both ends of the range included.
func (coinbase) candles(symbol string, query url.Values) (rows [][6]json.Number, ok bool) {
	seconds, err := strconv.ParseInt(query.Get("granularity"), 10, 64)
	start, startErr := time.Parse(time.RFC3339, query.Get("start"))
	end, endErr := time.Parse(time.RFC3339, query.Get("end"))
	if err != nil || startErr != nil || endErr != nil || seconds <= 0 {
		return nil, false
	}
	rows = [][6]json.Number{}
	for at := end.Unix() / seconds * seconds; at >= start.Unix(); at -= seconds {
		c := Past(symbol, seconds, at)
		rows = append(rows, [6]json.Number{
			json.Number(strconv.FormatInt(at, 10)), json.Number(c.Low), json.Number(c.High), json.Number(c.Open), json.Number(c.Close), json.Number(c.Volume),
		})
	}
	return rows, len(rows) <= mostCandles
}
