package processors_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/processors/defi"
	"github.com/marketlog/marketlog/processors/earn"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/schemas/events"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/archive"
)

// golden names an archive to be made, beneath testdata/golden, of what this version archives; one that exists is not made again. What
// each fold derives of each archive is noted beside it, where that is not noted yet of the fold's logic version.
var golden = flag.String("golden", "", "make the archive testdata/golden/`NAME`, unless it exists, and note what folds of new versions derive")

// goldenSeconds are the seconds of scripted ticks in an archive.
const goldenSeconds = 150

// readSuffix ends the name of the digest of what is read of a topic.
const readSuffix = ".read"

// TestGoldenArchivesAreFoldedAsTheyWere reads the archives of all versions: none of their bytes has changed, their records read as
// they did, and what today's folds derive of them is what the first fold of the same logic version derived.
func TestGoldenArchivesAreFoldedAsTheyWere(t *testing.T) {
	root := filepath.Join("testdata", "golden")
	if *golden != "" {
		makeGolden(t, filepath.Join(root, *golden))
	}
	names, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("there is no archive in %s: %v", root, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			g := openGolden(t, name)
			g.holds(t, "archive", g.chains)
			for topic, sum := range g.read {
				g.holds(t, topic+readSuffix, sum)
			}
			for topic, derived := range g.folded(t) {
				if len(derived) < 50 {
					t.Errorf("of %s only %d records are derived", topic, len(derived))
				}
				sum := sha256.New()
				for _, value := range derived {
					fmt.Fprintf(sum, "%d ", len(value))
					sum.Write(value)
				}
				g.holds(t, fmt.Sprintf("%s.logic%d", topic, processors.LogicVersion(topic)), hex.EncodeToString(sum.Sum(nil)))
			}
		})
	}
}

// goldenArchive is what an archive has.
type goldenArchive struct {
	folder string
	// chains are the last chains of its partitions, one a line, read the digests of what is read of each topic.
	chains string
	read   map[string]string
	// logs are the records of each incarnation of a topic, by topic: a fold's inputs have one of their own.
	logs map[string]map[string][]*kgo.Record
}

// logID is the id of the topics of one log.
func logID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

func openGolden(t *testing.T, folder string) *goldenArchive {
	t.Helper()
	store, err := archive.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	partitions, err := archive.Partitions(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	g := &goldenArchive{folder: folder, read: map[string]string{}, logs: map[string]map[string][]*kgo.Record{}}
	sums := map[string][]byte{}
	for _, p := range partitions {
		c, err := archive.Load(t.Context(), store, p)
		if err != nil || len(c.Faults)+len(c.Gaps)+len(c.Orphans) > 0 {
			t.Fatalf("%s: %v, %+v", p, err, c)
		}
		var records []*kgo.Record
		for _, s := range c.Segments {
			if err := archive.Verify(t.Context(), store, s); err != nil {
				t.Fatal(err)
			}
			g.describes(t, s)
		}
		if _, err := c.Read(t.Context(), store, c.First(), c.Next(), func(r *kgo.Record) error {
			records = append(records, r)
			value, err := readRecord(t, r).(interface{ MarshalVT() ([]byte, error) }).MarshalVT()
			sum := sha256.Sum256(append(sums[p.Topic], value...))
			sums[p.Topic] = sum[:]
			return err
		}); err != nil {
			t.Fatal(err)
		}
		g.chains += fmt.Sprintf("%s %s %s\n", p.TopicID, p, c.Last().Chain)
		if g.logs[p.TopicID] == nil {
			g.logs[p.TopicID] = map[string][]*kgo.Record{}
		}
		g.logs[p.TopicID][p.Topic] = append(g.logs[p.TopicID][p.Topic], records...)
	}
	for topic, sum := range sums {
		g.read[topic] = hex.EncodeToString(sum)
	}
	return g
}

// readRecord decodes a record. Those that folds of minutes read need no marks.
func readRecord(t *testing.T, r *kgo.Record) eventsv1.Marked {
	t.Helper()
	topic, err := schemas.TopicNamed(r.Topic)
	if err != nil {
		t.Fatal(err)
	}
	record := topic.New()
	if err := record.UnmarshalVT(r.Value); err != nil {
		t.Fatalf("%s offset %d: %v", r.Topic, r.Offset, err)
	}
	return record
}

// describes checks that the schema of a segment lies in the archive; the gate compares it with today's.
func (g *goldenArchive) describes(t *testing.T, s archive.Segment) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(g.folder, "v1", "schemas", s.Schema+".binpb"))
	if sum := sha256.Sum256(content); err != nil || hex.EncodeToString(sum[:]) != s.Schema {
		t.Errorf("segment %s has the schema %s, which is not there as it was: %v", s.Data, s.Schema, err)
	}
}

// holds compares a digest with the one beside the archive, in a file that is written once.
func (g *goldenArchive) holds(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(g.folder, "digests", name)
	want, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && *golden != "" {
		want = []byte(strings.TrimSuffix(got, "\n") + "\n")
		err = os.WriteFile(file, want, 0o644)
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is not noted: a fold of a new logic version derives something that is to be noted beside it; run this test with -golden %s", file, filepath.Base(g.folder))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != strings.TrimSpace(got) {
		t.Errorf("%s has\n%swhere now is\n%s\nWhat is in a log must read as it did. A fold that is to derive other records gets another logic version", file, want, got)
	}
}

