package deploytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/stream"
)

// Quiet is a logger that drops everything.
var Quiet = slog.New(slog.DiscardHandler)

// FreeAddr is a loopback address that nobody listens on.
func FreeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// BuildBinary builds marketlog as users do; flags of the go command are added to theirs.
func BuildBinary(path string, flags ...string) error {
	if len(flags) == 0 {
		linked.Lock()
		defer linked.Unlock()
		if linked.path != "" && os.Link(linked.path, path) == nil {
			return nil // linking takes seconds
		}
	}
	build := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-o", path}, flags, []string{"."})...)
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	if len(flags) == 0 {
		linked.path = path
	}
	return nil
}

// linked is where this process has put the binary last. While it is there, it is that of the next caller too.
var linked struct {
	sync.Mutex
	path string
}

// SelfSigned writes a certificate for 127.0.0.1 that signs itself, and its key.
func SelfSigned(t *testing.T, folder string, serial int64) (certFile, keyFile string) {
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

// Writer is who may write into the log of a running instance: who can read its data directory.
func Writer(t testing.TB, cfg config.Config) stream.Config {
	t.Helper()
	config, err := cfg.StreamConfig([]string{cfg.Kafka.Listen})
	if err != nil {
		t.Fatal(err)
	}
	return config
}
