package imports_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/imports"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// What is imported is in charts, in the views of SQL, and in tables that are made again from the log; a candle names its line.
func TestImportedCandlesAreShown(t *testing.T) {
	w := newFixture(t)
	w.imported(w.plain(w.file("usdt.csv", sample(t, "usdt.csv"))))
	line := w.imported(w.klines(w.zipped("BTCUSDT-1m-2024-01-01.zip", map[string]string{"BTCUSDT-1m-2024-01-01.csv": sample(t, "BTCUSDT-1m-2024-01-01.csv")})))
	if m := line.Markets[0]; line.Written != 10 || m.Coin != "bitcoin" || m.Quote != "USDT" || m.Interval != "1m" || !m.First.Equal(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v", line)
	}
	check := func() {
		t.Helper()
		day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		chart, err := read.From(w.store).Intervals(t.Context(), "bitcoin", time.Minute, day, day.Add(time.Hour))
		w.must(err)
		if len(chart) != 10 || chart[0].Origin != "import" || math.Abs(chart[0].Open-42300*1.0001) > 1e-6 {
			t.Fatalf("the chart has %+v, want ten minutes from 42300 USDT", chart)
		}
		hour, err := read.From(w.store).Intervals(t.Context(), "bitcoin", time.Hour, day, day.Add(time.Hour))
		w.must(err)
		if len(hour) != 1 || hour[0].Origin != "import" || hour[0].Minutes != 10 {
			t.Errorf("the chart by hours has %+v, want ten minutes", hour)
		}
		if got := w.table("SELECT origin, count(), min(start) FROM default.v_candles_1m WHERE coin_id = 'bitcoin' GROUP BY origin"); got != "import\t10\t2024-01-01 00:00:00\n" {
			t.Errorf("v_candles_1m has %q", got)
		}
		if got := w.table("SELECT origin, minutes FROM default.v_candles_1h WHERE coin_id = 'bitcoin'"); got != "import\t10\n" {
			t.Errorf("v_candles_1h has %q", got)
		}
		if got, want := w.table("SELECT producer, line, file FROM default.v_backfill WHERE symbol = 'BTCUSDT' ORDER BY start LIMIT 1 OFFSET 2"), "import\t3\t"+line.SHA256+"\n"; got != want {
			t.Errorf("v_backfill has %q, want the third line of the file", got)
		}
		if got := w.table("SELECT name, symbol, rows, whole FROM default.v_imports ORDER BY name"); got != "BTCUSDT-1m-2024-01-01.zip\tBTCUSDT\t10\ttrue\nusdt.csv\tUSDT/USD\t20\ttrue\n" {
			t.Errorf("v_imports has %q", got)
		}
	}
	check()
	before := w.all()
	w.newTables()
	w.sink()
	check()
	if got := w.all(); got != before {
		t.Errorf("tables made again from the log are\n%s\nwant\n%s", got, before)
	}
}

// Twice is once, under whatever name.
func TestAFileThatIsThereIsNotReadAgain(t *testing.T) {
	w := newFixture(t)
	path := w.file("BTCUSDT-1m-2024-01-01.csv", sample(t, "BTCUSDT-1m-2024-01-01.csv"))
	w.imported(w.klines(path))
	before := w.all()
	lines, result, err := w.run(w.klines(path, w.file("BTCUSDT-1m-2024-01.csv", sample(t, "BTCUSDT-1m-2024-01-01.csv"))))
	w.must(err)
	for _, l := range lines {
		if l.State != imports.StateKnown || l.Name != "BTCUSDT-1m-2024-01-01.csv" || l.Rows != 10 {
			t.Errorf("got %+v, want that it is known", l)
		}
	}
	if result.Known != 2 || w.all() != before {
		t.Errorf("got %+v and\n%s\nwant nothing more than\n%s", result, w.all(), before)
	}
}

// The unit of times does not matter.
func TestMillisecondsAndMicrosecondsAreTheSame(t *testing.T) {
	micro := sample(t, "BTCUSDT-1m-2025-01-01.csv")
	milli := strings.NewReplacer("000000,", "000,", "999999,", "999,").Replace(micro)
	var got [2]string
	for i, content := range []string{micro, milli} {
		w := newFixture(t)
		w.imported(w.klines(w.file("BTCUSDT-1m-2025-01-01.csv", content)))
		got[i] = w.table("SELECT start, open, high, low, close, volume, line FROM " + w.store.Database() + ".backfill FINAL ORDER BY start")
	}
	if micro == milli || got[0] != got[1] || strings.Count(got[0], "\n") != 10 || !strings.HasPrefix(got[0], "2025-01-01 00:00:00\t93500") {
		t.Errorf("microseconds give\n%s\nmilliseconds\n%s", got[0], got[1])
	}
}