func goldenMinutes() []*processors.Minutes {
	return []*processors.Minutes{markets.Minutes(schemas.Coins()), apy.Minutes(), defi.Minutes(), earn.Minutes(schemas.Coins())}
}

// folded are the records that today's folds derive of an archive, by topic, as they are written.
func (g *goldenArchive) folded(t *testing.T) map[string][][]byte {
	t.Helper()
	derived := map[string][][]byte{}
	ticks := g.logs[logID("prices")][schemas.TopicTicks]
	for at, records := range fold(t, pricesUnit(scenarioPartitions), ticks) {
		for _, r := range records {
			derived[at.topic] = append(derived[at.topic], r.Value)
		}
	}
	for _, declared := range goldenMinutes() {
		minutes := g.minutes(t, declared)
		for _, m := range foldtest.FoldMinutes(t, declared.New(), minutes, false) {
			derived[declared.Output] = append(derived[declared.Output], m.Bytes()...)
		}
	}
	return derived
}

// minutes are the inputs of a fold of minutes, by the log time of their records.
func (g *goldenArchive) minutes(t *testing.T, declared *processors.Minutes) (minutes []foldtest.LogMinute) {
	at := map[int64]int{}
	ends := g.ends(declared)
	for i, end := range ends {
		at[end] = i
		minutes = append(minutes, foldtest.LogMinute{End: end, Inputs: make([][]foldtest.LogRecord, len(declared.Inputs))})
	}
	for i, topic := range declared.Inputs {
		for _, r := range g.logs[logID(declared.Name)][topic] {
			m := &minutes[at[minuteEnd(r)]]
			m.Inputs[i] = append(m.Inputs[i], foldtest.LogRecord{Offset: r.Offset, Record: readRecord(t, r)})
		}
	}
	return minutes
}

// minuteEnd is the end of the log minute of a record, Unix nanoseconds.
func minuteEnd(r *kgo.Record) int64 {
	return r.Timestamp.Truncate(time.Minute).Add(time.Minute).UnixNano()
}

// ends are the ends of all minutes from the first record of a fold's inputs to the last one.
func (g *goldenArchive) ends(declared *processors.Minutes) (ends []int64) {
	var times []int64
	for _, records := range g.logs[logID(declared.Name)] {
		for _, r := range records {
			times = append(times, minuteEnd(r))
		}
	}
	if len(times) == 0 {
		return nil
	}
	for end := slices.Min(times); end <= slices.Max(times); end += int64(time.Minute) {
		ends = append(ends, end)
	}
	return ends
}

// makeGolden archives scripted ticks of some coins, and the minutes that the tests of the other folds hold. One archive that exists
// stays as it is.
func makeGolden(t *testing.T, folder string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "digests")); err == nil {
		return
	}
	if err := os.MkdirAll(filepath.Join(folder, "digests"), 0o755); err != nil {
		t.Fatal(err)
	}
	store := archive.NewDir(folder)
	descriptors, err := events.Files.ReadFile("events.binpb")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := archive.WriteSchema(t.Context(), store, descriptors)
	if err != nil {
		t.Fatal(err)
	}
	// write archives a partition in segments of the given number of records.
	write := func(log string, records []*kgo.Record, most int) {
		var last archive.Segment
		for segment := range slices.Chunk(records, most) {
			of := archive.Partition{Topic: segment[0].Topic, TopicID: logID(log), Number: segment[0].Partition}
			last, err = archive.Commit(t.Context(), store, of, last, segment[0].Offset, schema, func(yield func(*kgo.Record, error) bool) {
				for _, r := range segment {
					if !yield(r, nil) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	s := calmScenario(goldenSeconds)
	var resolved [scenarioPartitions]memoryLog
	for p, input := range s.raw {
		resolved[p] = fold(t, resolveUnit(), input)
	}
	partition, _ := sameTicksPartition(3)
	ticks := s.ticks(partition, resolved)
	write("prices", ticks, 700)
	for _, declared := range goldenMinutes() {
		for _, records := range frozenInputs(t, declared) {
			write(declared.Name, records, len(records)/2+1)
		}
	}
}

// frozenInputs are the inputs of the minutes that the test of a fold holds, as a log of one partition a topic.
func frozenInputs(t *testing.T, declared *processors.Minutes) (logs [][]*kgo.Record) {
	t.Helper()
	held, err := filepath.Glob(filepath.Join(declared.Name, "testdata", "frozen_v*.jsonl"))
	if err != nil || len(held) != 1 {
		t.Fatalf("%s holds %v, %v", declared.Name, held, err)
	}
	content, err := os.ReadFile(held[0])
	if err != nil {
		t.Fatal(err)
	}
	logs = make([][]*kgo.Record, len(declared.Inputs))
	for line := range bytes.Lines(content) {
		var minute struct {
			End    int64
			Inputs [][]struct{ Value []byte }
		}
		if err := json.Unmarshal(line, &minute); err != nil {
			t.Fatal(err)
		}
		for i, records := range minute.Inputs {
			for _, r := range records {
				logs[i] = append(logs[i], &kgo.Record{
					Topic: declared.Inputs[i], Offset: int64(len(logs[i])), Value: r.Value, Timestamp: time.Unix(0, minute.End).Add(-time.Second),
				})
			}
		}
	}
	return slices.DeleteFunc(logs, func(records []*kgo.Record) bool { return len(records) == 0 })
}
