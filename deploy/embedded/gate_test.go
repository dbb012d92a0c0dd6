package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/marketlog/marketlog/schemas"
)

// Without the password the log can be read, by groups too, and nothing of it can be changed: before and after a restart.
func TestWithoutAPasswordTheLogIsOnlyRead(t *testing.T) {
	dir := t.TempDir()
	topic := schemas.Topic{Name: "keys.v1", Partitions: 1, EmbeddedBytes: 1 << 20}
	for _, round := range []string{"first start", "restart"} {
		broker := startBroker(t, dir)
		addr := broker.Addr()
		if round == "first start" {
			createTopic(t, addr, topic)
			owner := connect(t, addr, kgo.DefaultProduceTopic(topic.Name))
			if err := owner.ProduceSync(t.Context(), kgo.StringRecord("one"), kgo.StringRecord("two")).FirstErr(); err != nil {
				t.Fatal(err)
			}
			commit := kadm.Offsets{}
			commit.AddOffset(topic.Name, 0, 2, -1)
			if err := kadm.NewClient(owner).CommitAllOffsets(t.Context(), "resolve", commit); err != nil {
				t.Fatal(err)
			}
		}
		refusesWrites(t, round, addr, topic.Name)
		wrong, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.SASL(plain.Auth{User: User, Pass: "guessed"}.AsMechanism()), kgo.RetryTimeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := wrong.Ping(t.Context()); err == nil {
			t.Errorf("%s: a wrong password logs in", round)
		}
		wrong.Close()

		reader := connectFrom(t, addr, kgo.ConsumerGroup("theirs-"+round), kgo.ConsumeTopics(topic.Name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		records := reader.PollRecords(ctx, 10).Records()
		if len(records) == 0 || string(records[0].Value) != "one" {
			t.Errorf("%s: read %v (%v), want the two records", round, records, ctx.Err())
		}
		if err := reader.CommitUncommittedOffsets(ctx); err != nil {
			t.Errorf("%s: committing to a group of one's own: %v", round, err)
		}
		cancel()
		reader.Close()
		if got := endOffset(t, addr, topic.Name); got != 2 {
			t.Errorf("%s: the topic ends at %d, want 2", round, got)
		}
		broker.Close()
	}
}

// refusesWrites tries what changes the log, and wants the right refusal of each.
func refusesWrites(t *testing.T, round, addr, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	anybody := connectFrom(t, addr, kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic(topic))
	defer anybody.Close()
	admin := kadm.NewClient(anybody)
	one := "1"
	offsets, ours := kadm.Offsets{}, kadm.Offsets{}
	offsets.AddOffset(topic, 0, 1, -1)
	ours.AddOffset(topic, 0, 0, -1)
	for what, test := range map[string]struct {
		do   func() error
		want error
	}{
		"produce": {func() error { return anybody.ProduceSync(ctx, kgo.StringRecord("three")).FirstErr() }, kerr.TopicAuthorizationFailed},
		"an idempotent producer": {func() error {
			request := kmsg.NewPtrInitProducerIDRequest()
			answer, err := request.RequestWith(ctx, anybody)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(answer.ErrorCode)
		}, kerr.ClusterAuthorizationFailed},
		"create a topic": {func() error {
			answer, err := admin.CreateTopic(ctx, 1, 1, nil, "weather")
			return errors.Join(err, answer.Err)
		}, kerr.TopicAuthorizationFailed},
		"delete a topic": {func() error {
			answer, err := admin.DeleteTopic(ctx, topic)
			return errors.Join(err, answer.Err)
		}, kerr.TopicAuthorizationFailed},
		"delete records": {func() error {
			answer, err := admin.DeleteRecords(ctx, offsets)
			return errors.Join(err, answer.Error())
		}, kerr.TopicAuthorizationFailed},
		"alter settings": {func() error {
			answer, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.bytes", Value: &one}}, topic)
			if err != nil {
				return err
			}
			_, err = answer.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
			return err
		}, kerr.TopicAuthorizationFailed},
		"alter the broker's settings": {func() error {
			answer, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.max.bytes", Value: &one}})
			if err != nil {
				return err
			}
			return answer[0].Err
		}, kerr.ClusterAuthorizationFailed},
		"add partitions": {func() error {
			answer, err := admin.CreatePartitions(ctx, 1, topic)
			return errors.Join(err, answer.Error())
		}, kerr.TopicAuthorizationFailed},
		"give oneself rights": {func() error {
			answer, err := admin.CreateACLs(ctx, kadm.NewACLs().Allow("User:*").AllowHosts("*").Topics("*").Operations(kadm.OpAll))
			if err != nil {
				return err
			}
			return answer[0].Err
		}, kerr.ClusterAuthorizationFailed},
		"take rights": {func() error {
			answer, err := admin.DeleteACLs(ctx, kadm.NewACLs().Deny("User:*").DenyHosts("*").Groups("resolve").Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternAny))
			if err != nil {
				return err
			}
			return answer[0].Err
		}, kerr.ClusterAuthorizationFailed},
		"make oneself a user": {func() error {
			answer, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: User, Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "mine"}})
			if err != nil {
				return err
			}
			return answer.Error()
		}, kerr.ClusterAuthorizationFailed},
		"join our group": {func() error {
			request := kmsg.NewPtrJoinGroupRequest()
			request.Group, request.ProtocolType, request.SessionTimeoutMillis = "resolve", "consumer", 10_000
			request.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
			answer, err := request.RequestWith(ctx, anybody)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(answer.ErrorCode)
		}, kerr.GroupAuthorizationFailed},
		"commit to our group": {func() error {
			answer, err := admin.CommitOffsets(ctx, "sink-prices.v1", ours)
			return errors.Join(err, answer.Error())
		}, kerr.GroupAuthorizationFailed},
		"delete our group": {func() error {
			answer, err := admin.DeleteGroup(ctx, "resolve")
			return errors.Join(err, answer.Err)
		}, kerr.GroupAuthorizationFailed},
		"delete our group's offsets": {func() error {
			var topics kadm.TopicsSet
			topics.Add(topic, 0)
			answer, err := admin.DeleteOffsets(ctx, "resolve", topics)
			return errors.Join(err, answer.Error())
		}, kerr.GroupAuthorizationFailed},
	} {
		if err := test.do(); !errors.Is(err, test.want) {
			t.Errorf("%s: %s: got %v, want %v", round, what, err, test.want)
		}
	}
	groups, err := admin.DescribeGroups(ctx, "resolve")
	if err != nil || groups.Error() != nil {
		t.Errorf("%s: describing our group: %v, %v", round, err, groups.Error())
	}
}

