package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/twmb/franz-go/pkg/kgo"
)

// KeyInput is what the verbs of keys take.
type KeyInput struct {
	ID      string        `json:"id,omitempty"`
	Plan    string        `json:"plan,omitempty"`
	Label   string        `json:"label,omitempty"`
	Overlap time.Duration `json:"overlap,omitempty"`
}

// KeyLine is one key as commands print it. Key is there only when it was just made.
type KeyLine struct {
	Key     string     `json:"key,omitempty"`
	ID      string     `json:"id"`
	Plan    string     `json:"plan"`
	Last4   string     `json:"last4"`
	Label   string     `json:"label,omitempty"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

func describeKey(key string, rec *eventsv1.KeyRecord) KeyLine {
	line := KeyLine{Key: key, ID: rec.Id, Plan: rec.Plan, Last4: rec.Last4, Label: rec.Label, Created: time.Unix(0, rec.Created).UTC()}
	if rec.Expires != 0 {
		expires := time.Unix(0, rec.Expires).UTC()
		line.Expires = &expires
	}
	return line
}

// keyVerbs issue, list and end keys.
func keyVerbs(in *instance.Instance) []admin.Command {
	verb := func(name string, run func(ctx context.Context, k *keyDesk, input KeyInput, emit func(any) error) error) admin.Command {
		return admin.Command{Name: name, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input KeyInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			desk, done, err := openKeys(ctx, in)
			if err != nil {
				return err
			}
			defer done()
			return run(ctx, desk, input, emit)
		}}
	}
	return []admin.Command{
		verb("keys.create", func(ctx context.Context, k *keyDesk, input KeyInput, emit func(any) error) error {
			key, rec, err := k.issuer.Create(ctx, input.Plan, input.Label)
			if err != nil {
				return err
			}
			awaitKey(ctx, in, rec)
			return emit(describeKey(key, rec))
		}),
		verb("keys.list", func(_ context.Context, k *keyDesk, _ KeyInput, emit func(any) error) error {
			for _, rec := range k.table.List() {
				if err := emit(describeKey("", rec)); err != nil {
					return err
				}
			}
			return nil
		}),
		verb("keys.sign", func(ctx context.Context, _ *keyDesk, _ KeyInput, emit func(any) error) error {
			signed, err := signKeys(ctx, in)
			if err != nil {
				return err
			}
			return emit(struct {
				Signed int `json:"signed"`
			}{signed})
		}),
		verb("keys.rotate", func(ctx context.Context, k *keyDesk, input KeyInput, emit func(any) error) error {
			rec, err := k.find(input.ID)
			if err != nil {
				return err
			}
			key, fresh, err := k.issuer.Rotate(ctx, rec, input.Overlap)
			if err != nil {
				return err
			}
			awaitKey(ctx, in, fresh)
			return emit(describeKey(key, fresh))
		}),
		verb("keys.revoke", func(ctx context.Context, k *keyDesk, input KeyInput, emit func(any) error) error {
			rec, err := k.find(input.ID)
			if err != nil {
				return err
			}
			ended, err := k.issuer.Revoke(ctx, rec)
			if err != nil {
				return err
			}
			awaitKey(ctx, in, ended)
			return emit(struct {
				Revoked string `json:"revoked"`
			}{rec.Id})
		}),
	}
}

// keyPatience bounds how long a command waits for the server of its process to read what was written of a key.
const keyPatience = 10 * time.Second

// awaitKey waits until the server of this process, if there is one, judges a key by its new record: who made a key uses it at once, and
// who ended one relies on that.
func awaitKey(ctx context.Context, in *instance.Instance, rec *eventsv1.KeyRecord) {
	table := in.Keys.Load()
	if table == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, keyPatience)
	defer stop()
	if err := table.Await(ctx, rec); err != nil {
		in.Log.Warn("a key was written and the server has not read it yet", "key", rec.Id, "duration", keyPatience, "error", err)
	}
}

// keyDesk is the log of keys, read to its end, and what writes to it.
type keyDesk struct {
	table  *keys.Table
	issuer *keys.Issuer
}

func (k *keyDesk) find(id string) (*eventsv1.KeyRecord, error) {
	rec, ok := k.table.Get(id)
	if !ok {
		return nil, fmt.Errorf("there is no key with id %q; `marketlog keys list` shows them", id)
	}
	return rec, nil
}

func openKeys(ctx context.Context, in *instance.Instance) (_ *keyDesk, done func(), err error) {
	pepper, err := in.Pepper()
	if err != nil {
		return nil, nil, err
	}
	table, err := keys.NewTable(pepper, func() string { return "" })
	if err != nil {
		return nil, nil, err
	}
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the log: %w", err)
	}
	if err := ReadAll(ctx, in.Stream, producer, schemas.TopicKeys, func(r *kgo.Record) error { table.Follow(r.Key, r.Value); return nil }); err != nil {
		producer.Close()
		return nil, nil, err
	}
	plans, err := in.Config.LoadPlans()
	if err != nil {
		producer.Close()
		return nil, nil, err
	}
	issuer, err := keys.NewIssuer(producer, pepper, slices.Sorted(maps.Keys(plans)), time.Now)
	if err != nil {
		producer.Close()
		return nil, nil, err
	}
	return &keyDesk{table, issuer}, producer.Close, nil
}

// keysSignedFile is there once the records of keys that an earlier version had written are signed.
const keysSignedFile = "keys.signed"

// CarryKeysOver signs, once in the life of a data directory, the keys that a version before signatures wrote into the
// embedded log. Where the log is a cluster's, `marketlog keys sign` does it when its operator says so.
func CarryKeysOver(ctx context.Context, in *instance.Instance) error {
	if len(in.Config.Kafka.Brokers) > 0 {
		return nil
	}
	done := in.Dir.Path(keysSignedFile)
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	signed, err := signKeys(ctx, in)
	if err != nil {
		return fmt.Errorf("signing the keys of an earlier version: %w", err)
	}
	if signed > 0 {
		in.Log.Info("signed keys written by an earlier version", "keys", signed)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		return fmt.Errorf("noting that the keys are signed: %w", err)
	}
	return nil
}

// signKeys signs the keys of which no record is signed, and returns how many there were.
func signKeys(ctx context.Context, in *instance.Instance) (signed int, err error) {
	pepper, err := in.Pepper()
	if err != nil {
		return 0, err
	}
	desk, done, err := openKeys(ctx, in)
	if err != nil {
		return 0, err
	}
	defer done()
	client, err := in.Stream.NewClient()
	if err != nil {
		return 0, fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	// The newest of each key, as it was valid before: nil where the key ended for good, or has a signed record.
	unsigned := map[string]*eventsv1.KeyRecord{}
	err = ReadAll(ctx, in.Stream, client, schemas.TopicKeys, func(r *kgo.Record) error {
		id := string(r.Key)
		if known, ok := unsigned[id]; ok && known == nil {
			return nil
		}
		if len(r.Value) == 0 || keys.Signed(pepper, r.Value) {
			unsigned[id] = nil
			return nil
		}
		if record, err := schemas.DecodeRecord(schemas.TopicKeys, r.Value); err == nil {
			if rec, ok := record.(*eventsv1.KeyRecord); ok && rec.Id == id {
				unsigned[id] = rec
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Sorted(maps.Keys(unsigned)) {
		if rec := unsigned[id]; rec != nil {
			if err := desk.issuer.Sign(ctx, rec); err != nil {
				return signed, err
			}
			signed++
		}
	}
	return signed, nil
}

// FirstKey makes a key of plan Pro if none was ever made, so that the first request of a new installation can be served;
// else it returns nothing.
func FirstKey(ctx context.Context, in *instance.Instance) (string, error) {
	desk, done, err := openKeys(ctx, in)
	if err != nil {
		return "", err
	}
	defer done()
	if len(desk.table.List()) > 0 {
		return "", nil
	}
	key, _, err := desk.issuer.Create(ctx, limits.PlanPro, "made on the first start")
	return key, err
}

// ReadAll visits what a topic of one partition holds now.
func ReadAll(ctx context.Context, log stream.Config, client *kgo.Client, topic string, visit func(*kgo.Record) error) error {
	starts, ends, err := stream.Bounds(ctx, client, topic)
	if err != nil {
		return err
	}
	return stream.ReadRange(ctx, log, topic, 0, starts[topic][0], ends[topic][0], visit)
}
