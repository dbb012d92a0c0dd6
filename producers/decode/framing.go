package decode

import (
	"bytes"
	"encoding/json"
	"strings"
)

// framings undo, by venue, what recorders of other projects do to messages so that several connections fit into one file: each makes
// of a recorded frame the frames that a connection would have received.
var framings = map[string]func([]byte) [][]byte{"bitfinex": bitfinexFraming}

// bitfinexFraming reads lists after whose content the recorder wrote the channel's name and its market, since the numbers of
// channels mean nothing across connections: [41,"te",[…],7,1574694483010,"trades","ETHUSD"]. It puts the acknowledgement of the
// subscription before each, which is where a connection learns them. A market of fewer than six letters is a currency: funding.
func bitfinexFraming(frame []byte) [][]byte {
	var parts []json.RawMessage
	if !bytes.HasPrefix(frame, []byte("[")) || json.Unmarshal(frame, &parts) != nil {
		return [][]byte{frame}
	}
	content := 2
	if len(parts) > 1 && parts[1][0] == '"' && string(parts[1]) != `"hb"` {
		content = 3 // after the name of the message
	}
	var channel, market string
	if n := len(parts) - 2; n < content || json.Unmarshal(parts[n], &channel) != nil || json.Unmarshal(parts[n+1], &market) != nil {
		return [][]byte{frame}
	}
	symbol := "t" + market
	if len(market) < 6 {
		symbol = "f" + market
	}
	subscribed, err := json.Marshal(map[string]any{
		"event": "subscribed", "channel": channel, "chanId": parts[0], "symbol": symbol, "key": "trade::" + symbol,
	})
	if err != nil {
		return [][]byte{frame}
	}
	var texts []string
	for _, part := range parts[:len(parts)-2] {
		texts = append(texts, string(part))
	}
	return [][]byte{subscribed, []byte("[" + strings.Join(texts, ",") + "]")}
}
