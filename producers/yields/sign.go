package yields

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/poll"
)

// signBinance adds the time and the signature of all parameters, as described on
// https://developers.binance.com/docs/binance-spot-api-docs/rest-api/request-security. The secrets are the key and its
// secret.
func signBinance(secrets []string, r poll.Request, now time.Time) (poll.Request, error) {
	if len(secrets) != 2 {
		return r, fmt.Errorf("signing: %d words in the key file, want the key and its secret", len(secrets))
	}
	path, query, _ := strings.Cut(r.Path, "?")
	if query != "" {
		query += "&"
	}
	query += "timestamp=" + strconv.FormatInt(now.UnixMilli(), 10)
	r.Path = path + "?" + query + "&signature=" + hex.EncodeToString(seal(sha256.New, secrets[1], query))
	return r, nil
}

// signKuCoin signs time, method, path and body, as described on https://www.kucoin.com/docs-new/authentication. The secrets are
// the key, its secret and its passphrase.
func signKuCoin(secrets []string, r poll.Request, now time.Time) (poll.Request, error) {
	if len(secrets) != 3 {
		return r, fmt.Errorf("signing: %d words in the key file, want the key, its secret and its passphrase", len(secrets))
	}
	method := http.MethodGet
	if r.Body != "" {
		method = http.MethodPost
	}
	at := strconv.FormatInt(now.UnixMilli(), 10)
	r.Header = map[string]string{
		"KC-API-SIGN":        base64.StdEncoding.EncodeToString(seal(sha256.New, secrets[1], at+method+r.Path+r.Body)),
		"KC-API-TIMESTAMP":   at,
		"KC-API-PASSPHRASE":  base64.StdEncoding.EncodeToString(seal(sha256.New, secrets[1], secrets[2])),
		"KC-API-KEY-VERSION": "2",
	}
	return r, nil
}

// signKraken adds a nonce to the body and signs path and body, as described on
// https://docs.kraken.com/api/docs/guides/spot-rest-auth. The secrets are the key and its private key.
func signKraken(secrets []string, r poll.Request, now time.Time) (poll.Request, error) {
	if len(secrets) != 2 {
		return r, fmt.Errorf("signing: %d words in the key file, want the key and its private key", len(secrets))
	}
	private, err := base64.StdEncoding.DecodeString(secrets[1])
	if err != nil {
		return r, fmt.Errorf("signing: the private key is not in base64")
	}
	asked := map[string]any{}
	if r.Body != "" {
		if err := json.Unmarshal([]byte(r.Body), &asked); err != nil {
			return r, fmt.Errorf("signing: parsing the body: %w", err)
		}
	}
	nonce := strconv.FormatInt(now.UnixMicro(), 10) // has to grow
	asked["nonce"] = nonce
	body, err := json.Marshal(asked)
	if err != nil {
		return r, fmt.Errorf("signing: writing the body: %w", err)
	}
	r.Body = string(body)
	r.Header = map[string]string{"API-Sign": krakenSignature(private, r.Path, nonce, r.Body)}
	return r, nil
}

func krakenSignature(private []byte, path, nonce, body string) string {
	digest := sha256.Sum256([]byte(nonce + body))
	return base64.StdEncoding.EncodeToString(seal(sha512.New, string(private), path+string(digest[:])))
}

// seal is the HMAC of a message.
func seal(h func() hash.Hash, secret, message string) []byte {
	mac := hmac.New(h, []byte(secret))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}
