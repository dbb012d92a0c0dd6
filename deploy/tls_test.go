package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// selfSigned writes a certificate for 127.0.0.1 that signs itself, and its key.
func selfSigned(t *testing.T, folder string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: certificate}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestCertificateIsReadAgainWhenItChanges(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := selfSigned(t, folder, 1)
	config, err := serverTLS(ServerTLSConfig{Cert: certFile, Key: keyFile}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		t.Helper()
		pair, err := config.GetCertificate(nil)
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
	selfSigned(t, folder, 2)
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
	selfSigned(t, folder, 3)
	age(3 * time.Minute)
	if got := serial(); got != 3 {
		t.Errorf("after the next change: got certificate %d, want 3", got)
	}
	if _, err := serverTLS(ServerTLSConfig{Cert: certFile, Key: filepath.Join(folder, "none")}, quiet); err == nil || !strings.Contains(err.Error(), "tls.key") {
		t.Errorf("a start without a key: got %v, want an error that names it", err)
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
	certFile, keyFile := selfSigned(t, folder, 1)
	addr := freeAddr(t)
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
	ping := func(change func(*RedisConfig)) error {
		t.Helper()
		cfg := DefaultConfig()
		cfg.Redis = RedisConfig{Addr: []string{addr}, PasswordFile: password, TLS: TLSConfig{Enabled: true, CAFile: certFile}}
		change(&cfg.Redis)
		options, err := (&Instance{Config: cfg}).redisOptions(cfg.Redis.Addr)
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewUniversalClient(options)
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := ping(func(*RedisConfig) {})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("over TLS with a password: %v", err)
		}
	}
	var unknown x509.UnknownAuthorityError
	if err := ping(func(c *RedisConfig) { c.TLS.CAFile = "" }); !errors.As(err, &unknown) {
		t.Errorf("with a certificate that nobody trusts: got %v", err)
	}
	if err := ping(func(c *RedisConfig) { c.PasswordFile = "" }); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without the password: got %v", err)
	}
	if err := ping(func(c *RedisConfig) { c.TLS.Enabled = false }); err == nil {
		t.Error("in the clear: it answers")
	}
}

// The engine behind TLS stands for a ClickHouse server: the same protocol, both ways on which the store speaks it.
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
	certFile, keyFile := selfSigned(t, folder, 1)
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
		cfg := DefaultConfig()
		cfg.ClickHouse.Addr, cfg.ClickHouse.User, cfg.ClickHouse.PasswordFile = []string{server.Listener.Addr().String()}, "marketlog", password
		cfg.ClickHouse.TLS = TLSConfig{Enabled: true, CAFile: ca}
		return (&Instance{Config: cfg}).History(t.Context())
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
	if err := store.Record(t.Context(), "ticks.v1", 0, []history.Progress{{Next: 7, LogTime: 1}}); err != nil {
		t.Fatal(err)
	}
	progress, err := store.Progress(t.Context(), "ticks.v1", 0)
	if got := fmt.Sprint(progress[0].Next); err != nil || got != "7" {
		t.Errorf("got %s, %v, want what was written: 7", got, err)
	}
}
