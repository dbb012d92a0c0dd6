package exchanges

import (
	"testing"

	"github.com/marketlog/marketlog/producers/adapter"
)

// Keys of one letter that differ in case only are others, in whichever order they come; of several keys the first that is sent counts.
func TestObjectsTellKeysApart(t *testing.T) {
	o := object{Kind: adapter.Trade, Symbol: "s", Time: "T", ID: "long|t", Price: "p", Size: "q", Side: "S"}.reader()
	for text, want := range map[string]string{
		`{"s":"X","T":1,"t":7,"P":"9","p":"2","Q":"8","q":"3","S":"BUY"}`: "trade X price=2 size=3 side=buy id=7 time=1970-01-01T00:00:00.001Z",
		`{"S":"sell","q":3,"Q":8,"p":2,"P":9,"t":7,"T":1,"s":"X"}`:        "trade X price=2 size=3 side=sell id=7 time=1970-01-01T00:00:00.001Z",
		`{"s":"X","p":"2","q":"3","t":7,"long":5}`:                        "trade X price=2 size=3 id=5",
		`{"p":"2","q":"3","s":null}`:                                      "trade Y price=2 size=3",
	} {
		var out adapter.Out
		if err := o.one([]byte(text), adapter.Event{Symbol: "Y"}, &out); err != nil || len(out.Events) != 1 {
			t.Fatalf("%s: %v, %v", text, out.Refused, err)
		}
		if got := spellEvent(&out.Events[0]); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestAnswersOfAnEnvelope(t *testing.T) {
	open := envelope{Code: "code", OK: "0", Message: "msg", Rows: "result.list", Time: "time", Symbol: "result.symbol"}.opener()
	for body, want := range map[string]string{
		`{"code":0,"time":5,"result":{"symbol":"X","list":[1]}}`: "[1] X",
		`{"code":"0","result":{}}`:                               "null ",
		`{"code":7,"msg":"no","result":{"list":[1]}}`:            "undecodable: error 7: no",
		`{"code":"A","msg":"no"}`:                                `undecodable: error "A": no`,
		`{"result":{"list":[1]}}`:                                "undecodable: an answer without code",
	} {
		rows, e, err := open([]byte(body))
		got := string(rows) + " " + e.Symbol
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
