package producers_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/sources"
)

// runDecode returns what decode prints for a recording on standard input.
func runDecode(t *testing.T, o decode.Options, recording []byte) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	if o.File == "" {
		o.File = "-"
	}
	code = decode.Run(context.Background(), o, exchanges.List(), sources.List(), bytes.NewReader(recording), &out, &errs)
	return out.String(), errs.String(), code
}

func zip(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

const krakenTrade = `{"channel":"trade","type":"update","data":[{"symbol":"BTC/USD","side":"sell","price":64000.10,"qty":1E-3,"trade_id":9,"timestamp":"2026-01-02T03:04:05.123456789Z"}]}`

// tradeLine is krakenTrade as decode prints it; received is a JSON value.
func tradeLine(received string) string {
	return `{"source":"kraken","venueSymbol":"BTC/USD","base":"BTC","quote":"USD","kind":"trade","price":"64000.1","size":"0.001","bid":null,"ask":null,"last":null,"side":"sell","id":"9","eventTime":"2026-01-02T03:04:05.123456789Z","receivedTime":` + received + `,"snapshot":false}` + "\n"
}

func TestDecodeDistinguishesFramings(t *testing.T) {
	quoted := strings.ReplaceAll(krakenTrade, `"`, `\"`)
	session := `{"n":1,"t":1700000000.5,"d":"conn","u":"wss://ws.kraken.com/v2"}` + "\n" +
		`{"n":2,"t":1700000000.6,"d":"out","u":"wss://ws.kraken.com/v2","x":"{\"method\":\"subscribe\"}"}` + "\n"
	for name, c := range map[string]struct{ recording, want string }{
		"session, text": {
			session + `{"n":3,"t":1700000000.123456,"d":"in","x":"` + quoted + `"}`,
			tradeLine(`"2023-11-14T22:13:20.123456Z"`),
		},
		"session, gzip in a binary frame": {
			session + `{"n":3,"t":1700000000,"d":"in","b":"` + base64.StdEncoding.EncodeToString(zip(krakenTrade)) + `"}` + "\n",
			tradeLine(`"2023-11-14T22:13:20Z"`),
		},
		"single messages": {
			`{"id":"a","api":"v2","received_at":"2026-01-02T03:04:06.5Z","message":` + krakenTrade + "}\n" +
				`{"id":"b","api":"v2","received_at":"2026-01-02T03:04:06.5Z","message":{"channel":"heartbeat"}}` + "\n",
			tradeLine(`"2026-01-02T03:04:06.5Z"`),
		},
		"transcript": {
			"> { \"method\": \"subscribe\", \"req_id\": \"|1|\" }\n< { \"method\": \"subscribe\", \"success\": true, \"req_id\": |1| }\n= \n" +
				strings.Replace(krakenTrade, `"data"`, "\n  \"data\"", 1),
			tradeLine("null"),
		},
		"transcript with comments and bare keys": {
			"< { method: \"subscribe\", success: true, req_id: |1| } // the answer\n= \n" +
				strings.NewReplacer(`"data"`, "\n  data", `"side"`, "// https://example.org/ \"x\n  side", `}]}`, "} //end\n] }").Replace(krakenTrade),
			tradeLine("null"),
		},
		"HTTP answer": {
			"{\"method\":\"GET\",\n \"url\":\"https://api.kraken.com/0/public/Trades?pair=XBTUSD\",\n \"status\":200,\n \"recorded_at\":\"Tue, 03 Oct 2017 04:05:18 GMT\",\n" +
				` "body":"{\"error\":[],\"result\":{\"BTC/USD\":[[\"64000.10\",\"0.0010\",1767323045.123456789,\"s\",\"l\",\"\",9]]}}"}`,
			tradeLine(`"2017-10-03T04:05:18Z"`),
		},
	} {
		for _, packed := range []bool{false, true} {
			recording := []byte(c.recording)
			if packed {
				recording = zip(c.recording)
			}
			got, stderr, code := runDecode(t, decode.Options{Source: "kraken"}, recording)
			if got != c.want || code != 0 || stderr != "" {
				t.Errorf("%s, compressed %t: exit %d %s\n  got  %s  want %s", name, packed, code, stderr, got, c.want)
			}
		}
	}
}

func TestDecodePrintsEveryKind(t *testing.T) {
	for recording, want := range map[string]string{
		`{"message":{"channel":"ticker","type":"snapshot","data":[{"symbol":"BTC/USD","bid":1,"ask":2,"last":1.50,"volume":3}]}}`:                                   `{"source":"kraken","venueSymbol":"BTC/USD","base":"BTC","quote":"USD","kind":"ticker","price":null,"size":null,"bid":"1","ask":"2","last":"1.5","side":null,"id":null,"eventTime":null,"receivedTime":null,"snapshot":true,"volumeBase":"3","volumeQuote":null}`,
		`{"url":"/0/public/OHLC?interval=1440","status":200,"body":"{\"error\":[],\"result\":{\"XXBTZUSD\":[[86400,\"1\",\"4\",\"0.5\",\"2\",\"1\",\"7.0\",3]]}}"}`: `{"source":"kraken","venueSymbol":"XXBTZUSD","base":"BTC","quote":"USD","kind":"candle","price":null,"size":null,"bid":null,"ask":null,"last":null,"side":null,"id":null,"eventTime":null,"receivedTime":null,"snapshot":false,"open":"1","high":"4","low":"0.5","close":"2","volume":"7","start":"1970-01-02T00:00:00Z","interval":"1d","closed":false}`,
		`{"message":[0,[["5541.2","0.1","1534614057.321597","s","l",""]],"trade","XBT/USD"]}`:                                                                       `{"kind":"error","reason":"retired_api","detail":"retired_api: channel \"trade\" of version 1","source":"kraken","receivedTime":null}`,
	} {
		if got, _, _ := runDecode(t, decode.Options{Source: "kraken"}, []byte(recording)); got != want+"\n" {
			t.Errorf("%s\n  got  %s  want %s", recording, got, want)
		}
	}
}

func TestDecodeNeverStopsAtWhatItCannotRead(t *testing.T) {
	long := `{"message":"` + strings.Repeat("x", 64<<20) + `"}`
	recording := strings.Join([]string{
		`not json`, `{"d":"in","t":1}`, `{"what":"is this"}`, `{"d":"in","t":1,"b":"***"}`, long,
		`{"message":{"channel":"surprise"}}`, `{"url":"/0/public/Ticker","status":502,"body":"Bad gateway"}`,
		`{"message":` + krakenTrade + `}`,
	}, "\n")
	got, _, code := runDecode(t, decode.Options{Source: "kraken"}, []byte(recording))
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if code != 0 || len(lines) != 8 {
		t.Fatalf("exit %d with %d lines, want 0 with 8", code, len(lines))
	}
	for i, line := range lines[:7] {
		if !strings.HasPrefix(line, `{"kind":"error","reason":"undecodable",`) {
			t.Errorf("line %d: got %.200s, want an error", i, line)
		}
	}
	if lines[7]+"\n" != tradeLine("null") {
		t.Errorf("after the errors: got %s", lines[7])
	}
}

func TestDecodeRefusesWhatItCannotOpen(t *testing.T) {
	packed := zip(strings.Repeat(`{"message":`+krakenTrade+"}\n", 1000))
	for name, c := range map[string]struct {
		options   decode.Options
		recording []byte
		want      string
	}{
		"unknown source":   {decode.Options{Source: "mtgox"}, nil, "mtgox"},
		"no such file":     {decode.Options{Source: "kraken", File: filepath.Join(t.TempDir(), "absent")}, nil, "absent"},
		"truncated file":   {decode.Options{Source: "kraken"}, packed[:len(packed)/2], "unexpected EOF"},
		"no instruments":   {decode.Options{Source: "kraken", Instruments: filepath.Join(t.TempDir(), "absent")}, nil, "absent"},
		"not a gzip after": {decode.Options{Source: "kraken"}, []byte{0x1f, 0x8b, 0xff, 0}, "decompressing"},
	} {
		if _, stderr, code := runDecode(t, c.options, c.recording); code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %q, want 1 and a word of %q", name, code, stderr, c.want)
		}
	}
	if got, _, code := runDecode(t, decode.Options{Source: "kraken"}, nil); code != 0 || got != "" {
		t.Errorf("an empty recording: exit %d, %q", code, got)
	}
}

