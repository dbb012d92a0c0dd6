package limits

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/marketlog/marketlog/stream"
)

// LeaseStore is what replicas share of the limits of budgets: who they are, and pools from which each of them is granted what
// it may admit. All times are the store's, which must not jump. Safe for concurrent use.
type LeaseStore struct {
	client redis.UniversalClient
}

// NewLeaseStore uses an open client, which stays the caller's. Its timeouts bound every call.
func NewLeaseStore(client redis.UniversalClient) *LeaseStore { return &LeaseStore{client: client} }

//go:embed heartbeat.lua
var beatSource string

//go:embed bucket.lua
var poolSource string

var (
	beatScript = redis.NewScript(beatSource)
	poolScript = redis.NewScript(poolSource)
)

// The braces keep both keys of a beat in one slot of a cluster; a pool's name has braces of its own.
const (
	limitsPrefix = "marketlog:limits:"
	replicasKey  = limitsPrefix + "{replicas}"
	recallsKey   = replicasKey + ":recalls"
)

// Heartbeat is what a replica reports several times a second. A share n means 1/n of every limit, 0 for none: as much it may
// admit without asking.
type Heartbeat struct {
	Replica string
	// Seq is greater in each later beat: one that comes late changes nothing.
	Seq        int64
	Have, Want int
	// Leaves means that the replica ends, Behind that it has not reported to the pools yet what it admitted while it was away;
	// Replaces names one that ended without a word.
	Leaves   bool
	Behind   bool
	Replaces string
	// Recall are pools of which others are to give back what they do not need, or to join.
	Recall []Revocation
}

// Revocation names a bucket and its limit, for replicas that do not know it.
type Revocation struct {
	Pool  string
	Limit int64
}

// Replicas is the answer to a beat.
type Replicas struct {
	// Now is the store's time in ms when it answered.
	Now int64
	// Share is what the replica has from then on, From the store's time in ms from which it may use it.
	Share   int
	From    int64
	Members []Member
	// Recalls are those of the last second.
	Recalls []Revocation
}

// Member is a replica.
type Member struct {
	ID string
	// Age is the time since its last beat.
	Age time.Duration
	// Share is the largest that it may be using, or may have used within the last minute.
	Share int
	// Left means that it ended, and may only have used something before; Behind that it has not reported all yet.
	Left, Behind bool
}

// How a replica is.
const (
	left   = 1
	behind = 2
)

// ErrOvertaken means that a later request of the same replica was answered before.
var ErrOvertaken = errors.New("a later request was answered before")

// Heartbeat announces a replica to the others and returns who they are.
func (l *LeaseStore) Heartbeat(ctx context.Context, b Heartbeat) (Replicas, error) {
	state := 0
	switch {
	case b.Leaves:
		state = left
	case b.Behind:
		state = behind
	}
	args := []any{b.Replica, b.Seq, b.Have, b.Want, state, b.Replaces}
	for _, r := range b.Recall {
		args = append(args, r.Pool+" "+strconv.FormatInt(r.Limit, 10))
	}
	reply, err := beatScript.Run(ctx, l.client, []string{replicasKey, recallsKey}, args...).Slice()
	if err != nil {
		return Replicas{}, fmt.Errorf("%w: notifying the replicas: %w", stream.ErrUnavailable, err)
	}
	r := reader{values: reply}
	answer := Replicas{Now: r.integer()}
	switch {
	case len(reply) > 1:
	case b.Leaves:
		return answer, r.err
	default:
		return Replicas{}, ErrOvertaken
	}
	answer.Share, answer.From = int(r.integer()), r.integer()
	members := reader{values: r.list(), err: r.err}
	for len(members.values) > 0 {
		m := Member{ID: members.text(), Age: time.Duration(members.integer()) * time.Millisecond, Share: int(members.integer())}
		state := members.integer()
		m.Left, m.Behind = state == left, state == behind
		answer.Members = append(answer.Members, m)
	}
	r.err = members.err
	for _, value := range r.list() {
		text, _ := value.(string)
		pool, limit, _ := strings.Cut(text, " ")
		limited := reader{values: []any{limit}, err: r.err}
		answer.Recalls = append(answer.Recalls, Revocation{pool, limited.integer()})
		r.err = limited.err
	}
	return answer, r.err
}

// Month is the width of the only bucket of a pool that counts to its end.
const Month = 0