// Bad lines are in the dead letters, with line and reason, and nowhere else.
func TestBadLinesAreDeadLetters(t *testing.T) {
	w := newFixture(t)
	lines := strings.Split(strings.TrimSpace(sample(t, "BTCUSDT-1m-2024-01-01.csv")), "\n")
	bad := map[int]string{ // by line
		2:  "1704067260000,1,2,3",
		4:  strings.Replace(lines[3], ",42", ",-42", 1),
		5:  strings.Replace(lines[4], ",42", ",99942", 1),
		7:  lines[0],
		11: strings.Replace(lines[9], "1704", "1705", 1),
	}
	content := slicesWith(lines, bad)
	line := w.imported(w.klines(w.file("BTCUSDT-1m-2024-01-01.csv", content)))
	if line.BadRows != 5 || line.Rows != 6 || line.Written != 6 {
		t.Errorf("got %+v, want six candles and five bad lines", line)
	}
	got := w.table("SELECT reason, replaceRegexpOne(detail, ' of .*', '') AS where FROM default.v_dead_letters WHERE source = 'import' ORDER BY length(where), where")
	want := "undecodable\tline 2\nnon_positive\tline 4\nabsurd\tline 5\nundecodable\tline 7\nabsurd\tline 11\n"
	if got != want {
		t.Errorf("the dead letters are\n%s\nwant\n%s", got, want)
	}
}

// slicesWith puts lines in the place of others, or after the last.
func slicesWith(lines []string, in map[int]string) string {
	var all []string
	for n := range len(lines) + 1 {
		if line, ok := in[n+1]; ok {
			all = append(all, line)
		} else if n < len(lines) {
			all = append(all, lines[n])
		}
	}
	return strings.Join(all, "\n")
}

// What is not to be imported is refused whole, and says what to do.
func TestFilesAreRefused(t *testing.T) {
	w := newFixture(t)
	klines := sample(t, "BTCUSDT-1m-2024-01-01.csv")
	const header = "venue,symbol,open_time,open,high,low,close,volume\n"
	for name, test := range map[string]struct {
		request imports.Request
		want    string
	}{
		"interval":  {w.klines(w.file("BTCUSDT-5m-2024-01-01.csv", klines)), `interval "5m" is not kept`},
		"length":    {w.klines(w.file("BTCUSDT-1h-2024-01-01.csv", klines)), "lines could not be read"},
		"market":    {w.klines(w.file("prices.csv", klines)), "name it with --market"},
		"nobody":    {w.klines(w.file("NOBODYKNOWSUSDT-1m-2024-01-01.csv", klines)), `no coin is called "NOBODYKNOWS" at binance`},
		"venue":     {w.plain(w.file("a.csv", header+"nowhere,BTC-USD,1704067200,1,2,1,2,1\n")), `there is no venue "nowhere": name one of binance, `},
		"column":    {w.plain(w.file("b.csv", "venue,symbol,open_time,open\nbinance,BTCUSDT,1,1\n")), "no column high, low, close, volume"},
		"spacing":   {w.plain(w.file("c.csv", header+"binance,BTCUSDT,1704067200,1,2,1,2,1\n")), "name it with --interval"},
		"empty":     {w.plain(w.file("d.csv", "")), "it has no candles"},
		"long":      {w.plain(w.file("e.csv", strings.Repeat("x", 5000))), "line 1 has more than 4096 bytes"},
		"two":       {w.klines(w.zipped("BTCUSDT-1m-2024-01-02.zip", map[string]string{"a": klines, "b": klines})), "holds 2 files and not one"},
		"cut":       {w.klines(w.file("BTCUSDT-1m-2024-01-03.zip", "PK\x03\x04 and no end")), "has no end"},
		"absent":    {w.klines(w.dir + "/BTCUSDT-1m-2024-01-04.zip"), "no such file"},
		"folder":    {w.klines(w.dir), "it is not a file"},
		"backwards": {w.plain(w.file("f.csv", header+"binance,BTCUSDT,1704067320,1,2,1,2,1\nbinance,BTCUSDT,1704067260,1,2,1,2,1\nbinance,BTCUSDT,1704067200,1,2,1,2,1\n")), "sort the file by it"},
	} {
		lines, result, err := w.run(test.request)
		w.must(err)
		if result.Refused != 1 || len(lines) != 1 || !strings.Contains(lines[0].Reason, test.want) {
			t.Errorf("%s: got %+v, want %q", name, lines, test.want)
		}
	}
	sum := w.file("BTCUSDT-1m-2024-01-01.csv", klines)
	w.file("BTCUSDT-1m-2024-01-01.csv.CHECKSUM", strings.Repeat("0", 64)+"  BTCUSDT-1m-2024-01-01.csv\n")
	if lines, _, err := w.run(w.klines(sum)); err != nil || !strings.Contains(lines[0].Reason, "download it again") {
		t.Errorf("a wrong checksum gives %+v, %v", lines, err)
	}
	if got := w.all(); got != "" {
		t.Errorf("refused files have left %s", got)
	}
}

