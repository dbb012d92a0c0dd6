package archive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

var part = archive.Partition{Topic: "prices.v1", TopicID: "000102030405060708090a0b0c0d0e0f", Number: 3}

var schemaDigest = strings.Repeat("ab", 32)

// randomRecords are n records from an offset on, among them null and empty keys and values, headers and times that go back.
func randomRecords(r *rand.Rand, first int64, n int) []*kgo.Record {
	text := func() []byte {
		switch r.IntN(8) {
		case 0:
			return nil
		case 1:
			return []byte{}
		}
		b := make([]byte, r.IntN(300))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return b
	}
	at := time.UnixMilli(1_790_000_000_000)
	records := make([]*kgo.Record, n)
	for i := range records {
		at = at.Add(time.Duration(r.IntN(3000)-500) * time.Millisecond)
		records[i] = &kgo.Record{Topic: part.Topic, Partition: part.Number, Offset: first + int64(i), Timestamp: at, Key: text(), Value: text()}
		for range r.IntN(3) * r.IntN(2) {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: string(text()), Value: text()})
		}
	}
	return records
}

func sequence(records []*kgo.Record) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func load(t *testing.T, store archive.Store) archive.Catalog {
	t.Helper()
	c, err := archive.Load(t.Context(), store, part)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func commit(t *testing.T, store archive.Store, before archive.Segment, records []*kgo.Record) archive.Segment {
	t.Helper()
	s, err := archive.Commit(t.Context(), store, part, before, records[0].Offset, schemaDigest, sequence(records))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// archived makes an archive of three segments of random records.
func archived(t *testing.T, open opener) (archive.Store, string, []*kgo.Record) {
	t.Helper()
	store, root := open(t)
	records := randomRecords(streamtest.Rand(t), 1000, 3000)
	first := commit(t, store, archive.Segment{}, records[:900])
	second := commit(t, store, first, records[900:2100])
	commit(t, store, second, records[2100:])
	return store, root, records
}

func TestWhatIsReadIsWhatWasArchived(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _, records := archived(t, open)
		c := load(t, store)
		if len(c.Faults)+len(c.Gaps)+len(c.Orphans) > 0 || c.First() != 1000 || c.Next() != 4000 {
			t.Fatalf("the catalogue is %+v", c)
		}
		for _, s := range c.Segments {
			if err := archive.Verify(t.Context(), store, s); err != nil {
				t.Error(err)
			}
		}
		r := streamtest.Rand(t)
		for range 20 {
			from := r.Int64N(3100) + 950
			to := from + r.Int64N(3000)
			var got []*kgo.Record
			next, err := c.Read(t.Context(), store, from, to, func(r *kgo.Record) error {
				got = append(got, r)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var want []*kgo.Record
			wantNext := from
			if from >= 1000 && from < 4000 {
				want = records[from-1000 : min(to, 4000)-1000]
				wantNext = min(to, 4000)
			}
			// Byte by byte, as cmp compares, it takes a minute with the race detector.
			if next != wantNext || !reflect.DeepEqual(fields(got), fields(want)) {
				t.Errorf("reading [%d, %d) gave %d records up to %d, want %d up to %d: %s", from, to, len(got), next, len(want), wantNext, cmp.Diff(fields(want), fields(got)))
			}
		}
	})
}

type field struct {
	Offset, Time int64
	Key, Value   []byte
	Headers      []kgo.RecordHeader
}

// fields are what an archive keeps of records. Null and empty are distinguished.
func fields(records []*kgo.Record) []field {
	list := make([]field, 0, len(records))
	for _, r := range records {
		list = append(list, field{r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Headers})
	}
	return list
}

func TestSegmentsEndWhereTheirRecordsRequire(t *testing.T) {
	at := func(seconds, size int) *kgo.Record {
		return &kgo.Record{Timestamp: time.Unix(int64(seconds), 0), Value: make([]byte, size)}
	}
	ends := func(records ...*kgo.Record) string {
		cut := archive.Cutter{Rule: archive.Rule{Period: time.Minute, Bytes: 100}}
		var got []string
		for i, r := range records {
			if cut.Ends(r) {
				got = append(got, fmt.Sprint(i))
			}
		}
		return strings.Join(got, " ")
	}
	for _, test := range []struct {
		name    string
		records []*kgo.Record
		want    string
	}{
		{"a new minute", []*kgo.Record{at(0, 1), at(59, 1), at(60, 1), at(61, 1), at(179, 1)}, "2 4"},
		{"a late record begins none", []*kgo.Record{at(0, 1), at(60, 1), at(59, 1), at(61, 1), at(1, 1)}, "1"},
		{"bytes", []*kgo.Record{at(0, 60), at(0, 40), at(0, 1), at(0, 99), at(0, 1)}, "2 4"},
		{"a record larger than the bound", []*kgo.Record{at(0, 500), at(0, 500), at(0, 1)}, "1 2"},
		{"a late record behind a cut of bytes", []*kgo.Record{at(60, 100), at(59, 1), at(61, 1), at(120, 1)}, "1 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ends(test.records...); got != test.want {
				t.Errorf("segments end before %q, want %q", got, test.want)
			}
		})
	}
	t.Run("rows", func(t *testing.T) {
		cut := archive.Cutter{Rule: archive.Rule{Period: time.Hour, Bytes: 1 << 40}}
		r := at(0, 1)
		for i := range 2_000_001 {
			if cut.Ends(r) != (i == 1_000_000 || i == 2_000_000) {
				t.Fatalf("wrong at record %d", i)
			}
		}
	})
}

