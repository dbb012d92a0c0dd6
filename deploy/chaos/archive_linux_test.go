package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
	"github.com/marketlog/marketlog/stream/streamtest"
)

const (
	// rollingLog bounds the embedded log so far that it rolls several times in each life of the process.
	rollingLog = 64 << 20
	// floodBatch is how many records are written at once beside the ticks, floodPause how long after.
	floodBatch = 1_500
	floodPause = 100 * time.Millisecond
	// firstFlood is how many records end a segment of each partition.
	firstFlood = 90_000
	// openSegment is more records than are in a segment that has not ended.
	openSegment = 6_000
	// archiveDisk has room for what a hundred lives archive.
	archiveDisk = 512 << 20
)

// partitionOf is a partition of the log.
type partitionOf struct {
	topic  string
	number int32
}

// digests are those of records by their offset; 0: it is not known.
type digests map[partitionOf][]uint64

func (d digests) add(r *kgo.Record) {
	of := partitionOf{r.Topic, r.Partition}
	if missing := int(r.Offset) + 1 - len(d[of]); missing > 0 {
		d[of] = append(d[of], make([]uint64, missing)...)
	}
	d[of][r.Offset] = digestOf(r)
}

func (d digests) count() (known int) {
	for _, list := range d {
		for _, digest := range list {
			if digest != 0 {
				known++
			}
		}
	}
	return known
}

// recorder is outside of the program: it reads all archived topics, and notes what was acknowledged to who writes beside it.
type recorder struct {
	// left is how many records are still to be written beside the ticks.
	left atomic.Int64

	mu          sync.Mutex
	seen, acked digests
}

func digestOf(r *kgo.Record) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "%d %q %q", r.Timestamp.UnixMilli(), r.Key, r.Value)
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1
}

// record reads until ctx ends, through all deaths of the broker.
func (rec *recorder) record(ctx context.Context, broker string) error {
	next := map[string]map[int32]kgo.Offset{}
	for _, topic := range schemas.Topics {
		if topic.Archive == schemas.ArchiveNever {
			continue
		}
		next[topic.Name] = map[int32]kgo.Offset{}
		for p := range topic.Partitions {
			next[topic.Name][p] = kgo.NewOffset().At(0)
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumePartitions(next), kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		rec.mu.Lock()
		fetches.EachRecord(rec.seen.add)
		rec.mu.Unlock()
	}
}

// flood writes candles of a past into the log until ctx ends, and notes what was acknowledged.
func (rec *recorder) flood(ctx context.Context, cfg stream.Config, random *rand.Rand) error {
	client, err := cfg.NewProducer()
	if err != nil {
		return err
	}
	defer client.Close()
	topic, err := schemas.TopicNamed(schemas.TopicBackfillRaw)
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil; {
		if rec.left.Add(-floodBatch) < 0 {
			rec.left.Add(floodBatch)
			select {
			case <-ctx.Done():
			case <-time.After(floodPause):
			}
			continue
		}
		batch := make([]*kgo.Record, floodBatch)
		for i := range batch {
			n++
			price := strconv.FormatUint(random.Uint64()%1e12, 10) + "." + strconv.FormatUint(random.Uint64()%1e6, 10)
			value, err := (&eventsv1.BackfillRecord{Producer: "test", Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
				Venue: "coinbase", Symbol: "BTC-USD", Base: "BTC", Quote: "USD", Start: int64(n%20_000_000+1) * int64(time.Minute), Interval: 60, // no minute again, which would be a restatement of it
				Open: price, High: price, Low: price, Close: price, Volume: "1",
			}}}).MarshalVT()
			if err != nil {
				return err
			}
			batch[i] = &kgo.Record{Topic: topic.Name, Partition: int32(n) % topic.Partitions, Value: value, Timestamp: time.Now().Truncate(time.Millisecond)}
		}
		results := client.ProduceSync(ctx, batch...)
		rec.mu.Lock()
		for _, r := range results {
			if r.Err == nil {
				rec.acked.add(r.Record)
			}
		}
		rec.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(floodPause):
		}
	}
	return nil
}

