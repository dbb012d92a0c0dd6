package limits

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"
)

// memoryStore does what the scripts of latest.Limits do, so fast that hours pass in seconds;
// TestTheMemoryStoreDoesWhatTheScriptsDo holds the two together.
type memoryStore struct {
	mu       sync.Mutex
	born     int64
	known    bool
	replicas map[string]*memoryReplica
	recalls  map[Revocation]int64
	pools    map[string]*memoryPool
}

type memoryReplica struct {
	seq, beat int64
	n, before int
	ends      int64
	gone      bool
	behind    bool
}

type memoryPool struct {
	lost, closed, gone, ends int64
	members                  map[string]memoryMember
}

type memoryMember struct {
	seq, at, held int64
	admitted      []Count
}

func newMemoryStore() *memoryStore {
	m := &memoryStore{}
	m.flush()
	return m
}

func (m *memoryStore) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.born, m.known = 0, false
	m.replicas, m.recalls, m.pools = map[string]*memoryReplica{}, map[Revocation]int64{}, map[string]*memoryPool{}
}

func weight(n int) float64 {
	if n == 0 {
		return 0
	}
	return 1 / float64(n)
}

func larger(a, b int) int {
	if weight(a) > weight(b) {
		return a
	}
	return b
}

// The times of the scripts, in ms.
const (
	scriptSpan, scriptForget, scriptSettle, scriptRecall, scriptRecover = 62_000, 300_000, 2_000, 1_000, 64_000
)

func (r *memoryReplica) lower(now int64, n int) {
	if weight(r.n) > weight(n) {
		if r.ends > now {
			r.before = larger(r.before, r.n)
		} else {
			r.before = r.n
		}
		r.ends = now + scriptSpan
	}
	r.n = n
}

func (r *memoryReplica) most(now int64) int {
	if r.ends > now {
		return larger(r.before, r.n)
	}
	return r.n
}

func (m *memoryStore) leave(now int64, id string) {
	r := m.replicas[id]
	if r == nil || r.gone {
		return
	}
	if r.lower(now, 0); r.ends > now {
		r.gone, r.behind = true, false
	} else {
		delete(m.replicas, id)
	}
}

func (m *memoryStore) Heartbeat(_ context.Context, b Heartbeat) (Replicas, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().UnixMilli()
	if m.born == 0 {
		m.born = now
	}
	for id, r := range m.replicas {
		if r.gone && r.ends <= now || !r.gone && id != b.Replica && now-r.beat > scriptForget {
			delete(m.replicas, id)
		}
	}
	if b.Replaces != "" && b.Replaces != b.Replica {
		m.leave(now, b.Replaces)
	}
	me := m.replicas[b.Replica]
	if me != nil && (me.gone || me.seq >= b.Seq) {
		if b.Leaves { // who leaves receives the time in any case
			return Replicas{Now: now}, nil
		}
		return Replicas{}, ErrOvertaken
	}
	if b.Leaves {
		m.leave(now, b.Replica)
		return Replicas{Now: now}, nil
	}
	if me == nil {
		me = &memoryReplica{n: b.Have}
		m.known = m.known || b.Have > 0
	}
	me.seq, me.beat, me.behind = b.Seq, now, b.Behind
	from := now
	if weight(b.Want) <= weight(b.Have) {
		me.lower(now, b.Want)
	} else {
		others := 0.0
		for id, r := range m.replicas {
			if id != b.Replica {
				others += weight(r.n)
				from = max(from, r.ends)
			}
		}
		if m.known && now-m.born < scriptSpan {
			from = max(from, m.born+scriptSpan)
		}
		if now-m.born >= scriptSettle && others+weight(b.Want) <= 1.000001 {
			me.n = b.Want
		} else {
			me.lower(now, b.Have)
		}
	}
	m.replicas[b.Replica] = me
	for _, r := range b.Recall {
		m.recalls[r] = now
	}
	reply := Replicas{Now: now, Share: me.n, From: from}
	for id, r := range m.replicas {
		reply.Members = append(reply.Members, Member{ID: id, Age: time.Duration(now-r.beat) * time.Millisecond, Share: r.most(now), Left: r.gone, Behind: r.behind})
	}
	for r, at := range m.recalls {
		if now-at > scriptRecall {
			delete(m.recalls, r)
			continue
		}
		reply.Recalls = append(reply.Recalls, r)
	}
	return reply, nil
}

