package archive

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// tickRecords are records like those of ticks.
func tickRecords(n int) (all []*kgo.Record) {
	rng := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for i := range n {
		at = at.Add(time.Duration(rng.IntN(3)) * time.Millisecond)
		price := 60_000 + rng.Float64()*100
		all = append(all, &kgo.Record{Offset: int64(i), Timestamp: at, Key: fmt.Appendf(nil, "venue%d|BTC-USDT", rng.IntN(16)),
			Value: fmt.Appendf(nil, "\x0a\x05trade\x12\x08BTC-USDT\x1a\x07%.2f\x22\x06%.5f\x28%d\x32\x10%016x", price, rng.Float64(), at.UnixNano(), rng.Uint64())})
	}
	return all
}

// The pages of a file can be read by the library's own codec, which knows nothing of ours, and are as small as it makes them.
func TestPagesAreOfTheStandardCodec(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{0, 1, 1000, 200_000, 3_000_000} {
		page := make([]byte, size)
		for i := range page {
			page[i] = byte(rng.IntN(20)) * byte(i>>6)
		}
		packed, err := pages.Encode([]byte("kept room"), page)
		if err != nil {
			t.Fatal(err)
		}
		standard := &parquetzstd.Codec{Level: parquetzstd.SpeedDefault}
		plain, err := standard.Decode(nil, packed)
		if err != nil || !bytes.Equal(plain, page) {
			t.Errorf("%d bytes: read %d, %v", size, len(plain), err)
		}
		theirs, err := standard.Encode(nil, page)
		if err != nil || len(packed) > len(theirs)+len(theirs)/50+64 {
			t.Errorf("%d bytes: %d compressed, the standard codec makes %d of it, %v", size, len(packed), len(theirs), err)
		}
	}
}

func BenchmarkWriteSegment(b *testing.B) {
	records := tickRecords(20_000)
	b.ReportAllocs()
	for b.Loop() {
		var n counted
		w := newWriter(&n)
		for _, r := range records {
			if err := w.write(r); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n)/float64(len(records)), "B/record")
	}
}

type counted int

func (n *counted) Write(b []byte) (int, error) { *n += counted(len(b)); return len(b), nil }
