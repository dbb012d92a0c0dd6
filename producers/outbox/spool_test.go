package outbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func mustSpool(t testing.TB, dir string, segmentBytes, maxBytes int64) *spool {
	t.Helper()
	s, err := openSpool(dir, segmentBytes, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// numbered is the record of tick i of a venue.
func numbered(venue string, i int) *record {
	s := newSource(nil, venue, 77)
	r := takeRecord(0)
	encodeTick(r, s, tickNumber(venue, i, time.Unix(1_700_000_000, int64(i))))
	return r
}

func numberOf(t testing.TB, r *record) int {
	t.Helper()
	var raw eventsv1.RawRecord
	if err := raw.UnmarshalVT(r.kgo.Value); err != nil {
		t.Fatal(err)
	}
	return int(binary.BigEndian.Uint64(raw.GetTick().EventId[8:]))
}

func readAll(t testing.TB, s *spool) (rs []*record) {
	t.Helper()
	for {
		r, err := s.reader.read()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return rs
		}
		rs = append(rs, r)
	}
}

func TestFrameKeepsTheWholeRecord(t *testing.T) {
	want := numbered("alpha", 12)
	want.round = true
	frame := appendFrame(nil, want)
	got, n, err := decodeFrame(append(frame, "rest"...))
	if err != nil || n != len(frame) {
		t.Fatalf("decoding: %d of %d bytes, %v", n, len(frame), err)
	}
	if string(got.kgo.Key) != "alpha|C12" || !bytes.Equal(got.kgo.Value, want.kgo.Value) || !got.round ||
		got.partition != want.partition || got.kgo.Partition != want.partition || got.kgo.Topic != want.kgo.Topic ||
		!got.at.Equal(want.at) || !got.kgo.Timestamp.Equal(want.at) || got.epoch != 77 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A clock has no key: with one it would seem to belong to another partition.
	clock := takeRecord(0)
	clock.at = time.Unix(5, 0)
	clock.address(topicTicks, 3, nil, []byte("v"))
	if got, _, err = decodeFrame(appendFrame(nil, clock)); err != nil || got.kgo.Key != nil || got.partition != 3 {
		t.Errorf("record without a key = %+v, %v, want no key on partition 3", got, err)
	}
}

// Whatever the spool goes through, it hands out what was appended, in order, from the acknowledged
// position on: nothing is lost and, until it is opened again, nothing comes twice.
func TestSpoolAgainstAModel(t *testing.T) {
	base := t.TempDir()
	rounds := 0
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		dir := filepath.Join(base, fmt.Sprint(rounds))
		open := func() *spool {
			s, err := openSpool(dir, 2000, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		defer func() { _ = s.close() }()
		var ends []spoolPosition // where each record that was handed out ends, from acked on
		appended, acked, noted, read := 0, 0, 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var rs []*record
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					rs = append(rs, numbered("alpha", appended))
					appended++
				}
				if n, err := s.append(rs); err != nil || n != len(rs) {
					t.Fatalf("appended %d of %d: %v", n, len(rs), err)
				}
			},
			"read": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					r, err := s.reader.read()
					if err != nil {
						t.Fatal(err)
					}
					if r == nil {
						if read != appended || !s.reader.atEnd() {
							t.Fatalf("ended after %d of %d", read, appended)
						}
						return
					}
					var raw eventsv1.RawRecord
					if err := raw.UnmarshalVT(r.kgo.Value); err != nil {
						t.Fatal(err)
					}
					if got := int(binary.BigEndian.Uint64(raw.GetTick().EventId[8:])); got != read {
						t.Fatalf("read %d, want %d", got, read)
					}
					ends = append(ends, r.end)
					read++
				}
			},
			"ack": func(t *rapid.T) {
				if len(ends) == 0 {
					return
				}
				n := rapid.IntRange(1, len(ends)).Draw(t, "n")
				if err := s.ack(ends[n-1]); err != nil {
					t.Fatal(err)
				}
				ends, acked = ends[n:], acked+n
			},
			"again": func(t *rapid.T) {
				s.reader.seek(s.acked)
				ends, read = nil, acked
			},
			"sync": func(t *rapid.T) {
				if err := s.sync(); err != nil {
					t.Fatal(err)
				}
				noted = acked
			},
			"clear": func(t *rapid.T) {
				for {
					r, err := s.reader.read()
					if err != nil {
						t.Fatal(err)
					}
					if r == nil {
						break
					}
				}
				ends, read, acked = nil, appended, appended
				if err := s.clear(); err != nil {
					t.Fatal(err)
				}
				noted = acked
				if s.bytes() != 0 {
					t.Fatalf("%d bytes after clear", s.bytes())
				}
			},
			"restart": func(t *rapid.T) {
				if err := s.close(); err != nil {
					t.Fatal(err)
				}
				noted, s = acked, open()
				ends, read = nil, acked
			},
			"kill": func(t *rapid.T) {
				// Files as they are, the note as it was; the kernel frees the lock.
				if s.active != nil {
					_ = s.active.Close()
				}
				_ = s.reader.close()
				_ = s.lock.Unlock()
				s = open()
				ends = nil
				// From the note on, or later where segments were removed already.
				first, err := s.reader.read()
				if err != nil {
					t.Fatal(err)
				}
				read = appended
				if first != nil {
					var raw eventsv1.RawRecord
					_ = raw.UnmarshalVT(first.kgo.Value)
					read = int(binary.BigEndian.Uint64(raw.GetTick().EventId[8:]))
				}
				if read < noted || read > acked {
					t.Fatalf("begins at %d after a kill, want from the note %d to the acknowledged %d", read, noted, acked)
				}
				acked, noted = read, read
				s.reader.seek(s.acked)
			},
		})
	})
}