// flooded begins to write beside the ticks; the caller ends it.
func (r *round) flooded(rec *recorder) (stop func()) {
	r.t.Helper()
	cfg := config.DefaultConfig()
	cfg.DataDir = r.in.dir
	ctx, cancel := context.WithCancel(r.t.Context())
	done, random := make(chan error, 1), rand.New(rand.NewPCG(r.random.Uint64(), 2))
	go func() {
		reach, err := cfg.StreamConfig([]string{r.in.kafka})
		for ; len(reach.Options) == 0 && err == nil && ctx.Err() == nil; reach, err = cfg.StreamConfig([]string{r.in.kafka}) {
			time.Sleep(10 * time.Millisecond) // the first start has not drawn its password yet
		}
		if err == nil {
			err = rec.flood(ctx, reach, random)
		}
		done <- err
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
}

// lacks is nil once the instance says that it is not ready, and why.
func (in *instance) lacks(part, why string) error {
	answer, err := http.Get("http://" + in.rest + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(body, []byte(strconv.Quote(part))) || !bytes.Contains(body, []byte(why))) {
		err = fmt.Errorf("it answers %s %s", answer.Status, body)
	}
	return err
}

// archiveOf is the log of the instance as archive and broker have it.
func (r *round) archiveOf(dir string) stream.Config {
	cfg := config.DefaultConfig()
	cfg.Archive.Enabled, cfg.Archive.Dir, cfg.Retention.LogBytes = "true", dir, rollingLog
	log := stream.Config{Brokers: []string{r.in.kafka}, ClientID: "test"}
	log.Archive = archive.NewLog(archive.NewDir(dir), log, cfg.ArchiveRules())
	return log
}

// check reads the whole log through archive and broker: every record that was seen from outside, and every one that was
// acknowledged, is there once, as it was, except for those that were given up, by topic and partition. It
// returns of how many partitions the broker has the beginning no more.
func (rec *recorder) check(t *testing.T, log stream.Config, givenUp map[string][]archive.Span) (deleted int) {
	t.Helper()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	found, records := 0, 0
	// known are the digests of a record that are known outside.
	known := func(of partitionOf, offset int64) (list []uint64) {
		for _, outside := range []digests{rec.seen, rec.acked} {
			if offset < int64(len(outside[of])) && outside[of][offset] != 0 {
				list = append(list, outside[of][offset])
			}
		}
		found += len(list)
		return list
	}
	for _, topic := range schemas.Topics {
		if topic.Archive == schemas.ArchiveNever {
			continue
		}
		held, ends, err := log.Bounds(t.Context(), topic.Name)
		if err != nil {
			t.Fatal(err)
		}
		for p, end := range ends[topic.Name] {
			if held[topic.Name][p] > 0 {
				deleted++
			}
			next, of := int64(0), partitionOf{topic.Name, p}
			for _, gone := range append(slices.Clone(givenUp[fmt.Sprintf("%s/%d", topic.Name, p)]), archive.Span{From: end, Next: end}) {
				err := stream.ReadRange(t.Context(), log, topic.Name, p, next, gone.From, func(r *kgo.Record) error {
					if r.Offset != next {
						return fmt.Errorf("it has %d where %d belongs", r.Offset, next)
					}
					next++
					records++
					if digest := digestOf(r); slices.ContainsFunc(known(of, r.Offset), func(was uint64) bool { return was != digest }) {
						return fmt.Errorf("record %d is not what it was", r.Offset)
					}
					return nil
				})
				if err != nil || next != gone.From {
					t.Errorf("%s/%d is read up to %d, want %d: %v", topic.Name, p, next, gone.From, err)
				}
				for next = gone.From; next < gone.Next; next++ {
					known(of, next)
				}
			}
		}
	}
	seen, acked := rec.seen.count(), rec.acked.count()
	if want := seen + acked; found != want || acked == 0 {
		t.Errorf("of %d records that were seen outside or acknowledged %d are in the log or were given up", want, found)
	}
	t.Logf("%d records are in archive and broker, %d were seen outside and %d acknowledged; the broker deleted from %d partitions", records, seen, acked, deleted)
	streamtest.Report(t, "records", records)
	return deleted
}

// archiving is an instance whose log rolls and is archived on a disk of its own, with a recorder outside.
func archiving(ctx context.Context, t *testing.T) (r *round, rec *recorder, dir string) {
	t.Helper()
	dir = filepath.Join(t.ArtifactDir(), "archive")
	smallDisk(t, dir, archiveDisk)
	r = newRound(ctx, t, build(t), seedOf(t), setting("archive.enabled", "true"), setting("archive.dir", dir), setting("retention.log_bytes", strconv.Itoa(rollingLog)))
	rec = &recorder{seen: digests{}, acked: digests{}}
	recording, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- rec.record(recording, r.in.kafka) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r, rec, dir
}

// While the archive's disk is full, or cannot be written at all, the log keeps what is not archived, and the instance reports it;
// with room again all is archived, without a restart. Where that takes so long that the log is three times as large as its
// bound, its oldest records are given up: exactly those that a gap counts.
func TestFullArchiveLosesNothing(t *testing.T) {
	r, rec, dir := archiving(t.Context(), t)
	p := r.start("live", "")
	eventually(t, "being ready", 2*time.Minute, r.in.ready)
	stop := r.flooded(rec)
	remount := func(flags uintptr) {
		// A file that is being written keeps it from that for a moment.
		eventually(t, "mounting again", time.Minute, func() error { return unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "") })
	}
	var free func()
	for _, damage := range []struct {
		why          string
		harm, mended func()
	}{
		{"no space left on device", func() { free = fill(t, dir) }, func() { free() }},
		{"read-only file system", func() { remount(unix.MS_RDONLY) }, func() { remount(0) }},
	} {
		damage.harm()
		rec.left.Add(firstFlood)
		eventually(t, "reporting that the archive fails", time.Minute, func() error { return r.in.lacks("archive", damage.why) })
		damage.mended()
		eventually(t, "being ready with an archive again", time.Minute, r.in.ready)
	}
	rec.check(t, r.archiveOf(dir), nil)

	remount(unix.MS_RDONLY)
	rec.left.Store(math.MaxInt64)
	eventually(t, "giving up", 2*time.Minute, func() error { return r.in.logged("records of the log are given up") })
	remount(0)
	stop()
	eventually(t, "being ready behind a gap", 2*time.Minute, r.in.ready)
	eventually(t, "archiving what is behind what was given up", 2*time.Minute, func() error { return r.archivedUpTo(r.archiveOf(dir), openSegment) })
	type gap struct {
		Symbol string
		Missed int64
	}
	var givenUp map[string][]archive.Span
	eventually(t, "a gap that counts each hole of the archive", 2*time.Minute, func() error {
		givenUp = r.archiveGaps(dir)
		want := map[string]int64{}
		for symbol, spans := range givenUp {
			for _, span := range spans {
				want[symbol] += span.Next - span.From
			}
		}
		list, err := rows[gap](t.Context(), r.scene.in, "SELECT symbol, toInt64(sum(missed)) AS missed FROM v_gaps WHERE venue = 'log' AND reason = 'retention' GROUP BY symbol")
		if err != nil {
			return err
		}
		got := map[string]int64{}
		for _, g := range list {
			got[g.Symbol] = g.Missed
		}
		if len(want) == 0 || !maps.Equal(got, want) {
			return fmt.Errorf("the gaps count %v, the archive lacks %v", got, want)
		}
		return nil
	})
	t.Logf("given up were %v", givenUp)
	rec.check(t, r.archiveOf(dir), givenUp)
	p.stop(t)
}

