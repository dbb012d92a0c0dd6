package processors_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

func writeCorrections(t testing.TB, producer *kgo.Client, corrections ...*eventsv1.CorrectionRecord) {
	t.Helper()
	for _, c := range corrections {
		value, err := c.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicCorrections, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// A replay that applies corrections gives the tables that a log gives whose ticks were excluded when they came, restates only what may depend on
// them and reports by which; one that does not gives what was published. One that is interrupted goes on with the corrections that it began with.
func TestACorrectedReplayRestatesWhatTheCorrectionsAreAbout(t *testing.T) {
	const seed, seconds = 12, 420
	correctedLog, correctedProducer := newLog(t)
	correctedStore, _ := newStore(t)
	log, producer := newLog(t)
	store, _ := newStore(t) // analysts' views are of the database that was made last
	script := newTickScript(t, producer, seed)
	from := script.second.Add(60 * time.Second)
	exclusion := &eventsv1.CorrectionRecord{
		Id: "x", Time: time.Now().UnixNano(), Kind: schemas.CorrectionExclude, Venue: "okx", From: from.UnixNano(), To: from.Add(50 * time.Second).UnixNano(),
		Author: "op", Reason: "wrong prices",
	}
	script.write(seconds)
	live(t, log, store)
	wantEqualLog(t, log, store)
	published := digests(t, store, "")

	same := newTickScript(t, correctedProducer, seed)
	same.second, same.corrections = from.Add(-60*time.Second), schemas.NewCorrections(exclusion)
	same.write(seconds)
	live(t, correctedLog, correctedStore)
	wantEqualLog(t, correctedLog, correctedStore)
	want := digests(t, correctedStore, "")
	if slices.Equal(want, published) {
		t.Fatal("the exclusion changes nothing")
	}

	corrected := func(view string, verify bool) *replayer {
		r := newReplay(t, log, store, view, verify)
		r.Corrected = true
		return r
	}
	writeCorrections(t, producer, exclusion)
	wantEqualLog(t, log, store) // what was published, whatever was corrected since
	dying, way := beside(t, store)
	kill := func(r *http.Request) error {
		if strings.Contains(statement(t, r), "exchanging") {
			return errKilled
		}
		return nil
	}
	way.before.Store(&kill)
	interrupted := newReplay(t, log, dying, schemas.ViewPrices, false)
	interrupted.Corrected = true
	if _, err := interrupted.Run(t.Context()); !errors.Is(err, errKilled) {
		t.Fatalf("got %v, want that it is killed", err)
	}
	withdrawal := &eventsv1.CorrectionRecord{Id: "w", Time: exclusion.Time + 1, Kind: schemas.CorrectionWithdraw, Withdraws: "x", Author: "op", Reason: "they were right"}
	writeCorrections(t, producer, withdrawal)
	if _, err := newReplay(t, log, store, schemas.ViewPrices, false).Run(t.Context()); err == nil {
		t.Error("a replay without corrections goes on with one that has them")
	}
	result := corrected(schemas.ViewPrices, false).run(t)
	if got := digests(t, store, ""); !slices.Equal(got[:2], want[:2]) || !slices.Equal(got[2:], published[2:]) {
		t.Error("the tables of prices are not those of a log with the exclusion, or those of candles are others")
	}
	restated := wantCauses(t, log, store, "correction x")
	if restated == 0 || int64(restated) != result.Restated {
		t.Errorf("got %d restatements, want %d", restated, result.Restated)
	}
	least, most := from.Add(-2*time.Minute).Unix(), time.Unix(0, exclusion.To).Add(4*time.Minute).Unix()
	if n := count(t, store, "SELECT countIf(toUnixTimestamp(event_time) NOT BETWEEN "+fmt.Sprint(least)+" AND "+fmt.Sprint(most)+") FROM default.v_restatements"); n != 0 {
		t.Errorf("got %d restatements of rows that the exclusion is not about", n)
	}

	// It was withdrawn, so the next one gives what was published; what changes back has the withdrawal as its cause.
	if result := corrected(schemas.ViewPrices, true).run(t); result.Differing == 0 || !result.Corrected {
		t.Errorf("got %+v, want what the withdrawal changes", result)
	}
	corrected(schemas.ViewPrices, false).run(t)
	if n := wantCauses(t, log, store, "correction x", "correction w"); n != 2*restated {
		t.Errorf("got %d restatements, want %d", n, 2*restated)
	}
	if got := digests(t, store, ""); !slices.Equal(got, published) {
		t.Error("the tables are not what was published")
	}

	// Candles follow, and a replay without corrections takes them back.
	again := proto.CloneOf(exclusion)
	again.Id, again.Time = "again", withdrawal.Time+1
	writeCorrections(t, producer, again)
	corrected(schemas.ViewCandles, false).run(t)
	if got := digests(t, store, ""); !slices.Equal(got[2:], want[2:]) {
		t.Error("the tables of candles are not those of a log with the exclusion")
	}
	if result := corrected(schemas.ViewCandles, true).run(t); result.Differing != 0 {
		t.Errorf("got %+v, want no difference", result)
	}
	plain := newReplay(t, log, store, schemas.ViewCandles, false)
	plain.run(t)
	if len(plain.notes) != 1 || !strings.Contains(plain.notes[0], "the log has 3 corrections") {
		t.Errorf("got notes %q", plain.notes)
	}
	wantEqualLog(t, log, store)
	if got := digests(t, store, ""); !slices.Equal(got, published) {
		t.Error("the tables are not what was published")
	}
	for _, view := range []string{schemas.ViewAll, schemas.ViewMarkets, schemas.ViewTicks} {
		if err := corrected(view, true).Validate(); err == nil {
			t.Errorf("view %s is replayed with corrections", view)
		}
	}
}

// wantCauses fails the test unless all restatements have one of the causes, and each is there; it counts them.
func wantCauses(t testing.TB, log stream.Config, store *history.Store, causes ...string) int {
	t.Helper()
	materializeRestatements(t, log, store)
	slices.Sort(causes)
	if got := texts(t, store, "SELECT DISTINCT toString(cause) AS cause FROM default.v_restatements ORDER BY cause"); !slices.Equal(got, causes) {
		t.Errorf("got causes %q, want %q", got, causes)
	}
	return int(count(t, store, "SELECT count() FROM default.v_restatements"))
}
