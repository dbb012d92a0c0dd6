package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// keyring is an operator who makes API keys, one after the other, while the instance is killed.
type keyring struct {
	binary, dir string
	records     string // the file of acknowledged records

	mu   sync.Mutex
	made map[string]bool // the ids of those that were handed out
}

func newKeyring(binary string, in *instance) *keyring {
	return &keyring{binary: binary, dir: in.dir, records: in.acks + ".records", made: map[string]bool{}}
}

// create makes one more key. What fails was never handed out, and may be there or not.
func (k *keyring) create(ctx context.Context) {
	command := exec.CommandContext(ctx, k.binary, "keys", "create", "--plan", "free", "-o", "json", "--data-dir", k.dir)
	command.Env = append(os.Environ(), "MARKETLOG_ACK_RECORDS="+k.records)
	out, err := command.Output()
	var key struct{ ID, Key string }
	if err != nil || json.Unmarshal(out, &key) != nil || key.Key == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made[key.ID] = true
}

// check asks whether every key that was handed out is known. One more is made where the kills left time for none.
func (k *keyring) check(t *testing.T) {
	t.Helper()
	if len(k.made) == 0 {
		k.create(t.Context())
	}
	out, err := exec.CommandContext(t.Context(), k.binary, "keys", "list", "-o", "json", "--data-dir", k.dir).Output()
	if err != nil {
		t.Fatalf("listing the keys: %v", err)
	}
	listed := map[string]bool{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var key struct{ ID string }
		if err := decoder.Decode(&key); err != nil {
			t.Fatalf("reading the keys: %v\n%s", err, out)
		}
		listed[key.ID] = true
	}
	for id := range k.made {
		if !listed[id] {
			t.Errorf("the key %s was handed out and is not known", id)
		}
	}
	if len(k.made) == 0 {
		t.Error("no key was made")
	}
	t.Logf("%d keys made, %d known", len(k.made), len(listed))
}

// usage reads v_usage, which is kept from the SQL port.
func (k *keyring) usage(ctx context.Context) (map[string]uint64, error) {
	const statement = "SELECT toString(day) AS day, budget, plan, requests FROM v_usage FORMAT JSONEachRow"
	out, err := exec.CommandContext(ctx, k.binary, "sql", statement, "--data-dir", k.dir).Output()
	if err != nil {
		return nil, fmt.Errorf("asking for v_usage: %w", err)
	}
	requests := map[string]uint64{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var row struct {
			Day, Budget, Plan string
			Requests          json.Number
		}
		if err := decoder.Decode(&row); err != nil {
			return nil, fmt.Errorf("reading v_usage: %w in %s", err, out)
		}
		n, err := row.Requests.Int64()
		if err != nil {
			return nil, fmt.Errorf("reading v_usage: %w", err)
		}
		requests[row.Day+" "+row.Budget+" "+row.Plan] = uint64(n)
	}
	return requests, nil
}

// checkUsage asks whether v_usage is what usage.v1 holds: of each process the last count of a budget's day. Readers may go on, and be
// counted each second: the view lies between what the log held before it was asked and what it held after.
func (s *scene) checkUsage(k *keyring) {
	s.t.Helper()
	var total uint64
	eventually(s.t, "the usage as the log has it", time.Minute, func() error {
		before, err := s.loggedUsage()
		if err != nil {
			return err
		}
		got, err := k.usage(s.t.Context())
		if err != nil {
			return err
		}
		after, err := s.loggedUsage()
		if err != nil {
			return err
		}
		total = 0
		for of, n := range got {
			if n > after[of] {
				return fmt.Errorf("v_usage has %d of %s, and the log %d", n, of, after[of])
			}
			total += n
		}
		for of, n := range before {
			if got[of] < n {
				return fmt.Errorf("v_usage has %d of %s, and the log %d", got[of], of, n)
			}
		}
		if total == 0 {
			return errors.New("no request is counted")
		}
		return nil
	})
	s.t.Logf("%d requests counted", total)
}

// loggedUsage is what v_usage should have of what the log holds now.
func (s *scene) loggedUsage() (map[string]uint64, error) {
	log, err := oracle.Read(s.t.Context(), s.in.kafka, schemas.TopicUsage)
	if err != nil {
		return nil, err
	}
	last := map[string]*eventsv1.UsageRecord{}
	for _, records := range log {
		for _, r := range records {
			rec := &eventsv1.UsageRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return nil, fmt.Errorf("decoding the record %d: %w", r.Offset, err)
			}
			of := fmt.Sprint(rec.Replica, "|", rec.Budget, "|", rec.Plan, "|", rec.Day)
			if last[of] == nil || rec.Number > last[of].Number {
				last[of] = rec
			}
		}
	}
	requests := map[string]uint64{}
	for _, rec := range last {
		requests[time.Unix(0, rec.Day).UTC().Format(time.DateOnly)+" "+rec.Budget+" "+rec.Plan] += rec.Requests
	}
	return requests, nil
}
