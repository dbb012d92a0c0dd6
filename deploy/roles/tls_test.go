package roles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestCertificateIsReadAgainWhenItChanges(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := deploytest.SelfSigned(t, folder, 1)
	settings, err := serverTLS(config.ServerTLSConfig{Cert: certFile, Key: keyFile}, deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		pair, err := settings.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return certificate.SerialNumber.Int64()
	}
	age := func(by time.Duration) { // the files may be written within one step of the file system's clock
		t.Helper()
		for _, path := range []string{certFile, keyFile} {
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(by)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := serial(); got != 1 {
		t.Errorf("got certificate %d, want 1", got)
	}
	deploytest.SelfSigned(t, folder, 2)
	age(time.Minute)
	if got := serial(); got != 2 {
		t.Errorf("after a change: got certificate %d, want 2", got)
	}
	if err := os.WriteFile(keyFile, []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	age(2 * time.Minute)
	if got := serial(); got != 2 {
		t.Errorf("after a change that cannot be used: got certificate %d, want 2", got)
	}
	deploytest.SelfSigned(t, folder, 3)
	age(3 * time.Minute)
	if got := serial(); got != 3 {
		t.Errorf("after the next change: got certificate %d, want 3", got)
	}
	if _, err := serverTLS(config.ServerTLSConfig{Cert: certFile, Key: filepath.Join(folder, "none")}, deploytest.Quiet); err == nil || !strings.Contains(err.Error(), "tls.key") {
		t.Errorf("a start without a key: got %v, want an error that names it", err)
	}
}

// A real broker that takes nothing but TLS and a login: by both clients, the one that writes and the one that tails read with.
func TestKafkaIsReachedOverTLSWithALogin(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := deploytest.SelfSigned(t, folder, 1)
	addr := streamtest.StartSecureKafka(t, streamtest.KafkaSecurity{CertFile: certFile, KeyFile: keyFile, User: "marketlog", Password: "secret"})
	password, wrong := filepath.Join(folder, "password"), filepath.Join(folder, "wrong")
	for path, text := range map[string]string{password: "secret\n", wrong: "guessed\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure := func(change func(*config.KafkaConfig)) stream.Config {
		t.Helper()
		cfg := config.DefaultConfig()
		cfg.Kafka.Brokers, cfg.Kafka.TLS = []string{addr}, config.TLSConfig{Enabled: true, CAFile: certFile}
		cfg.Kafka.SASL = config.SASLConfig{Mechanism: "scram-sha-512", User: "marketlog", PasswordFile: password}
		change(&cfg.Kafka)
		settings, err := cfg.StreamConfig(cfg.Kafka.Brokers)
		if err != nil {
			t.Fatal(err)
		}
		return settings
	}
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		settings := configure(func(c *config.KafkaConfig) { c.SASL.Mechanism = mechanism })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		producer, err := settings.NewProducer()
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
		if created, err := kadm.NewClient(producer).CreateTopic(ctx, 1, 1, nil, mechanism); err != nil || created.Err != nil {
			t.Fatalf("%s: making a topic: %v, %v", mechanism, err, created.Err)
		}
		if err := producer.ProduceSync(ctx, &kgo.Record{Topic: mechanism, Value: []byte("over TLS")}).FirstErr(); err != nil {
			t.Fatalf("%s: writing: %v", mechanism, err)
		}
		enough := errors.New("read")
		tail := stream.NewTail(stream.TailConfig{Brokers: settings.Brokers, Topic: mechanism, Dialer: settings.Dialer, Log: deploytest.Quiet})
		if err := tail.Run(ctx, func(rec stream.TailRecord) error { return fmt.Errorf("%w: %s", enough, rec.Value) }); !errors.Is(err, enough) || !strings.Contains(err.Error(), "over TLS") {
			t.Errorf("%s: a tail ends with %v, want what was written", mechanism, err)
		}
	}
	// reach asks for metadata by the client that writes, and opens a connection by the one of tails.
	reach := func(settings stream.Config) (written, tailed error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client, err := settings.NewClient(kgo.RetryTimeout(2 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, written = kadm.NewClient(client).BrokerMetadata(ctx)
		conn, tailed := settings.Dialer.DialContext(ctx, "tcp", addr)
		if tailed == nil {
			conn.Close()
		}
		return written, tailed
	}
	for what, change := range map[string]func(*config.KafkaConfig){
		"with a wrong password":                    func(c *config.KafkaConfig) { c.SASL.PasswordFile = wrong },
		"with a certificate that nobody trusts":    func(c *config.KafkaConfig) { c.TLS.CAFile = "" },
		"with a login in the clear":                func(c *config.KafkaConfig) { c.TLS.Enabled = false },
		"with a plain login and a wrong user name": func(c *config.KafkaConfig) { c.SASL.Mechanism, c.SASL.User = "plain", "nobody" },
	} {
		if written, tailed := reach(configure(change)); written == nil || tailed == nil {
			t.Errorf("%s: got %v and %v, want both clients refused", what, written, tailed)
		}
	}
}

// A real Redis that takes nothing but TLS, and a password.
func TestRedisIsReachedOverTLS(t *testing.T) {
	streamtest.InTier(t, streamtest.TierRedis)
	program, err := exec.LookPath("redis-server")
	if err != nil {
		streamtest.Missing(t, streamtest.TierRedis, "no redis-server on PATH")
	}
	folder := t.TempDir()
	certFile, keyFile := deploytest.SelfSigned(t, folder, 1)
	addr := deploytest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	server := exec.Command(program, "--port", "0", "--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-auth-clients", "no", "--requirepass", "secret", "--save", "", "--dir", folder)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	password := filepath.Join(folder, "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ping := func(change func(*config.RedisConfig)) error {
		t.Helper()
		cfg := config.DefaultConfig()
		cfg.Redis = config.RedisConfig{Addr: []string{addr}, PasswordFile: password, TLS: config.TLSConfig{Enabled: true, CAFile: certFile}}
		change(&cfg.Redis)
		options, err := (&instance.Instance{Config: cfg}).RedisOptions(cfg.Redis.Addr)
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewUniversalClient(options)
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := ping(func(*config.RedisConfig) {})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("over TLS with a password: %v", err)
		}
	}
	var unknown x509.UnknownAuthorityError
	if err := ping(func(c *config.RedisConfig) { c.TLS.CAFile = "" }); !errors.As(err, &unknown) {
		t.Errorf("with a certificate that nobody trusts: got %v", err)
	}
	if err := ping(func(c *config.RedisConfig) { c.PasswordFile = "" }); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without the password: got %v", err)
	}
	if err := ping(func(c *config.RedisConfig) { c.TLS.Enabled = false }); err == nil {
		t.Error("in the clear: it answers")
	}
}

// The engine behind TLS takes the place of a ClickHouse server: the same protocol, both ways on which the store speaks it.
func TestClickHouseIsReachedOverTLS(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	e, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	folder := t.TempDir()
	certFile, keyFile := deploytest.SelfSigned(t, folder, 1)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(engine.ServerHandler(e, "secret"))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	password := filepath.Join(folder, "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(ca string) (*history.Store, error) {
		cfg := config.DefaultConfig()
		cfg.ClickHouse.Addr, cfg.ClickHouse.User, cfg.ClickHouse.PasswordFile = []string{server.Listener.Addr().String()}, "marketlog", password
		cfg.ClickHouse.TLS = config.TLSConfig{Enabled: true, CAFile: ca}
		return (&instance.Instance{Config: cfg}).History(t.Context())
	}
	if _, err := open(""); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a certificate that nobody trusts: got %v", err)
	}
	store, err := open(certFile)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Record(t.Context(), []history.SinkProgress{{Sink: "ticks.v1", Progress: history.Progress{Next: 7, LogTime: 1}}}); err != nil {
		t.Fatal(err)
	}
	progress, err := store.Progress(t.Context(), "ticks.v1", 0)
	if got := fmt.Sprint(progress[0].Next); err != nil || got != "7" {
		t.Errorf("got %s, %v, want what was written: 7", got, err)
	}
}
