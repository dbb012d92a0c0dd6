package keys

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// producer is what an Issuer needs of a franz-go client.
type producer interface {
	ProduceSync(ctx context.Context, records ...*kgo.Record) kgo.ProduceResults
}

// Issuer writes the log of keys. A key is valid wherever the log is followed once its record was
// read there, well within two seconds.
type Issuer struct {
	producer producer
	pepper   []byte
	plans    []string
	now      func() time.Time
}

// NewIssuer makes an issuer. Plans names the plans that keys may have. The producer must write to
// the partition that a record names.
func NewIssuer(p producer, pepper []byte, plans []string, now func() time.Time) (*Issuer, error) {
	if err := checkPepper(pepper); err != nil {
		return nil, err
	}
	return &Issuer{producer: p, pepper: slices.Clone(pepper), plans: slices.Clone(plans), now: now}, nil
}

// Create issues a key with a budget of its own. The key itself is returned here and never again.
func (i *Issuer) Create(ctx context.Context, plan, label string) (key string, rec *eventsv1.KeyRecord, err error) {
	if !slices.Contains(i.plans, plan) {
		return "", nil, fmt.Errorf("plan %q must be one of %s", plan, strings.Join(i.plans, ", "))
	}
	id := newID()
	return i.issue(ctx, &eventsv1.KeyRecord{Id: id, Plan: plan, Budget: id, Label: label})
}

// Rotate issues a key with the plan and the budget of another, which stays valid for the overlap.
func (i *Issuer) Rotate(ctx context.Context, old *eventsv1.KeyRecord, overlap time.Duration) (key string, rec *eventsv1.KeyRecord, err error) {
	if !valid(old, i.now()) {
		return "", nil, fmt.Errorf("key %s is not valid any more", old.Id)
	}
	key, rec, err = i.issue(ctx, &eventsv1.KeyRecord{Id: newID(), Plan: old.Plan, Budget: old.Budget, Label: old.Label})
	if err != nil {
		return "", nil, err
	}
	if _, err := i.expire(ctx, old, i.now().Add(overlap)); err != nil {
		return "", nil, fmt.Errorf("letting the old key expire: %w", err)
	}
	return key, rec, nil
}

// Revoke ends a key now. It returns the record that reports it.
func (i *Issuer) Revoke(ctx context.Context, rec *eventsv1.KeyRecord) (*eventsv1.KeyRecord, error) {
	return i.expire(ctx, rec, i.now())
}

// Sign writes a record again that has no signature: one of a version before there were any.
func (i *Issuer) Sign(ctx context.Context, rec *eventsv1.KeyRecord) error { return i.write(ctx, rec) }

func (i *Issuer) issue(ctx context.Context, rec *eventsv1.KeyRecord) (string, *eventsv1.KeyRecord, error) {
	key := Generate()
	hash := Hash(i.pepper, []byte(key))
	rec.Hash, rec.Last4, rec.Created = hash[:], key[len(key)-4:], i.now().UnixNano()
	if err := i.write(ctx, rec); err != nil {
		return "", nil, err
	}
	return key, rec, nil
}

// expire ends a key at a time, or before, where it already would have ended.
func (i *Issuer) expire(ctx context.Context, rec *eventsv1.KeyRecord, at time.Time) (*eventsv1.KeyRecord, error) {
	ended := proto.CloneOf(rec)
	if ended.Expires == 0 || at.UnixNano() < ended.Expires {
		ended.Expires = at.UnixNano()
	}
	return ended, i.write(ctx, ended)
}

func (i *Issuer) write(ctx context.Context, rec *eventsv1.KeyRecord) error {
	value, err := Encode(i.pepper, rec)
	if err != nil {
		return err
	}
	record := &kgo.Record{Topic: schemas.TopicKeys, Key: []byte(rec.Id), Value: value, Timestamp: i.now()}
	if err := i.producer.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("writing key %s: %w", rec.Id, err)
	}
	return nil
}

// newID names a key in lists and logs; it is not a secret.
func newID() string { return "key_" + strings.ToLower(rand.Text()[:12]) }
