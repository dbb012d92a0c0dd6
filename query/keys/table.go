package keys

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Table holds the keys in memory, as the log of keys holds them. It implements query.Keyring. Safe
// for concurrent use.
type Table struct {
	waiting func() string
	pepper  []byte
	refused atomic.Uint64
	hashers sync.Pool // of *hasher under the pepper

	mu     sync.RWMutex
	byID   map[string]*eventsv1.KeyRecord
	byHash map[[sha256.Size]byte]*eventsv1.KeyRecord
	// ended are the ids whose keys ended for good.
	ended map[string]bool
	// changed is closed once the table holds more than it did.
	changed chan struct{}
}

// hasher holds what hashing a key needs, so that a look-up allocates nothing.
type hasher struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// NewTable makes an empty table. Waiting says why the log was not read to its end yet, empty when it
// was; the tail that feeds Apply knows.
func NewTable(pepper []byte, waiting func() string) (*Table, error) {
	if err := checkPepper(pepper); err != nil {
		return nil, err
	}
	t := &Table{waiting: waiting, byID: map[string]*eventsv1.KeyRecord{}, byHash: map[[sha256.Size]byte]*eventsv1.KeyRecord{}, ended: map[string]bool{}, changed: make(chan struct{})}
	pepper = slices.Clone(pepper)
	t.pepper = pepper
	t.hashers.New = func() any { return &hasher{mac: hmac.New(sha256.New, pepper)} }
	return t, nil
}

// Waiting reports why keys cannot be judged yet.
func (t *Table) Waiting() string { return t.waiting() }

// Lookup reports what a key grants. Keys are found by their peppered hash, so the time that it takes
// reveals nothing about any stored key.
func (t *Table) Lookup(key []byte, now time.Time) (query.Grant, bool) {
	if !WellFormed(key) {
		return query.Grant{}, false
	}
	h := t.hashers.Get().(*hasher)
	h.mac.Reset()
	h.mac.Write(key)
	h.mac.Sum(h.sum[:0])
	sum := h.sum
	t.hashers.Put(h)

	t.mu.RLock()
	rec := t.byHash[sum]
	t.mu.RUnlock()
	if rec == nil || !valid(rec, now) {
		return query.Grant{}, false
	}
	return query.Grant{KeyID: rec.Id, Plan: rec.Plan, Budget: rec.Budget}, true
}

// Valid reports whether the key with an id is still valid at a time.
func (t *Table) Valid(id string, now time.Time) bool {
	rec, ok := t.Get(id)
	return ok && valid(rec, now)
}

// Grant reports what the key with an id grants at a time; false for one that is unknown, expired or revoked.
func (t *Table) Grant(id string, now time.Time) (query.Grant, bool) {
	rec, ok := t.Get(id)
	if !ok || !valid(rec, now) {
		return query.Grant{}, false
	}
	return query.Grant{KeyID: rec.Id, Plan: rec.Plan, Budget: rec.Budget}, true
}

func valid(rec *eventsv1.KeyRecord, now time.Time) bool {
	return rec.Expires == 0 || now.UnixNano() < rec.Expires
}

// Follow takes one record of keys.v1 as it is in the log; an empty value ends the key for good. What is not a record of a key
// changes nothing, nor does a record without the signature of this installation: whoever can write into the log cannot
// grant rights thereby.
func (t *Table) Follow(key, value []byte) {
	if len(value) == 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.remove(string(key))
		t.ended[string(key)] = true
		t.notify()
		return
	}
	record, err := schemas.DecodeRecord(schemas.TopicKeys, value)
	if err != nil {
		return // the sink of the topic reports it
	}
	rec, ok := record.(*eventsv1.KeyRecord)
	if !ok {
		return
	}
	if verify(t.pepper, value) != nil {
		t.refused.Add(1)
		return
	}
	t.Apply(rec)
}

// Refused counts the records without a right signature, and those that would have revived a key.
func (t *Table) Refused() uint64 { return t.refused.Load() }

// Apply takes one record of the log of keys; a later one of the same key replaces it, unless it would let the key live
// longer: an issuer never writes that, so it is an older record that somebody wrote again. The table keeps the record.
func (t *Table) Apply(rec *eventsv1.KeyRecord) {
	if len(rec.Hash) != sha256.Size {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byID[rec.Id]; old != nil && old.Expires != 0 && (rec.Expires == 0 || rec.Expires > old.Expires) || t.ended[rec.Id] {
		t.refused.Add(1)
		return
	}
	t.remove(rec.Id)
	t.byID[rec.Id] = rec
	t.byHash[[sha256.Size]byte(rec.Hash)] = rec
	t.notify()
}

// notify wakes those who await a record, under the lock.
func (t *Table) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Await returns once the table has read a record: the key is known, and ends when the record reports it or before. Its error is the
// context's.
func (t *Table) Await(ctx context.Context, rec *eventsv1.KeyRecord) error {
	for {
		t.mu.RLock()
		known, ended, changed := t.byID[rec.Id], t.ended[rec.Id], t.changed
		t.mu.RUnlock()
		if ended || known != nil && (rec.Expires == 0 || known.Expires != 0 && known.Expires <= rec.Expires) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *Table) remove(id string) {
	if old := t.byID[id]; old != nil {
		delete(t.byHash, [sha256.Size]byte(old.Hash))
		delete(t.byID, id)
	}
}

// Get returns the record of a key id, which must not be changed.
func (t *Table) Get(id string) (*eventsv1.KeyRecord, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rec, ok := t.byID[id]
	return rec, ok
}

// List returns all records by time of creation; they must not be changed.
func (t *Table) List() []*eventsv1.KeyRecord {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*eventsv1.KeyRecord, 0, len(t.byID))
	for _, rec := range t.byID {
		list = append(list, rec)
	}
	slices.SortFunc(list, func(a, b *eventsv1.KeyRecord) int {
		if a.Created != b.Created {
			if a.Created < b.Created {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Id, b.Id)
	})
	return list
}
