package keys

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// TestKeysAreValidAndRevokedWithinTwoSeconds goes through a broker, as every process with a table does.
func TestKeysAreValidAndRevokedWithinTwoSeconds(t *testing.T) {
	addr := streamtest.Kfake(t)
	client, err := stream.Config{Brokers: []string{addr}, ClientID: "test"}.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopic(context.Background(), 1, 1, nil, schemas.TopicKeys); err != nil {
		t.Fatal(err)
	}
	pepper := NewPepper()
	issuer, err := NewIssuer(client, pepper, []string{"pro"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := issuer.Create(t.Context(), "pro", "before the table")
	if err != nil {
		t.Fatal(err)
	}
	tail := stream.NewTail(stream.TailConfig{Brokers: []string{addr}, Topic: schemas.TopicKeys})
	table, err := NewTable(pepper, tail.Waiting)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- tail.Run(ctx, func(rec stream.TailRecord) error { table.Follow(rec.Key, rec.Value); return nil })
	}()
	t.Cleanup(func() { cancel(); <-done })
	becomes := func(what, key string, want bool) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			if _, ok := table.Lookup([]byte(key), time.Now()); ok == want {
				return
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("%s is not so after a minute", what)
			}
		}
	}
	<-tail.CaughtUp()
	if _, ok := table.Lookup([]byte(before), time.Now()); !ok || table.Waiting() != "" {
		t.Errorf("after catching up the older key is not valid, or the table still waits: %q", table.Waiting())
	}
	key, rec, err := issuer.Create(t.Context(), "pro", "")
	if err != nil {
		t.Fatal(err)
	}
	becomes("the new key valid", key, true)
	if _, err := issuer.Revoke(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	becomes("the revoked key refused", key, false)
}