// archivedUpTo is nil once the archive has all that was written beside the ticks but some of the newest records.
func (r *round) archivedUpTo(log stream.Config, but int64) error {
	_, ends, err := log.Bounds(r.t.Context(), schemas.TopicBackfillRaw)
	if err != nil {
		return err
	}
	for p, end := range ends[schemas.TopicBackfillRaw] {
		c, err := log.Archive.(*archive.Log).Catalog(r.t.Context(), schemas.TopicBackfillRaw, p)
		if err != nil {
			return err
		}
		if c.Next() < end-but {
			return fmt.Errorf("of partition %d %d records of %d are archived", p, c.Next(), end)
		}
	}
	return nil
}

// logged is nil once the process logged a text.
func (p *program) logged(text string) error {
	log, err := os.ReadFile(p.log)
	if err == nil && !bytes.Contains(log, []byte(text)) {
		err = fmt.Errorf("it did not log %q", text)
	}
	return err
}

// archiveGaps are what the archive lacks between its segments, by topic and partition.
func (r *round) archiveGaps(dir string) map[string][]archive.Span {
	r.t.Helper()
	store := archive.NewDir(dir)
	partitions, err := archive.Partitions(r.t.Context(), store)
	if err != nil {
		r.t.Fatal(err)
	}
	archiveGaps := map[string][]archive.Span{}
	for _, p := range partitions {
		c, err := archive.Load(r.t.Context(), store, p)
		if err != nil || len(c.Faults) > 0 {
			r.t.Fatal(err, c.Faults)
		}
		if len(c.Gaps) > 0 {
			archiveGaps[p.String()] = c.Gaps
		}
	}
	return archiveGaps
}
