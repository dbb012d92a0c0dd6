package keys

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestKeysHaveTheirFormat(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		key := Generate()
		if len(key) != 44 || !strings.HasPrefix(key, "ck_live_") || !WellFormed([]byte(key)) || seen[key] {
			t.Fatalf("generated %q, want ck_live_ and 36 letters with their checksum, once", key)
		}
		seen[key] = true
	}
}

// Python: hex(zlib.crc32(b'ck_live_' + b'0'*30)).
func TestChecksumIsCRC32InBase62(t *testing.T) {
	body := []byte("ck_live_" + strings.Repeat("0", 30))
	sum := checksum(body)
	n := uint64(0)
	for _, c := range sum {
		n = n*62 + uint64(strings.IndexByte(alphabet, c))
	}
	if n != 0xde77e70a {
		t.Errorf("checksum %s is %#x, want 0xde77e70a", sum, n)
	}
}

func TestEveryTypoIsRefusedWithoutALookUp(t *testing.T) {
	key := []byte(Generate())
	for i := range key {
		for _, c := range []byte("0Az_") {
			typo := bytes.Clone(key)
			if typo[i] == c {
				continue
			}
			typo[i] = c
			if WellFormed(typo) {
				t.Errorf("%s with %c at %d is well formed", key, c, i)
			}
		}
	}
	for _, bad := range []string{"", "ck_live_", string(key[:43]), string(key) + "0", "ck_test_" + string(key[8:])} {
		if WellFormed([]byte(bad)) {
			t.Errorf("%q is well formed", bad)
		}
	}
}

// kept stores what an issuer writes, as the log does.
type kept struct {
	t     *testing.T
	table *Table
}

func (k kept) ProduceSync(_ context.Context, records ...*kgo.Record) kgo.ProduceResults {
	for _, r := range records {
		k.table.Follow(r.Key, r.Value)
	}
	return kgo.ProduceResults{{}}
}

