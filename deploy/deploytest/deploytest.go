package deploytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// Quiet is a logger that drops everything.
var Quiet = slog.New(slog.DiscardHandler)

// FreeAddr is a loopback address that nobody listens on.
func FreeAddr(t *testing.T) string {
	t.Helper()
	addr, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// FreeAddress is FreeAddr outside of a test.
func FreeAddress() (string, error) {
	port, err := streamtest.FreePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

// Faults is the flag of the go command by which marketlog can kill itself (package faults): nothing is compiled that users' has not.
const Faults = "-ldflags=-X=github.com/marketlog/marketlog/stream/faults.linked=yes"

// kept are the binaries that lie in the folder bin of the checkout, by the flag that they are linked with.
var kept = map[string]string{"": "marketlog", Faults: "marketlog-faults"}

// BuildBinary builds marketlog as users do, and puts it at a path; flags of the go command are added to theirs. Linking takes
// seconds, so a binary without flags or with Faults alone is linked once for the whole checkout: the go command leaves one in bin
// that is up to date as it is.
func BuildBinary(path string, flags ...string) error {
	name, keeps := kept[strings.Join(flags, " ")]
	if !keeps {
		return goBuild(path, flags)
	}
	inBin, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(inBin), 0o755); err != nil {
		return err
	}
	built.Lock()
	defer built.Unlock()
	if !built.here[name] {
		if err := goBuild(inBin, flags); err != nil {
			return err
		}
		built.here[name] = true
	}
	if os.Link(inBin, path) == nil {
		return nil // what replaces the one in bin is another file
	}
	return copyFile(path, inBin)
}

// built are those in bin that this process has seen to.
var built = struct {
	sync.Mutex
	here map[string]bool
}{here: map[string]bool{}}

func goBuild(path string, flags []string) error {
	build := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-o", path}, flags, []string{"."})...)
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
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
