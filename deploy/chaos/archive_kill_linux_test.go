package chaos

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// moreFlood ends no segment by itself: a log that its killed archivers leave behind for some lives has to stay within what it
// may wait for.
const moreFlood = 27_000

// archiveSteps are the steps of archiving, and how often each comes in the first seconds of a life.
var archiveSteps = []step{
	{"archive.write", 6, ""},
	{"archive.written", 4, ""},
	{"archive.verified", 4, ""},
	{"archive.committed", 4, ""},
	{"archive.deleted", 2, ""},
	{outside, 0, ""},
}

// However often the process is killed while it archives a log that rolls, what an outside recorder saw of the log, and what was
// acknowledged, is in archive and broker once.
func TestKillLosesNothingOfTheArchive(t *testing.T) {
	kills := len(archiveSteps)
	if text := os.Getenv("MARKETLOG_ARCHIVE_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil || kills < len(archiveSteps) {
			t.Fatalf("MARKETLOG_ARCHIVE_KILLS=%q, want %d or more", text, len(archiveSteps))
		}
	}
	r, rec, dir := archiving(t.Context(), t)
	stop := r.flooded(rec)
	for i := range kills {
		s := archiveSteps[i%len(archiveSteps)]
		rec.left.Add(moreFlood)
		if i%len(archiveSteps) == 0 {
			rec.left.Add(firstFlood - moreFlood)
		}
		if s.name == outside { // the archiver catches up first
			p := r.start("live", "")
			eventually(t, "archiving all that a segment ends", 2*time.Minute, func() error { return r.archivedUpTo(r.archiveOf(dir), openSegment) })
			p.ended(time.Duration(r.random.Int64N(int64(3 * time.Second))))
			p.kill()
			continue
		}
		for !r.kill(s) {
			s.often = 1 // too little had happened; the first will do
			rec.left.Add(moreFlood)
		}
	}
	p := r.start("live", "")
	stop() // not before: what was sent to a broker that died cannot be given up
	eventually(t, "being ready", 2*time.Minute, r.in.ready)
	if rec.check(t, r.archiveOf(dir), nil) == 0 {
		t.Error("the broker deleted nothing: its log was to roll")
	}
	p.stop(t)
	verify := exec.CommandContext(t.Context(), r.in.command[0], "archive", "verify", "--deep", "--data-dir", r.in.dir)
	verify.Env = append(os.Environ(), r.in.environment...)
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("verifying the archive: %v\n%s", err, out)
	}
	streamtest.Report(t, "kills", kills)
}