// LeaseRequest asks a pool.
type LeaseRequest struct {
	Replica string
	Pool    string
	// Seq is greater in each later request of the replica to the pool.
	Seq   int64
	Limit int64
	// Width is that of a bucket, Span how long one counts after its end; both in whole ms. Width may be Month.
	Width, Span time.Duration
	// Hold is what was granted and is not spent, Want how much more is welcome.
	Hold, Want int64
	// Inside means that the replica believes to be in the pool; Leaves that it would leave, to use Share outside of it.
	Inside, Leaves bool
	Share          int64
	// Admitted is all that it admitted within the window, by bucket of the store's time.
	Admitted []Count
	Others   []Other
	// Gone is what it knows that replicas used which are no more.
	Gone int64
	// Keep is for how long the pool is kept after the last request.
	Keep time.Duration
}

// Count is how many requests were admitted within a bucket.
type Count struct{ Bucket, Admitted int64 }

// Other is another replica, and how much of the limit it may use outside of the pool.
type Other struct {
	ID    string
	Share int64
	// Silent means that nothing was received of it lately, Left that it ended, Since how long that has been known.
	Silent, Left bool
	Since        time.Duration
}

// LeaseAnswer is a pool's.
type LeaseAnswer struct {
	// Now is the store's time in ms.
	Now int64
	// Left means that the replica is not in the pool any more.
	Left bool
	// Grant is what it may spend beside what it held; less than 0 if it must give back of that.
	Grant int64
	// Used is what all others used within the window, Elsewhere what those that answer hold or may use.
	Used, Elsewhere int64
	// Exclusive means that there is no other: it may use the whole limit until there is.
	Exclusive bool
	Gone      int64
	// Seconds is the others' use by the second of the store's time in which a bucket ended.
	Seconds []Count
}

// Acquire reports to a bucket what a replica did, and what it may do.
func (l *LeaseStore) Acquire(ctx context.Context, q LeaseRequest) (LeaseAnswer, error) {
	var others strings.Builder
	for _, o := range q.Others {
		state := "f"
		switch {
		case o.Left:
			state = "l" + strconv.FormatInt(o.Since.Milliseconds(), 10)
		case o.Silent:
			state = "s"
		}
		fmt.Fprintf(&others, "%s:%d:%s ", o.ID, o.Share, state)
	}
	args := []any{q.Replica, q.Seq, q.Limit, q.Width.Milliseconds(), q.Span.Milliseconds(), q.Hold, q.Want, flag(q.Inside), flag(q.Leaves), q.Share,
		encodeCounts(q.Admitted), others.String(), q.Gone, q.Keep.Milliseconds()}
	reply, err := poolScript.Run(ctx, l.client, []string{limitsPrefix + q.Pool}, args...).Slice()
	if err != nil {
		return LeaseAnswer{}, fmt.Errorf("%w: asking the pool %s: %w", stream.ErrUnavailable, q.Pool, err)
	}
	r := reader{values: reply}
	a := LeaseAnswer{Now: r.integer()}
	if len(reply) == 1 {
		return LeaseAnswer{}, ErrOvertaken
	}
	if a.Left = r.integer() == 1; a.Left {
		return a, r.err
	}
	a.Grant, a.Used, a.Elsewhere, a.Exclusive, a.Gone = r.integer(), r.integer(), r.integer(), r.integer() == 1, r.integer()
	for pair := range strings.FieldsSeq(r.text()) {
		second, n, _ := strings.Cut(pair, ":")
		pair := reader{values: []any{second, n}, err: r.err}
		a.Seconds = append(a.Seconds, Count{pair.integer(), pair.integer()})
		r.err = pair.err
	}
	return a, r.err
}

func encodeCounts(list []Count) string {
	var text []byte
	for _, c := range list {
		text = strconv.AppendInt(text, c.Bucket, 10)
		text = append(text, ':')
		text = strconv.AppendInt(text, c.Admitted, 10)
		text = append(text, ' ')
	}
	return string(text)
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// reader takes the values of a script's answer one after the other, and keeps the first fault.
type reader struct {
	values []any
	err    error
}

func (r *reader) next() any {
	if len(r.values) == 0 {
		r.fault()
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

func (r *reader) text() string {
	text, ok := r.next().(string)
	if !ok {
		r.fault()
	}
	return text
}

func (r *reader) integer() int64 {
	text := r.text()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.fault()
	}
	return int64(n)
}

func (r *reader) list() []any {
	list, ok := r.next().([]any)
	if !ok {
		r.fault()
	}
	return list
}

func (r *reader) fault() {
	if r.err == nil {
		r.err = errors.New("the store's reply does not match the script's")
	}
}
