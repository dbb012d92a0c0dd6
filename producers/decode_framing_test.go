package producers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/producers/decode"
)

// Recordings that hold several connections of Bitfinex as one name the channel and its market at the end of each list: funding
// markets by the currency alone, whose rates are not prices.
func TestDecodeUndoesTheFramingOfOtherRecorders(t *testing.T) {
	const recording = `{"message":[41,"te",[401597400,1574694483000,2,146.5],7,1574694483010,"trades","ETHUSD"]}
{"message":[41,"tu",[401597400,1574694483000,2,146.5],8,1574694483020,"trades","ETHUSD"]}
{"message":[42,[0.0301,5000,0.0302,400,0.001,0.0343,0.03015,90000.5,0.031,0.029],9,1574694483030,"ticker","DUSK:USD"]}
{"message":[43,"te",[401597401,1574694483100,0.01,7240],10,1574694483110,"trades","BTCF0:USTF0"]}
{"message":[44,[0.00032,0.0002,30,3939629.6,0.00019,2,307776.1,-0.00005,-0.23,0.00019,122156333.4,0.00027,6.8e-7,null,null,3441851.7],11,1574694483120,"ticker","USD"]}
{"message":[45,[7616.5,2,0.75],12,1574694483130,"book","BTCUSD"]}
{"message":[46,"hb",13,1574694483140,"trades","ETHUSD"]}
{"message":[47,"te",[401597402,1574694483200,1,1]]}
`
	stdout, stderr, code := runDecode(t, decode.Options{Source: "bitfinex"}, []byte(recording))
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var got []string
	for line := range strings.Lines(stdout) {
		var e struct {
			Kind, VenueSymbol, Price, Last, EventTime, Reason string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join(strings.Fields(strings.Join([]string{e.Kind, e.VenueSymbol, e.Price, e.Last, e.EventTime, e.Reason}, " ")), " "))
	}
	want := []string{
		"trade tETHUSD 146.5 2019-11-25T15:08:03Z",
		"ticker tDUSK:USD 0.03015 2019-11-25T15:08:03.03Z",
		"trade tBTCF0:USTF0 7240 2019-11-25T15:08:03.1Z",
		"error undecodable", // no connection received what channel 47 is
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
}