func TestDamageIsFoundByName(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		segments := func(t *testing.T) (archive.Store, string, []archive.Segment) {
			store, root, _ := archived(t, open)
			return store, root, load(t, store).Segments
		}
		verify := func(store archive.Store, list []archive.Segment) (names []string) {
			for _, s := range list {
				err := archive.Verify(context.Background(), store, s)
				if damage := (*archive.DamageError)(nil); errors.As(err, &damage) {
					names = append(names, damage.Segment.Data)
				} else if err != nil {
					names = append(names, err.Error())
				}
			}
			return names
		}
		t.Run("any bit", func(t *testing.T) {
			store, root, records := archived(t, open)
			list := load(t, store).Segments
			r := streamtest.Rand(t)
			for range 20 {
				s := list[r.IntN(3)]
				file := filepath.Join(root, s.Data)
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				changed := slices.Clone(content)
				changed[r.IntN(len(changed))] ^= 1 << r.IntN(8)
				if r.IntN(4) == 0 {
					changed = content[:r.IntN(len(content))]
				}
				replace(t, file, changed)
				if got := verify(store, list); !slices.Equal(got, []string{s.Data}) {
					t.Fatalf("damaged are %v, want %s", got, s.Data)
				}
				// What is read of it is right, or the damage is named.
				var got []*kgo.Record
				_, err = load(t, store).Read(t.Context(), store, 1000, 4000, func(r *kgo.Record) error {
					got = append(got, r)
					return nil
				})
				if err == nil && !reflect.DeepEqual(fields(got), fields(records)) {
					t.Fatal("changed records were read without an error")
				}
				replace(t, file, content)
			}
		})
		t.Run("swapped files", func(t *testing.T) {
			store, root, list := segments(t)
			a, b := filepath.Join(root, list[0].Data), filepath.Join(root, list[1].Data)
			for _, move := range [][2]string{{a, a + "x"}, {b, a}, {a + "x", b}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
			}
			if got := verify(store, list); !slices.Equal(got, []string{list[0].Data, list[1].Data}) {
				t.Fatalf("damaged are %v", got)
			}
		})
		t.Run("a segment that is gone", func(t *testing.T) {
			store, root, list := segments(t)
			for _, name := range []string{list[1].Data, list[1].SidecarName()} {
				if err := os.Remove(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
			c := load(t, store)
			if !slices.Equal(c.Gaps, []archive.Span{{From: 1900, Next: 3100}}) || len(c.Faults) != 1 || !strings.Contains(c.Faults[0].Error(), "removed") {
				t.Fatalf("the catalogue is %+v", c)
			}
			if next, err := c.Read(t.Context(), store, 1000, 4000, func(*kgo.Record) error { return nil }); next != 1900 || err != nil {
				t.Fatalf("reading goes on to %d: %v", next, err)
			}
		})
		t.Run("a sidecar of another place", func(t *testing.T) {
			store, root, list := segments(t)
			content, err := os.ReadFile(filepath.Join(root, list[1].SidecarName()))
			if err != nil {
				t.Fatal(err)
			}
			replace(t, filepath.Join(root, list[2].SidecarName()), content)
			if c := load(t, store); len(c.Faults) != 1 || !strings.Contains(c.Faults[0].Error(), "moved or copied") || len(c.Segments) != 2 {
				t.Fatalf("the catalogue is %+v", c)
			}
		})
		t.Run("a segment of another log", func(t *testing.T) {
			store, root, list := segments(t)
			other, otherRoot := open(t)
			records := randomRecords(streamtest.Rand(t), 1900, 1200)
			foreign := commit(t, other, archive.Segment{}, records)
			content, err := os.ReadFile(filepath.Join(otherRoot, foreign.Data))
			if err != nil {
				t.Fatal(err)
			}
			replace(t, filepath.Join(root, foreign.Data), content)
			sidecar, err := os.ReadFile(filepath.Join(otherRoot, foreign.SidecarName()))
			if err != nil {
				t.Fatal(err)
			}
			replace(t, filepath.Join(root, list[1].SidecarName()), sidecar)
			if c := load(t, store); len(c.Faults) == 0 || !strings.Contains(c.Faults[0].Error(), "not chained") {
				t.Fatalf("the catalogue is %+v", c)
			}
		})
	})
}

