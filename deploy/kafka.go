package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

// clientID names this program in a broker's logs and quotas.
const clientID = "marketlog"

// streamConfig says how to reach the brokers, with the security that the configuration names.
func streamConfig(cfg KafkaConfig, brokers []string) (stream.Config, error) {
	config := stream.Config{Brokers: brokers, ClientID: clientID}
	if len(cfg.Brokers) == 0 {
		return config, nil // the embedded broker speaks plain on loopback
	}
	if cfg.TLS.Enabled {
		tlsConfig, err := clientTLS(cfg.TLS)
		if err != nil {
			return config, err
		}
		config.Options = append(config.Options, kgo.DialTLSConfig(tlsConfig))
	}
	if cfg.SASL.Mechanism != "" {
		password, err := readSecret("kafka.sasl.password_file", cfg.SASL.PasswordFile)
		if err != nil {
			return config, err
		}
		var mechanism sasl.Mechanism
		switch cfg.SASL.Mechanism {
		case "plain":
			mechanism = plain.Auth{User: cfg.SASL.User, Pass: password}.AsMechanism()
		case "scram-sha-256":
			mechanism = scram.Auth{User: cfg.SASL.User, Pass: password}.AsSha256Mechanism()
		case "scram-sha-512":
			mechanism = scram.Auth{User: cfg.SASL.User, Pass: password}.AsSha512Mechanism()
		}
		config.Options = append(config.Options, kgo.SASL(mechanism))
	}
	return config, nil
}

func clientTLS(cfg TLSConfig) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading kafka.tls.ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("reading kafka.tls.ca_file: " + cfg.CAFile + " holds no certificate")
		}
	}
	if cfg.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading kafka.tls.cert_file and key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// topicConfigs are the settings of topics where this configuration has its log.
func (c Config) topicConfigs() stream.TopicConfigs {
	if len(c.Kafka.Brokers) > 0 {
		return stream.ClusterTopicConfigs
	}
	whole := tableBytes()
	return func(t schemas.Topic) map[string]string {
		t.EmbeddedBytes = int64(float64(t.EmbeddedBytes) * (float64(c.Retention.LogBytes) / float64(whole)))
		return embedded.TopicConfigs(t)
	}
}