func TestDecodeListsItsSources(t *testing.T) {
	got, _, code := runDecode(t, decode.Options{List: true}, nil)
	var want strings.Builder
	for _, v := range exchanges.List() {
		want.WriteString(v.Slug + "\n")
	}
	for _, source := range sources.List() {
		want.WriteString(source.Slug + "\n")
	}
	if got != want.String() || code != 0 {
		t.Errorf("exit %d: got %q, want %q", code, got, want.String())
	}
}

func TestDecodeGoesByTheVenuesListOfInstruments(t *testing.T) {
	const pairs = `{"error":[],"result":{"ODDPAIR":{"altname":"ODDPAIR","wsname":"ODD/PAIR","aclass_base":"currency","status":"online"}}}`
	const ticker = `{"url":"/0/public/Ticker","status":200,"body":"{\"error\":[],\"result\":{\"ODDPAIR\":{\"a\":[\"2\"],\"b\":[\"1\"],\"c\":[\"1\"],\"v\":[\"1\",\"1\"]}}}"}`
	quoted := strings.ReplaceAll(pairs, `"`, `\"`)
	for name, list := range map[string]string{
		"as the venue answered": pairs,
		"recorded in a session": `{"t":1,"d":"http","u":"https://api.kraken.com/0/public/AssetPairs","x":"` + quoted + `"}` + "\n" + `{"d":"conf","x":"{}"}`,
	} {
		path := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(path, zip(list), 0o600); err != nil {
			t.Fatal(err)
		}
		got, stderr, _ := runDecode(t, decode.Options{Source: "kraken", Instruments: path}, []byte(ticker))
		if !strings.Contains(got, `"venueSymbol":"ODDPAIR","base":"ODD","quote":"PAIR"`) {
			t.Errorf("%s: got %s%s", name, got, stderr)
		}
	}
	if got, _, _ := runDecode(t, decode.Options{Source: "kraken"}, []byte(ticker)); !strings.Contains(got, `"base":null,"quote":null`) {
		t.Errorf("without the list: got %s, want no base and no quote", got)
	}
}

