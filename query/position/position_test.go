package position_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/position"
)

func TestPositionsAreReadAsTheyAreWritten(t *testing.T) {
	for _, p := range []position.Position{
		{At: time.Unix(0, 0).UTC()}, {At: time.Unix(1_790_000_000, 123_456_789).UTC(), Replica: "k3f7a2mnqpz5xw4y"}, {At: time.Unix(1, 0).UTC(), Replica: strings.Repeat("A-z.9_", 10)},
	} {
		read, err := position.Parse(p.String())
		if err != nil || read != p {
			t.Errorf("%+v is written as %s and read as %+v, %v", p, p, read, err)
		}
		if !position.Is(p.String()) {
			t.Errorf("%s is not taken for a position", p)
		}
	}
}

func TestWhatIsNoPositionIsRefused(t *testing.T) {
	good := position.Position{At: time.Unix(1_790_000_000, 0), Replica: "replica"}.String()
	for _, text := range []string{"", "mlp1.", "mlp1.AAAA", strings.TrimPrefix(good, position.Prefix), "mlp2." + strings.TrimPrefix(good, position.Prefix), good + "=", good + "!", good[:len(good)-1],
		"mlp1.__________8", position.Position{At: time.Unix(1, 0), Replica: "a b"}.String(), good + strings.Repeat("AAAA", 30)} {
		if p, err := position.Parse(text); !errors.Is(err, position.ErrForm) {
			t.Errorf("%q is read as %+v, %v; want ErrForm", text, p, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(position.Position{At: time.Unix(1_790_000_000, 5), Replica: "replica"}.String())
	f.Add("mlp1.AAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := position.Parse(text); err == nil && p.String() != text {
			t.Errorf("%q is read as %+v, which is written %q", text, p, p)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	p, to := position.Position{At: time.Unix(1_790_000_000, 5), Replica: "k3f7a2mnqpz5xw4y"}, make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		to = p.Append(to[:0])
	}
}
