package schemas

import (
	"hash/crc32"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// RateSecond is the second (Unix) of the minute before its time that a rate is given where a minute of rates is sent piece by
// piece: there are thousands in one. It is the same wherever it is computed; SQL has it as
// toUnixTimestamp(time) - CRC32(concat(source, '|', category, '|', pool)) % 60.
func RateSecond(e *eventsv1.RateEntry) int64 {
	return e.Time/int64(time.Second) - int64(crc32.ChecksumIEEE([]byte(e.Source+"|"+e.Category+"|"+e.Pool))%60)
}
