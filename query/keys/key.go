// Package keys makes, checks and keeps API keys. What is stored of a key is its peppered hash, its
// plan and its last four characters: a leaked store reveals no key, and a mistyped or guessed one is
// refused by its checksum before anything is looked up.
package keys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
)

const (
	// Prefix begins every key.
	Prefix = "ck_live_"

	alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	bodyLength     = 30 // 178 bits
	checksumLength = 6  // base62 of 32 bits
	keyLength      = len(Prefix) + bodyLength + checksumLength
)

// PepperLength is the least length of a pepper in bytes.
const PepperLength = 32

// NewPepper draws the secret that an instance's hashes are made with.
func NewPepper() []byte {
	pepper := make([]byte, PepperLength)
	// It never fails: crypto/rand ends the process instead.
	rand.Read(pepper)
	return pepper
}

// Generate draws a new key.
func Generate() string {
	key := make([]byte, 0, keyLength)
	key = append(key, Prefix...)
	var drawn [64]byte
	for len(key) < len(Prefix)+bodyLength {
		rand.Read(drawn[:])
		for _, b := range drawn {
			// 248 is the greatest multiple of 62 in a byte: beyond it the first letters would be likelier.
			if b < 248 && len(key) < len(Prefix)+bodyLength {
				key = append(key, alphabet[b%62])
			}
		}
	}
	sum := checksum(key)
	return string(append(key, sum[:]...))
}

// WellFormed reports whether a key has the prefix, the length and the checksum of one that Generate
// made. It does not show whether the key exists.
func WellFormed(key []byte) bool {
	if len(key) != keyLength || string(key[:len(Prefix)]) != Prefix {
		return false
	}
	sum := checksum(key[:len(Prefix)+bodyLength])
	return string(sum[:]) == string(key[len(Prefix)+bodyLength:])
}

// checksum is CRC-32 (IEEE) of prefix and body in base62, most significant digit first.
func checksum(key []byte) (digits [checksumLength]byte) {
	n := crc32.ChecksumIEEE(key)
	for i := checksumLength - 1; i >= 0; i-- {
		digits[i] = alphabet[n%62]
		n /= 62
	}
	return digits
}

// Hash is what is stored of a key: HMAC-SHA-256 under the instance's pepper.
func Hash(pepper, key []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, pepper)
	mac.Write(key)
	return [sha256.Size]byte(mac.Sum(nil))
}

func checkPepper(pepper []byte) error {
	if len(pepper) < PepperLength {
		return fmt.Errorf("the pepper has %d bytes, needs at least %d", len(pepper), PepperLength)
	}
	return nil
}