// Prices of another market or unit are refused with both numbers, until they are confirmed.
func TestFarPricesWantAConfirmation(t *testing.T) {
	w := newFixture(t)
	w.imported(w.klines(w.file("BTCUSDT-1m-2024-01-01.csv", sample(t, "BTCUSDT-1m-2024-01-01.csv"))))
	far := imports.Request{Format: "candles", Interval: "1h", Files: []string{w.file("far.csv", "venue,symbol,open_time,open,high,low,close,volume\nbinance,BTCUSDT,2024-01-02 00:00:00,4.2,4.3,4.1,4.2,1\n")}}
	lines, result, err := w.run(far)
	w.must(err)
	if result.Refused != 1 || !strings.Contains(lines[0].Reason, "4.2 in the file, 42") || !strings.Contains(lines[0].Reason, "--confirm") {
		t.Fatalf("got %+v, want that both prices are named", lines)
	}
	far.Confirm = true
	w.imported(far)

	// Of another venue it is compared in USD.
	w.imported(w.plain(w.file("usdt.csv", sample(t, "usdt.csv"))))
	other := imports.Request{Format: "candles", Interval: "1m", Files: []string{w.file("other.csv", "venue,symbol,open_time,open,high,low,close,volume\nkraken,BTC/EUR,2024-01-01 00:03:00,42300,42300,42300,42300,1\nkraken,BTC/USD,2024-01-01 00:03:00,4230000,4230000,4230000,4230000,1\n")}}
	if lines, result, err = w.run(other); err != nil || result.Refused != 1 || !strings.Contains(lines[0].Reason, "the price of bitcoin in USD") {
		t.Errorf("got %+v, %v, want that it is compared with the coin", lines, err)
	}
}

// drawnFile is a file of some markets with some bad lines. Of a version above 0 prices are others and some candles are missing.
func drawnFile(r *rand.Rand, version int) string {
	shape := rand.New(rand.NewPCG(r.Uint64(), 0))
	markets := []string{"binance,BTCUSDT", "binance,BTCUSDC", "binance,ETHUSDT", "kraken,BTC/USD", "kraken,USDT/USD"}[:1+shape.IntN(5)]
	var text strings.Builder
	text.WriteString("venue,symbol,interval,open_time,open,high,low,close,volume\n")
	for n := range 20 + shape.IntN(200) {
		for _, m := range markets {
			price := 1 + float64(shape.IntN(1000))/10_000
			switch {
			case shape.IntN(40) == 0:
				fmt.Fprintf(&text, "%s,60,%d,broken\n", m, 1704067200+60*n)
			case shape.IntN(10) == 0 || version > 0 && shape.IntN(10) == 0: // it is missing
			default:
				price += float64(version) / 100
				fmt.Fprintf(&text, "%s,60,%d,%g,%g,%g,%g,%d\n", m, 1704067200+60*n, price, price+0.5, price-0.5, price, n)
			}
		}
	}
	return text.String()
}