func TestTornTailIsCutOff(t *testing.T) {
	dir := t.TempDir()
	s := mustSpool(t, dir, 1<<20, 1<<30)
	var ends []int64
	for i := range 3 {
		r := numbered("alpha", i)
		if _, err := s.append([]*record{r}); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, r.end.offset)
	}
	name := segmentName(dir, s.segments[0].number)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for size := range len(whole) + 1 {
		torn := filepath.Join(t.TempDir(), "spool")
		if err := os.MkdirAll(torn, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(torn, filepath.Base(name)), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 0
		for want < len(ends) && ends[want] <= int64(size) {
			want++
		}
		s := mustSpool(t, torn, 1<<20, 1<<30)
		if _, err := s.append([]*record{numbered("alpha", 99)}); err != nil {
			t.Fatal(err)
		}
		got := readAll(t, s)
		if len(got) != want+1 || numberOf(t, got[want]) != 99 {
			t.Fatalf("cut at %d of %d bytes: %d records, want %d and the new one", size, len(whole), len(got), want)
		}
		for i, r := range got[:want] {
			if numberOf(t, r) != i {
				t.Fatalf("cut at %d: record %d is %d", size, i, numberOf(t, r))
			}
		}
		if s.damaged != 0 {
			t.Fatalf("cut at %d: %d bytes are called damaged; a torn tail was never a record", size, s.damaged)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamageCostsOneSegment(t *testing.T) {
	dir := t.TempDir()
	s := mustSpool(t, dir, 1000, 1<<30)
	for i := range 30 {
		if _, err := s.append([]*record{numbered("alpha", i)}); err != nil {
			t.Fatal(err)
		}
	}
	first := s.segments[0]
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	name := segmentName(dir, first.number)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[segmentHeader+frameHeader+3] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = mustSpool(t, dir, 1000, 1<<30)
	defer func() { _ = s.close() }()
	got := readAll(t, s)
	if len(got) == 0 || numberOf(t, got[len(got)-1]) != 29 || s.damaged != uint64(first.size-segmentHeader) {
		t.Fatalf("read %d records, %d bytes damaged; want the later segments, and %d bytes", len(got), s.damaged, first.size-segmentHeader)
	}
}

func TestSpoolHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	s := mustSpool(t, dir, 1000, 1<<30)
	if second, err := openSpool(dir, 1000, 1<<30); err == nil {
		_ = second.close()
		t.Error("a second owner was let in")
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if err := mustSpool(t, dir, 1000, 1<<30).close(); err != nil {
		t.Fatal(err)
	}
}

// The two files of a drop are renamed and removed one after the other: a kill between leaves both.
func TestKillBetweenGapAndRemovalDropsOnce(t *testing.T) {
	dir := t.TempDir()
	s := mustSpool(t, dir, 1000, 1<<30)
	for i := range 40 {
		if _, err := s.append([]*record{numbered("alpha", i)}); err != nil {
			t.Fatal(err)
		}
	}
	second := segmentName(dir, s.segments[1].number)
	before, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first makes a segment of gaps, the second merges the next one into it
		if freed, err := s.dropOldest(); err != nil || !freed {
			t.Fatalf("dropping: %t, %v", freed, err)
		}
	}
	dropped := s.dropped
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second, before, 0o600); err != nil { // as if it had not been removed yet
		t.Fatal(err)
	}
	s = mustSpool(t, dir, 1000, 1<<30)
	defer func() { _ = s.close() }()
	var missed uint64
	ticks := 0
	for i, r := range readAll(t, s) {
		var raw eventsv1.RawRecord
		if err := raw.UnmarshalVT(r.kgo.Value); err != nil {
			t.Fatal(err)
		}
		if gap := raw.GetGap(); gap != nil {
			missed += gap.Missed
			if i != 0 || gap.FromTime != time.Unix(1_700_000_000, 0).UnixNano() || gap.ToTime != time.Unix(1_700_000_000, int64(dropped-1)).UnixNano() {
				t.Errorf("record %d is the gap %v, want one in the place of the first %d ticks", i, gap, dropped)
			}
			continue
		}
		ticks++
	}
	if missed != dropped || ticks+int(missed) != 40 {
		t.Errorf("%d missed and %d ticks, want %d and all others of 40", missed, ticks, dropped)
	}
}

// A process appends to the spool and reports it after each append; it is killed while it does. What it
// had acknowledged is there, and nothing but a whole prefix of what it wrote.
func TestKilledWhileSpoolingKeepsEveryAppend(t *testing.T) {
	if dir := os.Getenv("SPOOL_CHILD"); dir != "" {
		spoolUntilKilled(dir)
	}
	for round := range 5 {
		dir := t.TempDir()
		child := exec.Command(os.Args[0], "-test.run=^TestKilledWhileSpoolingKeepsEveryAppend$")
		child.Env = append(os.Environ(), "SPOOL_CHILD="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			if _, err := fmt.Sscan(strings.TrimSpace(line), &acknowledged); err != nil {
				t.Fatalf("child says %q: %v", line, err)
			}
			if acknowledged > 300*(round+1) {
				_ = child.Process.Kill() // read on: it may have acknowledged more by the time it dies
			}
		}
		var exit *exec.ExitError
		if err := child.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("child ended with %v, want SIGKILL", err)
		}
		s := mustSpool(t, dir, 20_000, 1<<30)
		got := readAll(t, s)
		for i, r := range got {
			if numberOf(t, r) != i {
				t.Fatalf("record %d is %d", i, numberOf(t, r))
			}
		}
		if len(got) <= acknowledged {
			t.Errorf("spool holds %d records, the killed process acknowledged %d", len(got), acknowledged+1)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func spoolUntilKilled(dir string) {
	s, err := openSpool(dir, 20_000, 1<<30)
	if err != nil {
		panic(err)
	}
	for i := 0; ; {
		var rs []*record
		for range 7 {
			rs = append(rs, numbered("alpha", i))
			i++
		}
		if _, err := s.append(rs); err != nil {
			panic(err)
		}
		fmt.Println(i - 1)
	}
}

// A payload is decoded to what encodes to a frame of the same record, or refused. The checksum is
// made right here: the fuzzer would hardly ever guess it, and never come past it.
func FuzzFramePayload(f *testing.F) {
	f.Add(appendFrame(nil, numbered("alpha", 1))[frameHeader:])
	f.Add([]byte{})
	f.Add([]byte{topicDead | roundBit, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
		frame = binary.LittleEndian.AppendUint32(frame, crc32.Checksum(payload, castagnoli))
		r, n, err := decodeFrame(append(frame, payload...))
		if err != nil {
			return
		}
		again, _, err := decodeFrame(appendFrame(nil, r))
		if err != nil || n != frameHeader+len(payload) || !bytes.Equal(again.buf, r.buf) || len(again.kgo.Key) != len(r.kgo.Key) ||
			again.topic != r.topic || again.round != r.round || again.partition != r.partition || !again.at.Equal(r.at) || again.epoch != r.epoch {
			t.Fatalf("payload %x: %+v, then %+v, %v", payload, r, again, err)
		}
		droppedGaps{}.add(r) // must not trip over whatever the value is
	})
}

// Whatever bytes are in the last segment, the spool opens, hands out whole records only and takes more.
func FuzzSpoolSegment(f *testing.F) {
	var frames []byte
	for i := range 3 {
		frames = appendFrame(frames, numbered("alpha", i))
	}
	f.Add(frames)
	f.Add(frames[:len(frames)-5])
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, frames []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(segmentName(dir, 4), append(appendSegmentHeader(nil, 4, 4), frames...), 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustSpool(t, dir, 1000, 1<<20)
		defer func() { _ = s.close() }()
		if _, err := s.append([]*record{numbered("alpha", 7)}); err != nil {
			t.Fatal(err)
		}
		got := readAll(t, s)
		if len(got) == 0 || numberOf(t, got[len(got)-1]) != 7 {
			t.Fatalf("%d records, want the new one last", len(got))
		}
		sums := droppedGaps{}
		for _, r := range got {
			sums.add(r) // must not trip over whatever the value is
		}
	})
}
