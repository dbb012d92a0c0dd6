package mcp

import "testing"

// A result that comes without its acknowledgement gets one, and one that has it stays as it is.
func TestListeningIsAcknowledgedFirst(t *testing.T) {
	r := &request{message: message{ID: []byte(`"a"`)}}
	const result = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n\n"
	const whole = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"," +
		"\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"a\"},\"notifications\":{}}}\n\n" + result
	for name, events := range map[string]string{"lost": result, "there": whole} {
		if got := string(r.acknowledged([]byte(events))); got != whole {
			t.Errorf("%s: got %s, want %s", name, got, whole)
		}
	}
}