func issuerAndTable(t *testing.T, now func() time.Time) (*Issuer, *Table) {
	t.Helper()
	pepper := NewPepper()
	table, err := NewTable(pepper, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := NewIssuer(kept{t, table}, pepper, []string{"free", "pro"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return issuer, table
}

func TestAKeyLivesFromItsRecordToItsEnd(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	issuer, table := issuerAndTable(t, func() time.Time { return now })
	ctx := context.Background()
	if _, _, err := issuer.Create(ctx, "gold", ""); err == nil {
		t.Error("a key with an unknown plan was issued")
	}
	first, rec, err := issuer.Create(ctx, "pro", "a test")
	if err != nil {
		t.Fatal(err)
	}
	grant, ok := table.Lookup([]byte(first), now)
	if !ok || grant.Plan != "pro" || grant.KeyID != rec.Id {
		t.Fatalf("the new key grants %+v, %v", grant, ok)
	}
	value, err := rec.MarshalVT()
	if err != nil || bytes.Contains(value, []byte(first[8:30])) {
		t.Errorf("the stored record reveals the key (%v)", err)
	}
	if _, ok := table.Lookup([]byte(Generate()), now); ok {
		t.Error("a key that was never issued is valid")
	}

	second, _, err := issuer.Rotate(ctx, rec, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	successor, ok := table.Lookup([]byte(second), now)
	if !ok || successor.Budget != grant.Budget || successor.KeyID == grant.KeyID {
		t.Errorf("the rotated key grants %+v, want the same budget and another id", successor)
	}
	if _, ok := table.Lookup([]byte(first), now.Add(time.Hour-1)); !ok {
		t.Error("the old key ended before its overlap")
	}
	if _, ok := table.Lookup([]byte(first), now.Add(time.Hour)); ok {
		t.Error("the old key outlived its overlap")
	}

	last, _ := table.Get(successor.KeyID)
	if _, err := issuer.Revoke(ctx, last); err != nil {
		t.Fatal(err)
	}
	if _, ok := table.Lookup([]byte(second), now); ok {
		t.Error("a revoked key is valid")
	}
	if list := table.List(); len(list) != 2 {
		t.Errorf("%d keys are listed, want 2", len(list))
	}
	if table.Follow([]byte(successor.KeyID), nil); len(table.List()) != 1 {
		t.Errorf("after a tombstone %d keys are listed, want 1", len(table.List()))
	}
}

// Whoever wrote a record can wait until the table judges by it, and until nothing less.
func TestRecordsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, table := issuerAndTable(t, time.Now)
		hash := sha256.Sum256([]byte("a key"))
		made := &eventsv1.KeyRecord{Id: "key_a", Hash: hash[:], Plan: "pro"}
		revoked := &eventsv1.KeyRecord{Id: "key_a", Hash: hash[:], Plan: "pro", Expires: 100}
		other := &eventsv1.KeyRecord{Id: "key_b", Hash: hash[:], Plan: "pro"}
		for _, step := range []struct {
			awaited   *eventsv1.KeyRecord
			not, then *eventsv1.KeyRecord
		}{{made, other, made}, {revoked, made, revoked}} {
			known := make(chan error, 1)
			go func() { known <- table.Await(t.Context(), step.awaited) }()
			for _, rec := range []*eventsv1.KeyRecord{nil, step.not} {
				if rec != nil {
					table.Apply(rec)
				}
				if synctest.Wait(); len(known) > 0 {
					t.Errorf("after %v: %v was not awaited", rec, step.awaited)
				}
			}
			table.Apply(step.then)
			if err := <-known; err != nil {
				t.Error(err)
			}
		}
		for _, held := range []*eventsv1.KeyRecord{made, revoked} {
			if err := table.Await(t.Context(), held); err != nil {
				t.Error(err)
			}
		}
		table.Follow([]byte("key_b"), nil)
		if err := table.Await(t.Context(), other); err != nil { // it ended for good
			t.Error(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := table.Await(ctx, &eventsv1.KeyRecord{Id: "key_c"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v of a record that nobody wrote, want the end of the time", err)
		}
	})
}

func TestAShortHashIsNoKey(t *testing.T) {
	_, table := issuerAndTable(t, time.Now)
	table.Apply(&eventsv1.KeyRecord{Id: "x", Hash: []byte("short")})
	if len(table.List()) != 0 {
		t.Error("a record without a whole hash was taken")
	}
}

func BenchmarkLookup_10000Keys(b *testing.B) {
	pepper := NewPepper()
	table, err := NewTable(pepper, func() string { return "" })
	if err != nil {
		b.Fatal(err)
	}
	var key []byte
	for i := range 10_000 {
		key = []byte(Generate())
		hash := Hash(pepper, key)
		table.Apply(&eventsv1.KeyRecord{Id: string(rune(i)) + "k", Hash: hash[:], Plan: "pro"})
	}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := table.Lookup(key, now); !ok {
			b.Fatal("not found")
		}
	}
}

// Whoever writes into the log without the pepper grants nothing and revives nothing.
func TestOnlySignedRecordsGrant(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	issuer, table := issuerAndTable(t, func() time.Time { return now })
	key, rec, err := issuer.Create(t.Context(), "pro", "")
	if err != nil {
		t.Fatal(err)
	}
	first, err := Encode(issuer.pepper, rec)
	if err != nil {
		t.Fatal(err)
	}
	grants := func(want bool, plan, after string) {
		t.Helper()
		if got, ok := table.Lookup([]byte(key), now); ok != want || ok && got.Plan != plan {
			t.Errorf("after %s: got %v with plan %q, want %v with %q", after, ok, got.Plan, want, plan)
		}
	}
	forged := proto.CloneOf(rec)
	forged.Plan = "enterprise"
	unsigned, err := forged.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	table.Follow([]byte(rec.Id), unsigned)
	grants(true, "pro", "a record without a signature")
	other, err := Encode(NewPepper(), forged)
	if err != nil {
		t.Fatal(err)
	}
	table.Follow([]byte(rec.Id), other)
	grants(true, "pro", "a record that another pepper signed")
	table.Follow([]byte(rec.Id), first[:len(first)-40])
	grants(true, "pro", "a record that was cut off")
	if _, err := issuer.Revoke(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	grants(false, "", "its revocation")
	table.Follow([]byte(rec.Id), first)
	grants(false, "", "its first record, written again")
	table.Follow([]byte(rec.Id), nil)
	table.Follow([]byte(rec.Id), first)
	grants(false, "", "its end for good")
	if got := table.Refused(); got != 4 {
		t.Errorf("%d records are counted as refused, want 4: without a signature, of another pepper, and twice the first one again", got)
	}
}

// How long a refusal takes reveals nothing about the keys that there are: a key that differs from one in its last letters is
// refused as fast as one that has nothing in common with any.
func TestRefusalsTakeTheSameTime(t *testing.T) {
	now := time.Now()
	issuer, table := issuerAndTable(t, time.Now)
	stored, _, err := issuer.Create(t.Context(), "pro", "a test")
	if err != nil {
		t.Fatal(err)
	}
	near := []byte(stored)
	last := len(Prefix) + bodyLength - 1
	near[last] = alphabet[(strings.IndexByte(alphabet, near[last])+1)%len(alphabet)]
	sum := checksum(near[:last+1])
	copy(near[last+1:], sum[:])
	far := []byte(Generate())
	const rounds, lookups = 400, 100
	least := map[string]time.Duration{"near": time.Hour, "far": time.Hour}
	for range rounds { // in turns, so that whatever else the machine does meets both; the least of each counts
		for name, key := range map[string][]byte{"near": near, "far": far} {
			began := time.Now()
			for range lookups {
				if _, ok := table.Lookup(key, now); ok {
					t.Fatalf("the key %s is valid", key)
				}
			}
			least[name] = min(least[name], time.Since(began))
		}
	}
	if ratio := float64(least["near"]) / float64(least["far"]); ratio < 0.8 || ratio > 1.25 {
		t.Errorf("%d look-ups take %s of a key near a stored one, and %s of another", lookups, least["near"], least["far"])
	}
}
