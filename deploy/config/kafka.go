package config

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/segmentio/kafka-go"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// clientID names this program in a broker's logs and quotas.
const clientID = "marketlog"

// StreamConfig reports how to reach the log: the brokers, with the security that the configuration names, and the archive. The
// embedded broker wants the password that is in its data directory; who cannot read that may still read the log.
func (c Config) StreamConfig(brokers []string) (stream.Config, error) {
	config, err := c.brokers(brokers)
	if err != nil {
		return config, err
	}
	archived, err := c.Archived(config)
	if archived != nil {
		config.Archive = archived
	}
	return config, err
}

func (c Config) brokers(brokers []string) (stream.Config, error) {
	config := stream.Config{Brokers: brokers, ClientID: clientID}
	cfg := c.Kafka
	if len(cfg.Brokers) == 0 {
		password, err := os.ReadFile(filepath.Join(c.DataDir, KafkaPasswordFile))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return config, nil
		case err != nil:
			return config, fmt.Errorf("reading the password of the embedded broker: %w", err)
		}
		secure(&config, nil, plain.Auth{User: embedded.User, Pass: strings.TrimSpace(string(password))}.AsMechanism())
		return config, nil
	}
	tlsConfig, err := ClientTLS("kafka.tls", cfg.TLS)
	if err != nil {
		return config, err
	}
	var mechanism sasl.Mechanism
	if cfg.SASL.Mechanism != "" {
		password, err := ReadSecret("kafka.sasl.password_file", cfg.SASL.PasswordFile)
		if err != nil {
			return config, err
		}
		switch cfg.SASL.Mechanism {
		case "plain":
			mechanism = plain.Auth{User: cfg.SASL.User, Pass: password}.AsMechanism()
		case "scram-sha-256":
			mechanism = scram.Auth{User: cfg.SASL.User, Pass: password}.AsSha256Mechanism()
		case "scram-sha-512":
			mechanism = scram.Auth{User: cfg.SASL.User, Pass: password}.AsSha512Mechanism()
		}
	}
	if tlsConfig != nil || mechanism != nil {
		secure(&config, tlsConfig, mechanism)
	}
	return config, nil
}

// secure adds TLS and a login, where there are any, to both clients.
func secure(config *stream.Config, tlsConfig *tls.Config, mechanism sasl.Mechanism) {
	config.Dialer = &kafka.Dialer{Timeout: kafkaDialTimeout, DualStack: true, TLS: tlsConfig}
	if tlsConfig != nil {
		config.Options = append(config.Options, kgo.DialTLSConfig(tlsConfig))
	}
	if mechanism != nil {
		config.Options = append(config.Options, kgo.SASL(mechanism))
		config.Dialer.SASLMechanism = tailLogin{mechanism}
	}
}

// kafkaDialTimeout bounds one attempt of a tail to reach a broker.
const kafkaDialTimeout = 5 * time.Second

// tailLogin is a login of franz-go for the client that tails read with.
type tailLogin struct{ sasl.Mechanism }

// Start begins to log in.
func (l tailLogin) Start(ctx context.Context) (kafkasasl.StateMachine, []byte, error) {
	host := ""
	if meta := kafkasasl.MetadataFromContext(ctx); meta != nil {
		host = meta.Host
	}
	session, first, err := l.Authenticate(ctx, host)
	return tailSession{session}, first, err
}

type tailSession struct{ sasl.Session }

// Next answers the broker.
func (s tailSession) Next(_ context.Context, challenge []byte) (done bool, answer []byte, err error) {
	return s.Challenge(challenge)
}

// ClientTLS is how a server is reached whose settings are beneath key; nil is without encryption.
func ClientTLS(key string, cfg TLSConfig) (*tls.Config, error) {
	if !cfg.Enabled {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading %s.ca_file: %w", key, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading %s.ca_file: %s holds no certificate", key, cfg.CAFile)
		}
	}
	if cfg.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading %s.cert_file and key_file: %w", key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// TopicConfigs are the settings of topics where this configuration has its log.
func (c Config) TopicConfigs() stream.TopicConfigs {
	if len(c.Kafka.Brokers) > 0 {
		return stream.ClusterTopicConfigs
	}
	return func(t schemas.Topic) map[string]string {
		bounds := c.PartitionBounds(t)
		t.EmbeddedBytes = bounds.Near
		configs := embedded.TopicConfigs(t)
		if !t.Compacted && bounds.Near < bounds.Most { // the role that archives cuts it back further
			configs["retention.bytes"] = strconv.FormatInt(bounds.Most, 10)
		}
		if c.Archives() && t.Archive != schemas.ArchiveNever { // only what is archived is deleted
			configs["retention.bytes"] = "-1"
		}
		return configs
	}
}

// PartitionBounds are how large a partition of the embedded log becomes, in bytes.
type PartitionBounds struct {
	// Near is its bound while all who read it keep up, Most the one while they do not; both are 0 for a topic that is kept
	// whole, and equal where the log is not archived.
	Near, Most int64
}

// minNearBytes is a segment of some use.
const minNearBytes = 1 << 20

// PartitionBounds are those of a partition of a topic.
func (c Config) PartitionBounds(t schemas.Topic) PartitionBounds {
	if t.Compacted {
		return PartitionBounds{}
	}
	share := float64(c.Retention.LogBytes) / float64(tableBytes())
	b := PartitionBounds{Most: int64(float64(t.EmbeddedBytes) * share)}
	b.Near = b.Most
	if c.Archives() && t.NearBytes > 0 {
		b.Near = min(b.Most, max(minNearBytes, int64(float64(t.NearBytes)*share)))
	}
	return b
}

// KafkaPasswordFile holds the password by which those who may write into the embedded log are distinguished from others.
const KafkaPasswordFile = "kafka.password"

// LogLimits are the bounds of the embedded log by topic, which exceeds them by a segment of each partition.
func (c Config) LogLimits() map[string]int64 {
	limits := map[string]int64{}
	if len(c.Kafka.Brokers) > 0 {
		return limits
	}
	for _, topic := range schemas.Topics {
		if n := c.PartitionBounds(topic).Most; n > 0 {
			limits[topic.Name] = n * int64(topic.Partitions)
		}
	}
	return limits
}