func replace(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestASecondArchiverGivesWay commits the same segment twice, as a zombie does.
func TestASecondArchiverGivesWay(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		store, _ := open(t)
		records := randomRecords(streamtest.Rand(t), 0, 500)
		first := commit(t, store, archive.Segment{}, records)
		if again := commit(t, store, archive.Segment{}, records); again != first {
			t.Errorf("the second archiver has %+v, the first %+v", again, first)
		}
		if c := load(t, store); len(c.Orphans) != 0 || len(c.Segments) != 1 {
			t.Errorf("the catalogue is %+v", c)
		}
		_, err := archive.Commit(t.Context(), store, part, archive.Segment{}, 0, schemaDigest, sequence(records[:499]))
		if mismatch := (*archive.MismatchError)(nil); !errors.As(err, &mismatch) {
			t.Errorf("other records give %v", err)
		}
	})
}

func TestNothingIsCommittedThatIsNotWhole(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		records := randomRecords(streamtest.Rand(t), 0, 500)
		for name, source := range map[string]iter.Seq2[*kgo.Record, error]{
			"no record":         sequence(nil),
			"a missing record":  sequence(slices.Delete(slices.Clone(records), 200, 201)),
			"a repeated record": sequence(slices.Insert(slices.Clone(records), 200, records[200])),
			"a log that cannot be read": func(yield func(*kgo.Record, error) bool) {
				sequence(records)(yield)
				yield(nil, errors.New("the log is away"))
			},
		} {
			t.Run(name, func(t *testing.T) {
				store, root := open(t)
				if _, err := archive.Commit(t.Context(), store, part, archive.Segment{}, 0, schemaDigest, source); err == nil {
					t.Error("it is committed")
				}
				objects, err := store.List(t.Context(), "v1/")
				if err != nil || len(objects) > 0 {
					t.Errorf("it leaves %v, %v", objects, err)
				}
				_ = filepath.WalkDir(root, func(file string, e os.DirEntry, err error) error {
					if err == nil && !e.IsDir() {
						t.Errorf("it leaves %s", file)
					}
					return err
				})
			})
		}
	})
}

// failing is a store whose writes of some names fail after they took effect, or before.
type failing struct {
	archive.Store
	suffix string
	after  bool
}

