package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// User is who may write into the embedded log and administer it, with BrokerConfig.Password by SASL PLAIN. Everybody else,
// without a login, may read the topics, describe everything, and have consumer groups of names that are not the owner's.
const User = "marketlog"

// maxRequest bounds a request: the broker makes room for all of one before it reads it. The largest that clients send is a
// batch of about a megabyte for each of some partitions.
const maxRequest = 128 << 20

// gateOptions close the broker to all but User. The settings last: a broker that is opened again has them as they are here.
func gateOptions(cfg BrokerConfig) []kfake.Opt {
	return []kfake.Opt{
		kfake.EnableACLs(),
		kfake.Superuser("PLAIN", User, cfg.Password),
		kfake.MaxVersions(spokenVersions()),
	}
}

// spokenVersions are the requests that the broker answers as Apache Kafka's own clients expect it.
func spokenVersions() *kversion.Versions {
	v := kversion.Stable()
	// The broker answers it with null where the Java client wants a list; without it that asks for metadata.
	v.SetMaxKeyVersion(kmsg.DescribeTopicPartitions.Int16(), -1)
	// From version 5 on groups are filtered by their type, which the broker spells otherwise than the Java client.
	v.SetMaxKeyVersion(kmsg.ListGroups.Int16(), 4)
	return v
}

// forgetLogins removes what an earlier broker kept of logins and rights, so that those of this start count. The broker
// writes the password down too, which is nowhere to lie but in its own file.
func forgetLogins(dir string) error {
	for _, name := range []string{"sasl.json", "acls.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the logins of an earlier start: %w", err)
		}
	}
	return nil
}

// openReading lets everybody read. Until then nobody but User can do anything.
func openReading(ctx context.Context, addr string, cfg BrokerConfig) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID("marketlog"), kgo.SASL(plain.Auth{User: User, Pass: cfg.Password}.AsMechanism()))
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer client.Close()
	everybody := func() *kadm.ACLBuilder { return kadm.NewACLs().Allow("User:*").AllowHosts("*") }
	nobody := func() *kadm.ACLBuilder { return kadm.NewACLs().Deny("User:*").DenyHosts("*") }
	rights := []*kadm.ACLBuilder{
		everybody().Topics("*").Operations(kadm.OpRead, kadm.OpDescribe, kadm.OpDescribeConfigs),
		everybody().Groups("*").Operations(kadm.OpRead, kadm.OpDescribe, kadm.OpDelete),
		everybody().Clusters().Operations(kadm.OpDescribe, kadm.OpDescribeConfigs),
	}
	if len(cfg.OwnGroups) > 0 {
		rights = append(rights, nobody().Groups(cfg.OwnGroups...).Operations(kadm.OpRead, kadm.OpDelete))
	}
	if len(cfg.OwnGroupPrefixes) > 0 {
		rights = append(rights, nobody().Groups(cfg.OwnGroupPrefixes...).ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpRead, kadm.OpDelete))
	}
	for _, r := range rights {
		results, err := kadm.NewClient(client).CreateACLs(ctx, r)
		for _, result := range results {
			err = cmp.Or(err, result.Err)
		}
		if err != nil {
			return fmt.Errorf("opening the log for readers: %w", err)
		}
	}
	return nil
}

// writing are the requests that change the log, its topics, its settings or what others have of them. The broker refuses
// those of who is not User; here they are logged.
var writing = map[int16]bool{
	kmsg.Produce.Int16(): true, kmsg.CreateTopics.Int16(): true, kmsg.DeleteTopics.Int16(): true, kmsg.DeleteRecords.Int16(): true,
	kmsg.InitProducerID.Int16(): true, kmsg.AddPartitionsToTxn.Int16(): true, kmsg.AddOffsetsToTxn.Int16(): true,
	kmsg.EndTxn.Int16(): true, kmsg.WriteTxnMarkers.Int16(): true, kmsg.TxnOffsetCommit.Int16(): true,
	kmsg.CreateACLs.Int16(): true, kmsg.DeleteACLs.Int16(): true, kmsg.AlterConfigs.Int16(): true, kmsg.AlterReplicaLogDirs.Int16(): true,
	kmsg.CreatePartitions.Int16(): true, kmsg.ElectLeaders.Int16(): true, kmsg.IncrementalAlterConfigs.Int16(): true,
	kmsg.AlterPartitionAssignments.Int16(): true, kmsg.AlterClientQuotas.Int16(): true, kmsg.AlterUserSCRAMCredentials.Int16(): true,
	kmsg.UpdateFeatures.Int16(): true,
}

