package embedded

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is what is read of a RecordBatch (https://kafka.apache.org/documentation/#recordbatch) in a segment.
type batch struct {
	// at and size are its place in the file, in bytes.
	at, size int
	// first and next are its offsets, [first, next).
	first, next int64
	// oldest and newest are its records' timestamps, Unix milliseconds.
	oldest, newest int64
}

const (
	batchHeader   = 61
	maxBatchBytes = 1 << 30
)

// batchAt reads the batch that begins at a byte of a segment; false if no whole one does whose checksum is right.
func batchAt(raw []byte, at int) (batch, bool) {
	b, ok := headerAt(raw, at)
	if !ok || at+b.size > len(raw) {
		return batch{}, false
	}
	stored := binary.BigEndian.Uint32(raw[at+17:])
	return b, crc32.Checksum(raw[at+21:at+b.size], castagnoli) == stored
}

// headerAt reads a batch's header and does not look at its checksum.
func headerAt(raw []byte, at int) (batch, bool) {
	if at+batchHeader > len(raw) {
		return batch{}, false
	}
	h := raw[at:]
	length := int64(binary.BigEndian.Uint32(h[8:]))
	first, delta := int64(binary.BigEndian.Uint64(h)), int64(int32(binary.BigEndian.Uint32(h[23:])))
	if h[16] != 2 || length < batchHeader-12 || length > maxBatchBytes || first < 0 || delta < 0 {
		return batch{}, false
	}
	return batch{
		at: at, size: 12 + int(length), first: first, next: first + delta + 1,
		oldest: int64(binary.BigEndian.Uint64(h[27:])), newest: int64(binary.BigEndian.Uint64(h[35:])),
	}, true
}

// wholeBatches reads all batches of a segment whose checksums are right and whose offsets ascend, also those after
// bytes that are not a batch.
func wholeBatches(raw []byte) (batches []batch) {
	for at := 0; at+batchHeader <= len(raw); {
		b, ok := batchAt(raw, at)
		if ok && (len(batches) == 0 || b.first >= batches[len(batches)-1].next) {
			batches = append(batches, b)
			at += b.size
			continue
		}
		at++
	}
	return batches
}

// keeper makes a batch without records that covers the offsets [first, next): without it the broker would give them
// out again. Compaction leaves such batches, so every client passes over them.
func keeper(first, next, timestamp int64) []byte {
	b := make([]byte, batchHeader)
	binary.BigEndian.PutUint64(b, uint64(first))
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	binary.BigEndian.PutUint32(b[23:], uint32(next-first-1))
	binary.BigEndian.PutUint64(b[27:], uint64(timestamp))
	binary.BigEndian.PutUint64(b[35:], uint64(timestamp))
	binary.BigEndian.PutUint64(b[43:], ^uint64(0)) // no producer
	binary.BigEndian.PutUint16(b[51:], ^uint16(0))
	binary.BigEndian.PutUint32(b[53:], ^uint32(0))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}
