package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// krakenTrades is a frame of trades of BTC/USD, a second before at.
func krakenTrades(at time.Time, ids ...int) []byte {
	var rows []string
	for _, id := range ids {
		rows = append(rows, fmt.Sprintf(`{"symbol":"BTC/USD","side":"buy","price":%d.5,"qty":0.25,"ord_type":"limit","trade_id":%d,"timestamp":%q}`,
			1000+id, id, at.Add(-time.Second).UTC().Format(time.RFC3339Nano)))
	}
	return []byte(`{"channel":"trade","type":"update","data":[` + strings.Join(rows, ",") + `]}`)
}

// deadKraken is an instance without feeds, and a Kraken that lists one market.
func deadKraken(t *testing.T) (config.Config, *kgo.Client) {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"error":[],"result":{"XXBTZUSD":{"aclass_base":"currency","altname":"XBTUSD","wsname":"XBT/USD","status":"online"}}}`)
	}))
	t.Cleanup(server.Close)
	dir, err := os.MkdirTemp("", "dead") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds = dir, "none"
	cfg.Listen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t)
	cfg.Venues["kraken"] = config.VenueConfig{Enabled: true, RESTURL: server.URL}
	lives(t, cfg, deploytest.Quiet)
	eventuallyAnswersAt(t, cfg)
	client, err := deploytest.Writer(t, cfg).NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return cfg, client
}

// eventuallyAnswersAt waits until the instance is ready.
func eventuallyAnswersAt(t *testing.T, cfg config.Config) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if answer, err := http.Get("http://" + cfg.Listen + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the instance is not ready")
		}
	}
}

func writeValue(t *testing.T, client *kgo.Client, topic string, partition int32, m interface{ MarshalVT() ([]byte, error) }) (offset int64) {
	t.Helper()
	value, err := m.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	rec := &kgo.Record{Topic: topic, Partition: partition, Value: value}
	if err := client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return rec.Offset
}

// ticksInLog counts the ticks of ticks.v1 by trade id.
func ticksInLog(t *testing.T, cfg config.Config, client *kgo.Client) map[string]int {
	t.Helper()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	ends.Each(func(end kadm.ListedOffset) {
		err := stream.ReadRange(t.Context(), stream.Config{Brokers: []string{cfg.Kafka.Listen}}, schemas.TopicTicks, end.Partition, 0, end.Offset, func(r *kgo.Record) error {
			rec := &eventsv1.ResolvedRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return err
			}
			if tick := rec.GetTick(); tick != nil {
				counts[tick.Tick.TradeId]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return counts
}

// What could not be read and now can enters the log once, whatever was there before and however often it is tried.
func TestDeadLettersAreReadAgainOnce(t *testing.T) {
	cfg, client := deadKraken(t)
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	letter := func(at time.Time, payload []byte, change func(*eventsv1.DeadLetter)) int64 {
		l := &eventsv1.DeadLetter{Reason: "undecodable", Source: "kraken", AdapterVersion: 1, Payload: payload, IngestTime: at.UnixNano()}
		if change != nil {
			change(l)
		}
		return writeValue(t, client, schemas.TopicTicksRawDead, 0, &eventsv1.DeadRecord{Letter: l})
	}
	refused := &eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{
		Venue: "kraken", Symbol: "BTC/USD", Base: "BTC", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE, TradeId: "4",
		EventId: []byte("sixteen bytes id"), Price: "1004.5", Size: "1", EventTime: then.UnixNano(), IngestTime: then.UnixNano(),
	}}}
	raw, err := refused.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	byProcessor := func(l *eventsv1.DeadLetter) {
		l.Topic, l.Partition, l.Offset, l.Reason = schemas.TopicTicksRaw, 3, 77, "absurd"
	}

	two := letter(then, krakenTrades(then, 1, 2), nil)
	overlap := letter(then, krakenTrades(then, 2, 3), nil)
	first := letter(then, raw, byProcessor)
	letter(then, raw, byProcessor) // its duplicate
	garbage := letter(then, []byte(`{"channel":"trade","data":7}`), nil)
	part := letter(then, krakenTrades(then, 5), func(l *eventsv1.DeadLetter) { l.Truncated = true })
	recent := letter(time.Now(), krakenTrades(time.Now(), 6), nil)
	expired := letter(then.AddDate(0, 0, -30), krakenTrades(then.AddDate(0, 0, -30), 7), nil)
	died := letter(then, krakenTrades(then, 8), nil)
	unlisted := letter(then, bytes.ReplaceAll(krakenTrades(then, 9), []byte("BTC/USD"), []byte("ABC/USD")), nil)

	// A retry that was killed had written its tick already.
	kraken, _ := exchanges.Find("kraken")
	list := adapter.Index([]adapter.Instrument{{Symbol: "BTC/USD", Base: "BTC", Quote: "USD"}})
	everything := func(adapter.Instrument) bool { return true }
	ticks, err := adapter.Redecode(&kraken, list, everything, &eventsv1.DeadLetter{Payload: krakenTrades(then, 8), IngestTime: then.UnixNano()})
	if err != nil || len(ticks) != 1 {
		t.Fatalf("reading a frame again: %v, %v", ticks, err)
	}
	writeValue(t, client, schemas.TopicTicksRaw, 0, &eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: ticks[0]}})

	retry := func(args ...string) (outcomes map[int64]string, sum operations.RetrySum) {
		t.Helper()
		var out, errs bytes.Buffer
		app := command.Runtime{Stdout: &out, Stderr: &errs, Env: []string{"MARKETLOG_DATA_DIR=" + cfg.DataDir}}
		if code := Execute(t.Context(), &app, append([]string{"dead", "retry", "-o", "json"}, args...)); code != 0 {
			t.Fatalf("dead retry %v exits with %d: %s", args, code, &errs)
		}
		outcomes = map[int64]string{}
		for line := range strings.Lines(out.String()) {
			var l operations.RetryLine
			if strings.HasPrefix(line, `{"letters"`) {
				if err := json.Unmarshal([]byte(line), &sum); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			outcomes[l.Offset] = fmt.Sprintf("%s %d", l.Outcome, l.Ticks)
		}
		return outcomes, sum
	}
	expect := func(what string, got, want map[int64]string) {
		t.Helper()
		for offset, outcome := range want {
			if got[offset] != outcome {
				t.Errorf("%s, letter %d: got %q, want %q", what, offset, got[offset], outcome)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d letters, want %d: %v", what, len(got), len(want), got)
		}
	}
	all := map[int64]string{
		two: "retried 2", overlap: "retried 1", first: "retried 1", died: "retried 0",
		garbage: "refused 0", part: "refused 0", unlisted: "refused 0", recent: "recent 0", expired: "expired 0",
	}
	got, sum := retry("--dry-run")
	expect("in a dry run", got, all)
	if sum.Ticks != 4 || sum.Letters != 9 {
		t.Errorf("the dry run counts %+v, want 4 ticks of 9 letters", sum)
	}
	if counts := ticksInLog(t, cfg, client); len(counts) != 1 {
		t.Errorf("after a dry run the log has the trades %v, want only the one that was there", counts)
	}
	got, _ = retry("--reason", "absurd", "--source", "kraken", "--since", then.UTC().Format(time.RFC3339))
	expect("by filters", got, map[int64]string{first: "retried 1"})
	delete(all, first)
	got, _ = retry()
	expect("the rest", got, all)
	for _, offset := range []int64{two, overlap, died} {
		delete(all, offset)
	}
	got, _ = retry()
	expect("again", got, all)

	counts := ticksInLog(t, cfg, client)
	for _, id := range []string{"1", "2", "3", "4", "8"} {
		if counts[id] != 1 {
			t.Errorf("trade %s is in ticks.v1 %d times, want once", id, counts[id])
		}
	}
	if len(counts) != 5 {
		t.Errorf("ticks.v1 has the trades %v, want five", counts)
	}
	if got := ask(t, cfg, "SELECT arraySort(groupArray((trade_id, coin_id))) FROM v_ticks"); got != "[('1','bitcoin'),('2','bitcoin'),('3','bitcoin'),('4','bitcoin'),('8','bitcoin')]" {
		t.Errorf("the view has %s", got)
	}
	want := fmt.Sprintf("[(%d,2),(%d,1),(%d,1),(%d,0)]", two, overlap, first, died)
	marked := func() string {
		return ask(t, cfg, "SELECT arraySort(groupArray((log_offset, retried_ticks))) FROM v_dead_letters WHERE retried_at IS NOT NULL")
	}
	for deadline := time.Now().Add(time.Minute); marked() != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("marked letters: %s, want %s", marked(), want)
		}
	}
	var errs bytes.Buffer
	app := command.Runtime{Stdout: &errs, Stderr: &errs, Env: []string{"MARKETLOG_DATA_DIR=" + cfg.DataDir}}
	if code := Execute(t.Context(), &app, []string{"dead", "retry", "--reason", "ugly"}); code != 1 || !strings.Contains(errs.String(), "undecodable") {
		t.Errorf("an unknown reason exits with %d: %s, want the known ones", code, &errs)
	}
}
