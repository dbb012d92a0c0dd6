package streamtest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaVersion names the folder that tools/kafka/fetch.sh fills; its pom.xml pins the same one.
const kafkaVersion = "4.3.1"

// KafkaProcess is a real Apache Kafka broker, its own controller (KRaft), with the broker's usual
// limits and one copy of everything. Its methods must not be called concurrently.
type KafkaProcess struct {
	server
	secure string // HOST:PORT for TLS and logins; empty without
	behind string // HOST:PORT where clients are served that are to come by another address; empty without
}

// Kafka returns the address of a real broker: the one of the package, where its TestMain uses
// Share, else one of t alone, whose start takes seconds. Topics must be created; take names from
// Name, since the package's tests share the broker.
func Kafka(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.on {
		return StartKafka(t).Addr()
	}
	install := findKafka(t)
	if shared.broker == nil {
		folder, err := os.MkdirTemp("", "kafka")
		if err != nil {
			t.Fatal(err)
		}
		shared.folder = folder
		if shared.broker, err = startKafka(install, folder, kafkaListener{}); err != nil {
			t.Fatal(err)
		}
	}
	return shared.broker.Addr()
}

// StartKafka starts a broker for t alone, to be killed, paused and restarted at will.
func StartKafka(t testing.TB) *KafkaProcess {
	t.Helper()
	install := findKafka(t)
	broker, err := startKafka(install, t.TempDir(), kafkaListener{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.kill)
	return broker
}

// StartKafkaBehind starts a broker for t alone that has one more address, behind, to which it directs clients by way, HOST:PORT: what
// lies between the two can be disturbed. Who asks at Addr is given that one.
func StartKafkaBehind(t testing.TB, way string) (broker *KafkaProcess, behind string) {
	t.Helper()
	broker, err := startKafka(findKafka(t), t.TempDir(), kafkaListener{way: way})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.kill)
	return broker, broker.behind
}

// kafkaListener is what a broker listens for besides: security that is asked for, or the way by which clients come; neither, if zero.
type kafkaListener struct {
	security *KafkaSecurity
	way      string
}

// KafkaSecurity is what a broker asks of its clients.
type KafkaSecurity struct {
	// CertFile and KeyFile are the broker's own, in PEM.
	CertFile, KeyFile string
	// User and Password are who may log in: by SASL PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
	User, Password string
}

// StartSecureKafka starts a broker for t alone and returns the address where it speaks nothing but TLS, to those who log in.
func StartSecureKafka(t testing.TB, security KafkaSecurity) (addr string) {
	t.Helper()
	install := findKafka(t)
	broker, err := startKafka(install, t.TempDir(), kafkaListener{security: &security})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.kill)
	return broker.secure
}

// Addr returns HOST:PORT; it stays the same through restarts.
func (k *KafkaProcess) Addr() string { return k.addr }

// Kill ends the broker as kill -9 does: what it had not handed to the kernel is lost.
func (k *KafkaProcess) Kill() { k.kill() }

// Restart starts the broker again on the same log and port and waits until it leads.
func (k *KafkaProcess) Restart(t testing.TB) { t.Helper(); k.restart(t) }

// Pause stops the broker at once: connections stay open and nothing is answered.
func (k *KafkaProcess) Pause(t testing.TB) { t.Helper(); k.pause(t) }

// Resume ends a Pause.
func (k *KafkaProcess) Resume(t testing.TB) { t.Helper(); k.signal(t, syscall.SIGCONT) }

// shared are the servers of a package's tests. They are global because tests have nothing else in common.
var shared struct {
	sync.Mutex
	on      bool
	broker  *KafkaProcess
	folder  string
	buckets *S3Process
}

// SharedServers runs a package's tests on one server of each kind.
type SharedServers struct{ tests interface{ Run() int } }

// Share makes Kafka and S3 return one server to all tests of the package, started by the first that asks:
//
//	func TestMain(m *testing.M) { os.Exit(streamtest.Share(m).Run()) }
//
// It also fits where a *testing.M is wanted, goleak.VerifyTestMain for one.
func Share(tests interface{ Run() int }) SharedServers { return SharedServers{tests} }

// Run runs the tests, stops the servers and returns the tests' exit code.
func (s SharedServers) Run() int {
	shared.on = true
	code := s.tests.Run()
	if shared.broker != nil {
		shared.broker.kill()
	}
	if shared.folder != "" {
		if err := os.RemoveAll(shared.folder); err != nil {
			fmt.Fprintln(os.Stderr, "removing the broker's folder:", err)
		}
	}
	if shared.buckets != nil {
		shared.buckets.kill()
		if err := os.RemoveAll(filepath.Dir(shared.buckets.folder)); err != nil {
			fmt.Fprintln(os.Stderr, "removing the folder of the buckets:", err)
		}
	}
	return code
}

// kafkaInstall is what a broker is started from.
type kafkaInstall struct{ java, jars string }

