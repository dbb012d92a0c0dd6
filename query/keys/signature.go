package keys

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// What a signature is of begins with this, so that it is the hash of no key.
const signedBegin = "marketlog key record v1\x00"

// fieldSignature is the field of a KeyRecord that holds the signature; it is the last one.
const fieldSignature protowire.Number = 9

var (
	errUnsigned = errors.New("the record has no signature")
	errForged   = errors.New("the record was not signed with the pepper of this installation")
)

// Encode encodes a record with its signature under the pepper. Without one a record grants nothing.
func Encode(pepper []byte, rec *eventsv1.KeyRecord) ([]byte, error) {
	unsigned := proto.CloneOf(rec)
	unsigned.Signature = nil
	value, err := unsigned.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encoding key %s: %w", rec.Id, err)
	}
	signature := sign(pepper, value)
	value = protowire.AppendTag(value, fieldSignature, protowire.BytesType)
	return protowire.AppendBytes(value, signature[:]), nil
}

func sign(pepper, value []byte) (signature [sha256.Size]byte) {
	mac := hmac.New(sha256.New, pepper)
	mac.Write([]byte(signedBegin))
	mac.Write(value)
	mac.Sum(signature[:0])
	return signature
}

// Signed reports whether the value of a record of keys.v1 was signed with the pepper.
func Signed(pepper, value []byte) bool { return verify(pepper, value) == nil }

// verify reports whether a record was written by who knows the pepper. The signature is of the very bytes before it, so that
// a record of a later version, with fields that this one does not know, holds too.
func verify(pepper, value []byte) error {
	tail := protowire.AppendTag(nil, fieldSignature, protowire.BytesType)
	tail = protowire.AppendVarint(tail, sha256.Size)
	at := len(value) - len(tail) - sha256.Size
	if at < 0 || !bytes.Equal(value[at:at+len(tail)], tail) {
		return errUnsigned
	}
	want := sign(pepper, value[:at])
	if !hmac.Equal(value[at+len(tail):], want[:]) {
		return errForged
	}
	return nil
}
