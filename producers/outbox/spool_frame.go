package outbox

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// A frame of the spool is
//
//	uint32 length of the payload | uint32 CRC-32C of the payload | payload
//
// and the payload
//
//	byte topic, bit 7: round | uvarint partition | int64 log time, ns | int64 epoch | uvarint length of the key | key | value
//
// Fixed-width integers are little-endian. A key length of 0 is a record without a key.
const (
	frameHeader = 8
	// maxPayload bounds a frame, so that a damaged length never asks for gigabytes.
	maxPayload = 1 << 20
	roundBit   = 0x80
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	// errFrameShort means that the bytes end before the frame does.
	errFrameShort = errors.New("frame is cut short")
	// errFrameDamaged means that the bytes are no frame of this spool.
	errFrameDamaged = errors.New("frame is damaged")
)

func appendFrame(b []byte, r *record) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHeader)...)
	topic := r.topic
	if r.round {
		topic |= roundBit
	}
	b = append(b, topic)
	b = binary.AppendUvarint(b, uint64(r.partition))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.at.UnixNano()))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.epoch))
	b = binary.AppendUvarint(b, uint64(len(r.kgo.Key)))
	b = append(b, r.kgo.Key...)
	b = append(b, r.kgo.Value...)
	payload := b[start+frameHeader:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// frameLength returns how many bytes the frame at the start of b has, its header included.
func frameLength(b []byte) (int, error) {
	if len(b) < frameHeader {
		return 0, errFrameShort
	}
	n := binary.LittleEndian.Uint32(b)
	if n > maxPayload {
		return 0, errFrameDamaged
	}
	return frameHeader + int(n), nil
}

// checkFrame returns the payload of the frame at the start of b and the frame's length.
func checkFrame(b []byte) (payload []byte, n int, err error) {
	n, err = frameLength(b)
	if err != nil {
		return nil, 0, err
	}
	if len(b) < n {
		return nil, 0, errFrameShort
	}
	payload = b[frameHeader:n]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, 0, errFrameDamaged
	}
	return payload, n, nil
}

// decodeFrame returns the record of the frame at the start of b, which it copies, and the frame's length.
func decodeFrame(b []byte) (*record, int, error) {
	payload, n, err := checkFrame(b)
	if err != nil {
		return nil, 0, err
	}
	if len(payload) == 0 {
		return nil, 0, errFrameDamaged
	}
	topic, rest := payload[0], payload[1:]
	partition, width := binary.Uvarint(rest)
	if width <= 0 || partition > 1<<31-1 || topic&^roundBit >= topicCount || len(rest) < width+16 {
		return nil, 0, errFrameDamaged
	}
	rest = rest[width:]
	at, epoch := int64(binary.LittleEndian.Uint64(rest)), int64(binary.LittleEndian.Uint64(rest[8:]))
	rest = rest[16:]
	keyLength, width := binary.Uvarint(rest)
	if width <= 0 || keyLength > uint64(len(rest)-width) {
		return nil, 0, errFrameDamaged
	}
	rest = rest[width:]

	r := takeRecord(len(rest))
	r.buf = append(r.buf, rest...)
	r.round = topic&roundBit != 0
	r.at, r.epoch = time.Unix(0, at), epoch
	var key []byte
	if keyLength > 0 {
		key = r.buf[:keyLength:keyLength]
	}
	r.address(topic&^roundBit, int32(partition), key, r.buf[keyLength:])
	return r, n, nil
}
