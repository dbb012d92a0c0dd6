package archive

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Partition is one partition of one incarnation of a topic.
type Partition struct {
	Topic string
	// TopicID is the broker's id of the topic, 32 hexadecimal digits. A topic that was deleted and made again has another
	// one, so that two logs are never taken for one.
	TopicID string
	Number  int32
}

// root begins the name of every object; another layout gets another one.
const root = "v1"

// Suffixes of the two objects of a segment.
const (
	dataSuffix    = ".parquet"
	sidecarSuffix = ".json"
)

// prefix begins the names of the objects of a partition.
func (p Partition) prefix() string {
	return path.Join(root, p.TopicID, p.Topic, strconv.Itoa(int(p.Number))) + "/"
}

// name begins those of the objects of the segment that begins at first. Names sort as offsets do.
func (p Partition) name(first int64) string { return p.prefix() + fmt.Sprintf("%020d", first) }

// dataName is a new name for the file of a segment. No two attempts share one, so that none overwrites what another has
// committed, and what was left unfinished is known by having no sidecar.
func (p Partition) dataName(first int64) string {
	var attempt [6]byte
	_, _ = rand.Read(attempt[:]) // never fails
	return p.name(first) + "-" + hex.EncodeToString(attempt[:]) + dataSuffix
}

// firstOf is the offset that the name of an object of the partition begins with.
func (p Partition) firstOf(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, p.prefix())
	if !ok || len(digits) < 20 {
		return 0, false
	}
	first, err := strconv.ParseInt(digits[:20], 10, 64)
	return first, err == nil
}

func (p Partition) String() string { return p.Topic + "/" + strconv.Itoa(int(p.Number)) }

// Segment is the content of a sidecar: what its Parquet file holds, and how that is checked.
type Segment struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	// First is the offset of the first record, Next that after the last. Every offset between is there.
	First int64 `json:"first"`
	Next  int64 `json:"next"`
	// MinTime and MaxTime are the least and greatest timestamp of its records, Unix milliseconds.
	MinTime int64 `json:"minTime"`
	MaxTime int64 `json:"maxTime"`
	// Values is the size of all values before compression, Size that of the Parquet file; bytes.
	Values int64 `json:"values"`
	Size   int64 `json:"size"`
	// Data is the name of the Parquet file.
	Data string `json:"data"`
	// SHA256 is that of the Parquet file.
	SHA256 string `json:"sha256"`
	// Digest is the SHA-256 of the records as Digest writes them, whatever the file's format.
	Digest string `json:"digest"`
	// Chain is the SHA-256 of the chain of the segment before, 32 zero bytes for the first one, and Digest.
	Chain string `json:"chain"`
	// Schema is the SHA-256 of the descriptor set that the values are read by; it lies at v1/schemas/<it>.binpb.
	Schema string `json:"schema"`
}

// Source is the partition that the segment is of.
func (s Segment) Source() Partition {
	return Partition{Topic: s.Topic, TopicID: s.TopicID, Number: s.Partition}
}

// SidecarName is the name of its sidecar.
func (s Segment) SidecarName() string { return s.Source().name(s.First) + sidecarSuffix }

// maxSidecar bounds a sidecar that is read; bytes.
const maxSidecar = 64 << 10

// decodeSegment reads a sidecar. The name is where it lies, which has to be where its content says.
func decodeSegment(name string, content []byte) (Segment, error) {
	var s Segment
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("reading sidecar %s: %w", name, err)
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("reading sidecar %s: %w", name, err)
	}
	if s.SidecarName() != name {
		return s, fmt.Errorf("reading sidecar %s: its content is of %s: it was moved or copied from elsewhere", name, s.SidecarName())
	}
	return s, nil
}

func (s Segment) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if s.Topic == "" || strings.ContainsAny(s.Topic, "/\\") {
		fault("topic %q is not a name of a topic", s.Topic)
	}
	if s.Partition < 0 {
		fault("partition is %d", s.Partition)
	}
	if s.First < 0 || s.Next <= s.First {
		fault("first is %d and next %d: there is no record between", s.First, s.Next)
	}
	if s.MinTime > s.MaxTime {
		fault("minTime %d is after maxTime %d", s.MinTime, s.MaxTime)
	}
	if s.Size <= 0 || s.Values < 0 {
		fault("size is %d and values %d", s.Size, s.Values)
	}
	if first, ok := s.Source().firstOf(s.Data); !ok || first != s.First || !strings.HasSuffix(s.Data, dataSuffix) {
		fault("data %q is not a file of this segment", s.Data)
	}
	for _, field := range []struct {
		name, value string
		digits      int
	}{{"topicId", s.TopicID, 32}, {"sha256", s.SHA256, 64}, {"digest", s.Digest, 64}, {"chain", s.Chain, 64}, {"schema", s.Schema, 64}} {
		if raw, err := hex.DecodeString(field.value); err != nil || 2*len(raw) != field.digits {
			fault("%s %q is not %d hexadecimal digits", field.name, field.value, field.digits)
		}
	}
	return errors.Join(faults...)
}
