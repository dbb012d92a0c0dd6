package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// RecordJSON is a value of the topic by protobuf's rules for JSON: 64-bit numbers are strings and bytes base64. No value,
// which ends a key of a compacted topic, is null. What the fields mean is not checked.
func (t Topic) RecordJSON(value []byte) (json.RawMessage, error) {
	if value == nil {
		return json.RawMessage("null"), nil
	}
	message := messageOf(t.New()).Interface()
	if err := proto.Unmarshal(value, message); err != nil {
		// protobuf varies its spaces from one build to another, on purpose.
		return nil, fmt.Errorf("decoding %s: %s", t.Message(), strings.ReplaceAll(err.Error(), "\u00a0", " "))
	}
	encoded, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", t.Message(), err)
	}
	// protojson varies its spaces on purpose.
	var compact bytes.Buffer
	if err := json.Compact(&compact, encoded); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", t.Message(), err)
	}
	return compact.Bytes(), nil
}
