package adapter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/marketlog/marketlog/schemas"
)

func packed(t testing.TB, plain []byte) Frame {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return Frame{Bytes: b.Bytes(), Binary: true}
}

// What is inflated stays as it is while others are, also after broken frames and ones that are too large.
func TestUnpackedFramesAreTheirOwn(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(worker)))
		all.Go(func() {
			type pair struct{ got, want []byte }
			var kept []pair
			for range 200 {
				plain := bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(2000))
				f := packed(t, plain)
				switch rng.IntN(4) {
				case 0:
					f.Bytes = f.Bytes[:len(f.Bytes)-1-rng.IntN(8)]
					if _, err := Unpack(f); !errors.Is(err, schemas.Undecodable) {
						t.Errorf("a frame that was cut: got %v", err)
					}
				default:
					got, err := Unpack(f)
					if err != nil {
						t.Error(err)
					}
					kept = append(kept, pair{got.Bytes, plain})
				}
			}
			for _, p := range kept {
				if !bytes.Equal(p.got, p.want) {
					t.Errorf("got %d bytes, want %d of %v", len(p.got), len(p.want), p.want[:min(1, len(p.want))])
				}
			}
		})
	}
	all.Wait()
	if _, err := Unpack(packed(t, make([]byte, MaxFrame+1))); err == nil || !strings.Contains(err.Error(), "inflates to more than") {
		t.Errorf("a bomb: got %v", err)
	}
	if f, err := Unpack(packed(t, make([]byte, MaxFrame))); err != nil || len(f.Bytes) != MaxFrame {
		t.Errorf("the largest frame: got %d bytes, %v", len(f.Bytes), err)
	}
	if f, err := Unpack(Frame{Bytes: []byte("text")}); err != nil || string(f.Bytes) != "text" {
		t.Errorf("text: got %q, %v", f.Bytes, err)
	}
}

func BenchmarkUnpack(b *testing.B) {
	f := packed(b, []byte(strings.Repeat(`{"ch":"market.btcusdt.trade.detail","ts":1489474082831,"tick":{"id":14650745135,"ts":1489474082831}}`, 3)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Unpack(f); err != nil {
			b.Fatal(err)
		}
	}
}