// An answer of a polled source is read as it was sent, packed or not, and in the framings of recordings.
func TestDecodeReadsRatesInEveryFraming(t *testing.T) {
	const (
		csv  = "FREQ,CURRENCY,TIME_PERIOD,OBS_VALUE\nD,USD,2026-01-05,1.10\nD,KRW,2026-01-05,\n"
		rate = `{"kind":"fiat","source":"ecb","base":"EUR","quote":"USD","rate":"1.1","date":"2026-01-05"}` + "\n"
	)
	body := strings.ReplaceAll(csv, "\n", `\n`)
	answer := `{"method":"GET","url":"https://bank/x.csv","status":200,"recorded_at":"2026-01-05","body":"` + body + `"}`
	for name, c := range map[string]struct{ recording, want string }{
		"the file":            {csv, rate},
		"packed":              {string(zip(csv)), rate},
		"recorded":            {answer, rate},
		"recorded over lines": {strings.ReplaceAll(answer, `,"`, ",\n\""), rate},
		"two answers":         {answer + "\n" + answer + "\n", rate + rate},
		"refused by the bank": {strings.Replace(answer, "200", "503", 1), `{"kind":"error","reason":"undecodable","detail":"undecodable: the source answered with status 503","source":"ecb","receivedTime":null}` + "\n"},
		"not the bank's":      {`{"rates":{}}`, `{"kind":"error","reason":"undecodable","detail":"undecodable: reading CSV: parse error on line 1, column 2: bare \" in non-quoted-field","source":"ecb","receivedTime":null}` + "\n"},
	} {
		if got, stderr, code := runDecode(t, decode.Options{Source: "ecb"}, []byte(c.recording)); code != 0 || got != c.want {
			t.Errorf("%s: exit %d, %s, got\n%s want\n%s", name, code, stderr, got, c.want)
		}
	}
}

// FuzzRecording reads anything at all as a recording. Whatever it is, decode comes to an end, and each line
// that it prints is a JSON object.
func FuzzRecording(f *testing.F) {
	quoted := strings.ReplaceAll(krakenTrade, `"`, `\"`)
	for _, seed := range []string{
		`{"n":1,"t":1700000000.5,"d":"conn","u":"wss://ws.kraken.com/v2"}` + "\n" + `{"t":1700000000.6,"d":"in","x":"` + quoted + `"}`,
		`{"t":1.5,"d":"in","b":"` + base64.StdEncoding.EncodeToString(zip(krakenTrade)) + `","bin":true}`,
		`{"received_at":"2026-01-02T03:04:06.5Z","message":` + krakenTrade + `}`,
		"> {}\n< {\"success\": true, \"req_id\": |1| }\n= \n" + krakenTrade,
		`{"url":"/0/public/Trades","status":200,"recorded_at":"Tue, 03 Oct 2017 04:05:18 GMT","body":"{\"error\":[],\"result\":{}}"}`,
	} {
		f.Add([]byte(seed))
		f.Add(zip(seed))
	}
	f.Fuzz(func(t *testing.T, recording []byte) {
		for _, source := range []string{"kraken", "mexc"} { // one of texts, one of binary frames
			got, stderr, code := runDecode(t, decode.Options{Source: source}, recording)
			if (code == 0) != (stderr == "") || code > 1 {
				t.Errorf("%s: exit %d of %q, and says %q", source, code, recording, stderr)
			}
			for line := range strings.Lines(got) {
				if !json.Valid([]byte(line)) || line[0] != '{' {
					t.Errorf("%s: %q prints %q, which is no JSON object", source, recording, line)
				}
			}
		}
	})
}