func (m *memoryStore) Acquire(_ context.Context, q LeaseRequest) (LeaseAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().UnixMilli()
	width, span := q.Width.Milliseconds(), q.Span.Milliseconds()
	counted := func(bucket int64) bool { return width == Month || bucket*width+width+span > now }
	p := m.pools[q.Pool]
	if p == nil || p.ends <= now {
		p = &memoryPool{members: map[string]memoryMember{}}
	}
	mine, inside := p.members[q.Replica]
	if inside && mine.seq >= q.Seq {
		return LeaseAnswer{}, ErrOvertaken
	}
	others, count := map[string]Other{}, int64(1)
	for _, o := range q.Others {
		o.Silent = o.Silent || o.Left
		others[o.ID] = o
		if !o.Left {
			count++
		}
	}
	a := LeaseAnswer{Now: now}
	var reserved, theirs int64
	seconds := map[int64]int64{}
	for id, member := range p.members {
		if id == q.Replica {
			continue
		}
		sum := int64(0)
		for _, c := range member.admitted {
			if counted(c.Bucket) {
				sum += c.Admitted
				if width > 0 {
					seconds[int64(math.Ceil(float64((c.Bucket+1)*width)/1000))] += c.Admitted
				}
			}
		}
		a.Used += sum
		switch o, there := others[id]; {
		case there && o.Silent && !o.Left:
			reserved += max(member.held, o.Share)
		case there:
			reserved += member.held
			if !o.Silent {
				a.Elsewhere += member.held
			}
		default:
			if now-member.at < scriptRecover {
				reserved += member.held
			}
			theirs += sum
			if width > 0 && sum == 0 && now-member.at >= scriptRecover {
				delete(p.members, id)
			}
		}
	}
	if q.Inside && !inside {
		p.lost = now
	}
	recovers := p.lost > 0 && now-p.lost < scriptRecover
	for id, o := range others {
		if _, there := p.members[id]; there {
			continue
		}
		switch {
		case recovers && o.Left:
			p.closed = max(p.closed, now-o.Since.Milliseconds()+scriptRecover)
		case recovers:
			reserved += q.Limit
		default:
			reserved += o.Share
		}
		if !o.Silent && (recovers || o.Share > 0) {
			a.Elsewhere += max(1, o.Share)
		}
	}
	if width > 0 && now < p.closed {
		reserved += q.Limit
	}
	if recovers && q.Gone > p.gone+theirs {
		p.gone = q.Gone - theirs
	}
	a.Used += p.gone
	a.Gone = p.gone + theirs
	own := int64(0)
	for _, c := range q.Admitted {
		if counted(c.Bucket) {
			own += c.Admitted
		}
	}
	m.pools[q.Pool] = p
	if q.Leaves && !recovers && own <= q.Share && q.Limit-a.Used-reserved >= q.Share {
		delete(p.members, q.Replica)
		if len(p.members) == 0 && p.lost == 0 && p.gone == 0 {
			delete(m.pools, q.Pool)
		}
		return LeaseAnswer{Now: now, Left: true}, nil
	}
	free := q.Limit - a.Used - own - reserved - q.Hold
	a.Exclusive = len(others) == 0 && reserved == 0 && (width == Month || a.Used == 0)
	switch {
	case a.Exclusive:
		a.Grant = max(0, free)
	case free < 0:
		a.Grant = max(free, -q.Hold)
	case q.Want > 0 && free > 0:
		a.Grant = min(q.Want, max(1, free/(2*count)))
	}
	held := q.Hold + a.Grant
	if a.Exclusive {
		held = q.Limit
	}
	p.members[q.Replica] = memoryMember{q.Seq, now, held, q.Admitted}
	p.ends = now + q.Keep.Milliseconds()
	for second, n := range seconds {
		a.Seconds = append(a.Seconds, Count{Bucket: second, Admitted: n})
	}
	return a, nil
}

// forget drops the pools whose names begin so, as a part of a store that is lost.
func (m *memoryStore) forget(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.pools {
		if strings.HasPrefix(name, prefix) {
			delete(m.pools, name)
		}
	}
}