// findKafka looks for Java and the jars, and skips t (under CI: fails it) where one is missing.
func findKafka(t testing.TB) kafkaInstall {
	t.Helper()
	InTier(t, TierKafka)
	java, err := exec.LookPath("java")
	if err != nil {
		Missing(t, TierKafka, "no java on PATH")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("finding the cache folder: %v", err)
	}
	jars := filepath.Join(cache, "marketlog", "kafka-"+kafkaVersion)
	if _, err := os.Stat(jars); err != nil {
		Missing(t, TierKafka, "no Kafka in the cache folder; tools/kafka/fetch.sh fetches it")
	}
	return kafkaInstall{java: java, jars: filepath.Join(jars, "*")}
}

// startKafka formats a log under folder and starts a broker on it. A broker that ends at once has
// lost its port to another process, so it is tried again on others.
func startKafka(install kafkaInstall, folder string, another kafkaListener) (*KafkaProcess, error) {
	for attempt := 1; ; attempt++ {
		broker, err := tryKafka(install, filepath.Join(folder, fmt.Sprint(attempt)), another)
		if err == nil {
			return broker, nil
		}
		if attempt == 3 || !errors.Is(err, errExited) {
			return nil, fmt.Errorf("starting Kafka: %w", err)
		}
	}
}

func tryKafka(install kafkaInstall, folder string, another kafkaListener) (*KafkaProcess, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	listeners := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", ports[0], ports[1])
	var more []byte
	var users []string
	third := fmt.Sprintf("127.0.0.1:%d", ports[2])
	switch {
	case another.security != nil:
		listeners += ",SECURE://" + third
		if more, err = another.security.properties(folder); err != nil {
			return nil, err
		}
		users = another.security.users()
	case another.way != "":
		listeners += ",BEHIND://" + third
		more = fmt.Appendf(nil, `listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,BEHIND:PLAINTEXT
advertised.listeners=PLAINTEXT://127.0.0.1:%d,BEHIND://%s
`, ports[0], another.way)
	}
	settings := append(kafkaProperties(folder, listeners, ports[1]), more...)
	properties := filepath.Join(folder, "server.properties")
	if err := os.WriteFile(properties, settings, 0o600); err != nil {
		return nil, err
	}
	// Serial collection and the first compiler halve the start; a test's load needs no more.
	java := []string{
		install.java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", install.jars,
	}
	format := append(slices.Concat(java, []string{"kafka.tools.StorageTool", "format", "-t", clusterID(), "-c", properties}), users...)
	if out, err := exec.Command(format[0], format[1:]...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("formatting the log: %w\n%s", err, out)
	}
	broker := &KafkaProcess{server: server{
		command: slices.Concat(java, []string{"kafka.Kafka", properties}),
		logPath: filepath.Join(folder, "kafka.log"),
		addr:    fmt.Sprintf("127.0.0.1:%d", ports[0]),
		answers: kafkaAnswers,
	}}
	if another.security != nil {
		broker.secure = third
	}
	if another.way != "" {
		broker.behind = third
	}
	if err := broker.start(); err != nil {
		broker.kill()
		return nil, fmt.Errorf("%w\n%s", err, broker.logTail())
	}
	return broker, nil
}

// kafkaProperties returns the configuration. A killed broker may register again only when its old
// session is over, so that is short; a topic of the broker's own has few partitions to start faster.
func kafkaProperties(folder, listeners string, controller int) []byte {
	return fmt.Appendf(nil, `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
controller.listener.names=CONTROLLER
listeners=%[1]s
log.dirs=%[3]s
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
`, listeners, controller, filepath.Join(folder, "log"))
}

// properties are the lines of the listener SECURE, beside the plain one that the broker itself uses.
func (s KafkaSecurity) properties(folder string) ([]byte, error) {
	var store []byte // Kafka wants both in one file
	for _, path := range []string{s.KeyFile, s.CertFile} {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		store = append(store, content...)
	}
	path := filepath.Join(folder, "keystore.pem")
	if err := os.WriteFile(path, store, 0o600); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=%[1]s
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[2]s="%[3]s";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`, path, s.User, s.Password), nil
}

// users are the arguments that put the user into a log which is being formatted.
func (s KafkaSecurity) users() (arguments []string) {
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		arguments = append(arguments, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, s.User, s.Password))
	}
	return arguments
}

// clusterID returns what Kafka's own random-uuid prints: 16 random bytes in URL-safe base64. A
// leading dash would look like an option of the command line.
func clusterID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails (crypto/rand)
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id)
}

// kafkaAnswers is nil once the broker is listed in its own metadata, that is unfenced.
func kafkaAnswers(addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second))
	if err != nil {
		return fmt.Errorf("opening a client: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("asking Kafka: %w", err)
	}
	if len(metadata.Brokers) == 0 || metadata.ControllerID < 0 {
		return errors.New("the broker is not registered yet")
	}
	return nil
}