// gate is the listener of the broker. It ends connections whose bytes would end the broker, which trusts its clients: a
// request of a kind that does not exist, or larger than memory. And it logs refused writes.
type gate struct {
	net.Listener
	password []byte
	log      *slog.Logger

	mu sync.Mutex
	// reported is when a refusal was last logged, by host and kind of request.
	reported map[refusal]time.Time
}

type refusal struct {
	host string
	key  int16
}

// Bounds of what is logged of refusals: each kind once in refusalEvery by host, and of so many at a time at most.
const (
	refusalEvery = time.Minute
	mostRefusals = 1_000
)

func newGate(listener net.Listener, password string, log *slog.Logger) *gate {
	return &gate{Listener: listener, password: []byte(password), log: log, reported: map[refusal]time.Time{}}
}

// Accept waits for the next connection.
func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: conn, gate: g}, nil
}

// refused logs a request that the broker refuses.
func (g *gate) refused(from net.Addr, key int16, client string) {
	if g.log == nil {
		return
	}
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		host = from.String()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	id := refusal{host, key}
	if at, ok := g.reported[id]; ok && now.Sub(at) < refusalEvery {
		return
	}
	if len(g.reported) >= mostRefusals {
		for old, at := range g.reported {
			if now.Sub(at) >= refusalEvery {
				delete(g.reported, old)
			}
		}
		if len(g.reported) >= mostRefusals {
			return
		}
	}
	g.reported[id] = now
	g.log.Warn("rejected a request on the Kafka port, which is read-only without a login", "request", kmsg.NameForKey(key), "client", client, "from", from.String())
}

// headLength is how much of a request is looked at: its header and, of a login, the password.
const headLength = 512

// gatedConn is a connection of the broker, which reads it from one goroutine at a time: four bytes of length, then the
// request.
type gatedConn struct {
	net.Conn
	gate *gate
	// head is the begin of the request that is read, left what is still to come of it; size holds its length until that is
	// whole.
	head  []byte
	size  []byte
	left  int
	known bool // whether head was looked at
	own   bool // whether User has logged in
}

var errNoRequest = errors.New("what came is not a request of a Kafka client")

// Read reads what the client sent.
func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if refused := c.look(p[:n]); refused != nil {
		return 0, refused
	}
	return n, err
}

func (c *gatedConn) look(read []byte) error {
	for len(read) > 0 {
		if c.left == 0 {
			take := min(4-len(c.size), len(read))
			c.size, read = append(c.size, read[:take]...), read[take:]
			if len(c.size) < 4 {
				return nil
			}
			length := binary.BigEndian.Uint32(c.size)
			if length < 8 || length > maxRequest {
				return errNoRequest
			}
			c.size, c.left, c.head, c.known = c.size[:0], int(length), c.head[:0], false
			continue
		}
		take := min(c.left, len(read))
		part := read[:take]
		read, c.left = read[take:], c.left-take
		if c.known {
			continue
		}
		c.head = append(c.head, part[:min(len(part), headLength-len(c.head))]...)
		if len(c.head) < headLength && c.left > 0 {
			continue
		}
		c.known = true
		if err := c.inspect(); err != nil {
			return err
		}
	}
	return nil
}

// inspect looks at the begin of a request.
func (c *gatedConn) inspect() error {
	key := int16(binary.BigEndian.Uint16(c.head))
	if kmsg.RequestForKey(key) == nil {
		return errNoRequest
	}
	if key == kmsg.SASLAuthenticate.Int16() && len(c.gate.password) > 0 && bytes.Contains(c.head, c.gate.password) {
		c.own = true // a wrong one ends the connection
	}
	if writing[key] && !c.own {
		c.gate.refused(c.RemoteAddr(), key, clientOf(c.head))
	}
	return nil
}

// clientOf is the client id in the header of a request, after its kind, version and number.
func clientOf(head []byte) string {
	if len(head) < 10 {
		return ""
	}
	length := int(int16(binary.BigEndian.Uint16(head[8:])))
	if length <= 0 || 10+length > len(head) {
		return ""
	}
	return string(head[10 : 10+min(length, 64)])
}
