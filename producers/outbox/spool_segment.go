package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A segment is a file named by its number, its header
//
//	8 bytes magic | uint64 number | uint64 covers | uint32 CRC-32C of the 24 bytes before
//
// and then frames. Covers is the highest number whose records this segment contains: its own, or
// more where it holds the gaps that took the place of dropped segments.
const (
	segmentHeader = 28
	segmentSuffix = ".spool"
	segmentMagic  = "mlspool1"
)

type segment struct {
	number, covers uint64
	// size is where its last whole frame ends.
	size int64
	// gaps means that it holds gaps in the place of dropped records.
	gaps bool
}

func segmentName(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", number, segmentSuffix))
}

// segmentNumber returns the number in a segment's file name.
func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

func appendSegmentHeader(b []byte, number, covers uint64) []byte {
	start := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint64(b, number)
	b = binary.LittleEndian.AppendUint64(b, covers)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

var (
	errNoSegment = errors.New("no segment header")
	// errSegmentEmpty is a file that was killed before its header was whole: it never held a record.
	errSegmentEmpty = errors.New("segment without a header")
)

func decodeSegmentHeader(b []byte) (number, covers uint64, err error) {
	if len(b) < segmentHeader || string(b[:8]) != segmentMagic ||
		crc32.Checksum(b[:24], castagnoli) != binary.LittleEndian.Uint32(b[24:]) {
		return 0, 0, errNoSegment
	}
	return binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), nil
}

// openSegment reads the header of the segment of a number. The size of what it returns is the file's.
func openSegment(dir string, want uint64) (segment, error) {
	f, err := os.Open(segmentName(dir, want))
	if err != nil {
		return segment{}, fmt.Errorf("opening segment: %w", err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return segment{}, fmt.Errorf("reading segment size: %w", err)
	}
	header := make([]byte, segmentHeader)
	if _, err := io.ReadFull(f, header); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return segment{}, errSegmentEmpty
	} else if err != nil {
		return segment{}, fmt.Errorf("reading segment header: %w", err)
	}
	number, covers, err := decodeSegmentHeader(header)
	if err != nil || number != want {
		return segment{number: want, size: stat.Size()}, errNoSegment
	}
	return segment{number: number, covers: covers, size: stat.Size(), gaps: covers != number}, nil
}

// wholeFrames returns where the last whole frame of a segment's file ends: what a killed process
// left after it is not a record.
func wholeFrames(name string) (int64, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("reading segment: %w", err)
	}
	end := segmentHeader
	for {
		_, n, err := checkFrame(b[end:])
		if err != nil {
			return int64(end), nil
		}
		end += n
	}
}