// asTrades has trades in place of the candles of a drawn file, at the minute, at random places within it and at its end.
func asTrades(candles string) string {
	r := rand.New(rand.NewPCG(uint64(len(candles)), 3))
	var text strings.Builder
	text.WriteString("exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n")
	for _, line := range strings.Split(strings.TrimSpace(candles), "\n")[1:] {
		fields := strings.Split(line, ",")
		if len(fields) < 9 {
			text.WriteString(line + "\n")
			continue
		}
		for n, price := range fields[4:8] {
			second := 15 * n
			if r.IntN(4) == 0 { // in the order of recording, in which times go back
				second = r.IntN(60)
			}
			start, _ := strconv.Atoi(fields[3]) // as it was drawn
			fmt.Fprintf(&text, "%s,%s,%d000000,0,%d,buy,%s,0.%d\n", fields[0], fields[1], start+second, n, price, 1+n)
		}
	}
	return text.String()
}

// An import that was ended anywhere, any number of times, and given again comes to what one run comes to; so does one of a file that
// replaces another.
func TestImportsEndedAnywhereComeToTheSame(t *testing.T) {
	for _, seed := range streamtest.Seeds(t, 1) {
		streamtest.ReportSeed(t, seed)
		r := rand.New(rand.NewPCG(seed, 7))
		first := drawnFile(r, 0)
		second := drawnFile(rand.New(rand.NewPCG(seed, 7)), 1)
		format := "candles"
		if seed%2 == 0 {
			format, first, second = "tardis-trades", asTrades(first), asTrades(second)
		}
		var got [2]string
		for i := range got {
			w := newFixture(t)
			for _, content := range []string{first, second} {
				request := w.plain(w.file("drawn.csv", content))
				request.Confirm, request.Format = true, format
				for i == 1 {
					w.log.left = r.IntN(300)
					lines, _, err := w.attempt(request)
					if err == nil && len(lines) == 1 && lines[0].State != imports.StateRefused {
						break
					}
					if err == nil || !strings.Contains(err.Error(), errCut.Error()) {
						t.Fatalf("seed %d: got %+v, %v, want that it is cut", seed, lines, err)
					}
				}
				w.log.left = -1
				lines, _, err := w.run(request)
				w.must(err)
				if want := map[bool]string{true: imports.StateKnown, false: imports.StateImported}[i == 1]; len(lines) != 1 || lines[0].State != want {
					t.Fatalf("seed %d: got %+v, want %s", seed, lines, want)
				}
			}
			got[i] = w.all()
		}
		if got[0] != got[1] {
			t.Errorf("seed %d: ended and given again it comes to\n%s\nand in one run to\n%s", seed, got[1], got[0])
		}
		if !strings.Contains(got[0], "\ttrue\n") || !strings.Contains(got[0], "import\t") {
			t.Errorf("seed %d withdraws nothing, or has no bad line: the test shows little", seed)
		}
	}
}

// A file of the same name and another hash replaces: its candles, and those that it no longer has. The first one again puts them back.
func TestAFilePublishedAgainReplaces(t *testing.T) {
	w := newFixture(t)
	content := sample(t, "BTCUSDT-1m-2024-01-01.csv")
	lines := strings.SplitAfter(content, "\n")
	path := w.file("BTCUSDT-1m-2024-01-01.csv", content)
	one := w.imported(w.klines(path))
	standing := func() string {
		return w.table("SELECT open, close FROM default.v_backfill WHERE symbol = 'BTCUSDT' ORDER BY start")
	}
	before := standing()
	w.file("BTCUSDT-1m-2024-01-01.csv", strings.Join(append(append([]string{}, lines[:3]...), lines[5:]...), ""))
	line := w.imported(w.klines(path))
	if line.Replaces != one.SHA256 || line.Withdrawn != 2 || line.Written != 8 {
		t.Errorf("got %+v, want that it replaces %s without two candles", line, one.SHA256)
	}
	if got := standing(); strings.Count(got, "\n") != 8 {
		t.Errorf("there are %q", got)
	}
	w.file("BTCUSDT-1m-2024-01-01.csv", content)
	if again := w.imported(w.klines(path)); again.Replaces != line.SHA256 || again.Written != 10 {
		t.Errorf("got %+v, want that the first one replaces the second", again)
	}
	if got := standing(); got != before {
		t.Errorf("there are\n%s\nwant\n%s", got, before)
	}
	want := fmt.Sprintf("import %s\tremoved\t2\nimport %s\tadded\t2\n", line.SHA256, one.SHA256)
	if got := w.table("SELECT cause, kind, count() FROM default.v_restatements GROUP BY ALL ORDER BY min(time)"); got != want {
		t.Errorf("restated are\n%s\nwant\n%s", got, want)
	}
}