// What is not a request of Kafka ends its connection, and nothing else.
func TestBytesOfOthersEndTheirConnectionOnly(t *testing.T) {
	broker := startBroker(t, t.TempDir())
	defer broker.Close()
	frame := func(size uint32, body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), body...)
	}
	for what, sent := range map[string][]byte{
		"a request of HTTP":          []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"a kind that does not exist": frame(10, 0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"a negative kind":            frame(10, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"four gigabytes":             frame(0xffffffff, 0, 3, 0, 0),
		"nothing":                    frame(0),
		"half a header":              frame(3, 0, 3, 0),
	} {
		conn, err := net.Dial("tcp", broker.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if answer, err := io.ReadAll(conn); len(answer) > 0 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %q, %v, want the end of the connection", what, answer, err)
		}
		conn.Close()
	}
	if err := connect(t, broker.Addr()).Ping(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A refusal is logged once a minute for each kind of request and host, whatever bytes arrive at a time; who has the password
// is not logged.
func TestRefusalsAreReportedOnce(t *testing.T) {
	var logged bytes.Buffer
	g := newGate(nil, testPassword, slog.New(slog.NewTextHandler(&logged, nil)))
	request := func(key int16, client, rest string) []byte {
		body := binary.BigEndian.AppendUint16(nil, uint16(key))
		body = append(body, 0, 9, 0, 0, 0, 1)
		body = binary.BigEndian.AppendUint16(body, uint16(len(client)))
		body = append(append(body, client...), rest...)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	produce := request(kmsg.Produce.Int16(), "sneaky", strings.Repeat("x", 10_000))
	deletes := request(kmsg.DeleteTopics.Int16(), "sneaky", "keys.v1")
	fetch := request(kmsg.Fetch.Int16(), "reader", "")
	login := request(kmsg.SASLAuthenticate.Int16(), "owner", "\x00"+User+"\x00"+testPassword)
	for step := 1; step <= 7; step++ {
		stranger := &gatedConn{Conn: fakeConn{}, gate: g}
		owner := &gatedConn{Conn: fakeConn{}, gate: g}
		for conn, sent := range map[*gatedConn][]byte{
			stranger: bytes.Join([][]byte{fetch, produce, produce, deletes, fetch}, nil),
			owner:    bytes.Join([][]byte{login, produce, deletes}, nil),
		} {
			for len(sent) > 0 {
				n := min(step*step, len(sent))
				if err := conn.look(sent[:n]); err != nil {
					t.Fatal(err)
				}
				sent = sent[n:]
			}
		}
	}
	if n := strings.Count(logged.String(), "rejected a request"); n != 2 || !strings.Contains(logged.String(), "request=DeleteTopics client=sneaky") {
		t.Errorf("logged %d refusals, want one of Produce and one of DeleteTopics:\n%s", n, logged.String())
	}
}

type fakeConn struct{ net.Conn }

func (fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40_000} }

// BenchmarkProduce is the price of the gate: records of 200 bytes in batches of a producer with a login.
func BenchmarkProduce_200Bytes(b *testing.B) {
	broker, err := StartBroker(BrokerConfig{Dir: b.TempDir(), Listen: "127.0.0.1:0", Password: testPassword})
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()), kgo.DefaultProduceTopic("ticks"), kgo.SASL(plain.Auth{User: User, Pass: testPassword}.AsMechanism()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(b.Context(), 1, 1, nil, "ticks"); err != nil {
		b.Fatal(err)
	}
	value := bytes.Repeat([]byte("0123456789"), 20)
	for b.Loop() {
		client.Produce(b.Context(), &kgo.Record{Value: value}, nil)
	}
	if err := client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