var errAway = errors.New("the store is away")

func (f *failing) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	if !strings.HasSuffix(name, f.suffix) {
		return f.Store.Create(ctx, name, write)
	}
	if f.after {
		if err := f.Store.Create(ctx, name, write); err != nil {
			return err
		}
	}
	return errAway
}

func TestAFailedAttemptIsFoundOutByTheNext(t *testing.T) {
	eachStore(t, func(t *testing.T, open opener) {
		for _, suffix := range []string{".parquet", ".json"} {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprint(suffix, after), func(t *testing.T) {
					store, _ := open(t)
					records := randomRecords(streamtest.Rand(t), 0, 1000)
					first := commit(t, store, archive.Segment{}, records[:500])
					_, err := archive.Commit(t.Context(), &failing{store, suffix, after}, part, first, 500, schemaDigest, sequence(records[500:]))
					if !errors.Is(err, errAway) {
						t.Fatal(err)
					}
					c := load(t, store)
					if c.Next() == 500 {
						commit(t, store, c.Last(), records[500:])
						c = load(t, store)
					} else if suffix != ".json" || !after {
						t.Fatalf("without its sidecar it is committed: %+v", c)
					}
					if suffix == ".json" && len(c.Orphans) > 0 {
						t.Errorf("an attempt whose sidecar failed leaves %v", c.Orphans)
					}
					if err := c.Sweep(t.Context(), store); err != nil {
						t.Fatal(err)
					}
					if c = load(t, store); c.Next() != 1000 || len(c.Orphans)+len(c.Faults)+len(c.Gaps) > 0 {
						t.Errorf("the catalogue is %+v", c)
					}
				})
			}
		}
	})
}

func FuzzSidecar(f *testing.F) {
	good := archive.Segment{Topic: part.Topic, TopicID: part.TopicID, Partition: 3, First: 5, Next: 6, Size: 4, SHA256: schemaDigest, Digest: schemaDigest, Chain: schemaDigest,
		Schema: schemaDigest, Data: "v1/" + part.TopicID + "/prices.v1/3/00000000000000000005-aabbccddeeff.parquet"}
	content, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"first":-1,"next":9223372036854775807,"data":"../../etc/passwd"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		store, root := dir(t)
		file := filepath.Join(root, good.SidecarName())
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		replace(t, file, content)
		c := load(t, store)
		if len(c.Segments)+len(c.Faults) != 1 {
			t.Errorf("one sidecar gives %+v", c)
		}
		for _, s := range c.Segments {
			if s.SidecarName() != good.SidecarName() || !strings.HasPrefix(s.Data, "v1/"+part.TopicID+"/prices.v1/3/00000000000000000005") {
				t.Errorf("a sidecar is taken as %+v", s)
			}
		}
	})
}

// FuzzData reads any bytes as the file of a segment.
func FuzzData(f *testing.F) {
	store := archive.NewDir(f.TempDir())
	records := randomRecords(rand.New(rand.NewPCG(1, 2)), 5, 20)
	s, err := archive.Commit(f.Context(), store, part, archive.Segment{}, 5, schemaDigest, sequence(records))
	if err != nil {
		f.Fatal(err)
	}
	object, err := store.Open(f.Context(), s.Data)
	if err != nil {
		f.Fatal(err)
	}
	good := make([]byte, s.Size)
	if _, err := object.ReadAt(good, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, content []byte) {
		store, root := dir(t)
		file := filepath.Join(root, s.Data)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		replace(t, file, content)
		s := s
		s.Size = int64(len(content))
		sidecar, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(root, s.SidecarName()), sidecar)
		next := int64(5)
		_, err = load(t, store).Read(t.Context(), store, 5, 25, func(r *kgo.Record) error {
			if r.Offset != next {
				t.Errorf("record %d follows %d", r.Offset, next-1)
			}
			next++
			return nil
		})
		if err == nil && next != 25 {
			t.Errorf("a file without records 5 to 25 is read up to %d", next)
		}
	})
}
