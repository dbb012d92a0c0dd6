package roles

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/marketlog/marketlog/deploy/config"
)

// certificate is the server's own, read again when one of its files changes. Safe for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	changed [2]time.Time // of the files, as they were when pair was read or refused
}

// serverTLS is how REST and the stream are encrypted; nil if the configuration names no certificate.
func serverTLS(cfg config.ServerTLSConfig, log *slog.Logger) (*tls.Config, error) {
	if cfg.Cert == "" {
		return nil, nil
	}
	c := &certificate{certFile: cfg.Cert, keyFile: cfg.Key, log: log}
	pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("reading tls.cert and tls.key: %w", err)
	}
	c.pair, c.changed = &pair, c.times()
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.get}, nil
}

func (c *certificate) times() (changed [2]time.Time) {
	for i, path := range []string{c.certFile, c.keyFile} {
		if stat, err := os.Stat(path); err == nil {
			changed[i] = stat.ModTime()
		}
	}
	return changed
}

// get is asked at each handshake. Files that cannot be read, or of which one is new and one is old, leave the certificate
// as it was: the next change is tried again.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.times()
	if now == c.changed {
		return c.pair, nil
	}
	c.changed = now
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Error("new certificate is not usable: keeping the current one", "error", err)
		return c.pair, nil
	}
	c.pair = &pair
	c.log.Info("certificate reloaded", "file", c.certFile)
	return c.pair, nil
}
