package sql

import (
	"bytes"
	"io"
	"testing"
)

func TestNamesAreCompletedAsFarAsTheyAgree(t *testing.T) {
	words := []string{"price", "price_source", "v_candles_1d", "v_candles_1h", "v_prices"}
	for _, c := range []struct {
		before, after, want, rest string
	}{
		{"SELECT v_c", " LIMIT 1", "SELECT v_candles_1", " LIMIT 1"},
		{"SELECT v_p", "", "SELECT v_prices", ""},
		{"SELECT pri", "", "SELECT price", ""},
		{"SELECT price_", "", "SELECT price_source", ""},
		{"sum(v_pr", ")", "sum(v_prices", ")"},
		{"SELECT nothing", "", "SELECT nothing", ""},
		{"SELECT ", "", "SELECT ", ""},
		{"", "", "", ""},
	} {
		line, pos := complete(words, c.before+c.after, len(c.before))
		if line != c.want+c.rest || pos != len(c.want) {
			t.Errorf("%q|%q becomes %q at %d, want %q|%q", c.before, c.after, line, pos, c.want, c.rest)
		}
	}
}

// While something may be interrupted Ctrl-C does that and is not read; what else is typed is read in order.
func TestCtrlCInterruptsWhatRuns(t *testing.T) {
	typed, hand := io.Pipe()
	k := newKeys(typed)
	press := func(text string) {
		if _, err := hand.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	press("ab")
	interrupted := make(chan struct{}, 1)
	end := k.onInterrupt(func() { interrupted <- struct{}{} })
	press("c")
	press("\x03")
	<-interrupted
	end()
	press("\x03d") // is like other keys
	hand.Close()
	if read, err := io.ReadAll(k); err != nil || !bytes.Equal(read, []byte("abc\x03d")) {
		t.Errorf("got %q, %v", read, err)
	}
}
