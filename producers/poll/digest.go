package poll

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// entityKey names what a record of a source speaks of: a later record of the same name replaces it. It is empty for
// records that speak of nothing lasting; rates are among them: that one was unchanged is as much worth as that it changed.
func entityKey(rec *eventsv1.ReferenceRecord) string {
	switch b := rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Coin:
		return "coin " + b.Coin.Part + " " + b.Coin.SourceId
	case *eventsv1.ReferenceRecord_CoinMarket:
		return "market " + b.CoinMarket.SourceId
	case *eventsv1.ReferenceRecord_Stablecoin:
		return "stablecoin " + b.Stablecoin.SourceId
	case *eventsv1.ReferenceRecord_Protocol:
		return "protocol " + b.Protocol.Slug
	case *eventsv1.ReferenceRecord_ChainTvl:
		return "chain " + b.ChainTvl.Chain
	case *eventsv1.ReferenceRecord_FearGreed:
		return "fear and greed " + strconv.FormatInt(b.FearGreed.EventTime, 10)
	case *eventsv1.ReferenceRecord_Global:
		return "global"
	case *eventsv1.ReferenceRecord_CoinPast:
		return "past " + b.CoinPast.SourceId + " " + strconv.FormatInt(b.CoinPast.Day, 10)
	case *eventsv1.ReferenceRecord_DefiPast:
		return "past of defi " + strconv.FormatInt(b.DefiPast.EventTime, 10)
	case *eventsv1.ReferenceRecord_Notice:
		return "notice"
	}
	return ""
}

// digest is of the contents of a record, without the times at which it was reported and read.
func digest(rec *eventsv1.ReferenceRecord) [sha256.Size]byte {
	bare := proto.Clone(rec).(*eventsv1.ReferenceRecord)
	bare.Producer, bare.Epoch = "", 0
	switch b := bare.Body.(type) {
	case *eventsv1.ReferenceRecord_Coin:
		b.Coin.EventTime, b.Coin.IngestTime = 0, 0
	case *eventsv1.ReferenceRecord_CoinMarket:
		b.CoinMarket.IngestTime = 0 // an observation at another time is another one
	case *eventsv1.ReferenceRecord_Stablecoin:
		b.Stablecoin.EventTime, b.Stablecoin.IngestTime = 0, 0
	case *eventsv1.ReferenceRecord_Protocol:
		b.Protocol.EventTime, b.Protocol.IngestTime = 0, 0
	case *eventsv1.ReferenceRecord_ChainTvl:
		b.ChainTvl.IngestTime = 0
	case *eventsv1.ReferenceRecord_FearGreed:
		b.FearGreed.NextUpdate, b.FearGreed.IngestTime = 0, 0
	case *eventsv1.ReferenceRecord_Global:
		b.Global.IngestTime = 0
	case *eventsv1.ReferenceRecord_CoinPast:
		b.CoinPast.IngestTime = 0
	case *eventsv1.ReferenceRecord_DefiPast:
		b.DefiPast.IngestTime = 0
	case *eventsv1.ReferenceRecord_Notice:
		b.Notice.IngestTime = 0
	}
	// One process compares digests of one binary only, and those of the log are made again from what it holds.
	value, err := bare.MarshalVT()
	if err != nil {
		panic(err) // the only error is a buffer of the wrong size
	}
	return sha256.Sum256(value)
}

// valuesDigest is of all values of an answer, before anything is added that the answer does not contain: servers list the same
// in changing orders, and add their own clock. It is never 0.
func valuesDigest(readings *Readings) uint64 {
	sum := uint64(len(readings.Fixings) + len(readings.Records))
	for _, rec := range readings.Records {
		d := digest(rec)
		sum += binary.BigEndian.Uint64(d[:])
	}
	for _, f := range readings.Fixings {
		d := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s %d", f.Base, f.Quote, f.Rate, f.Date, unixNano(f.Event)))
		sum += binary.BigEndian.Uint64(d[:])
	}
	return max(sum, 1)
}

// unixNano is 0 for no time.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// setSource names whose record it is.
func setSource(rec *eventsv1.ReferenceRecord, slug string) {
	switch b := rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Coin:
		b.Coin.Source = slug
	case *eventsv1.ReferenceRecord_CoinMarket:
		b.CoinMarket.Source = slug
	case *eventsv1.ReferenceRecord_Stablecoin:
		b.Stablecoin.Source = slug
	case *eventsv1.ReferenceRecord_Protocol:
		b.Protocol.Source = slug
	case *eventsv1.ReferenceRecord_ChainTvl:
		b.ChainTvl.Source = slug
	case *eventsv1.ReferenceRecord_FearGreed:
		b.FearGreed.Source = slug
	case *eventsv1.ReferenceRecord_Global:
		b.Global.Source = slug
	case *eventsv1.ReferenceRecord_CoinPast:
		b.CoinPast.Source = slug
	case *eventsv1.ReferenceRecord_DefiPast:
		b.DefiPast.Source = slug
	case *eventsv1.ReferenceRecord_Rate:
		b.Rate.Source = slug
	}
}

// ingestTime is when a record was written, Unix nanoseconds; 0 where it has no such time.
func ingestTime(rec *eventsv1.ReferenceRecord) int64 {
	if at := ingestField(rec); at != nil {
		return *at
	}
	return 0
}

func ingestField(rec *eventsv1.ReferenceRecord) *int64 {
	switch b := rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Fixing:
		return &b.Fixing.IngestTime
	case *eventsv1.ReferenceRecord_Coin:
		return &b.Coin.IngestTime
	case *eventsv1.ReferenceRecord_CoinMarket:
		return &b.CoinMarket.IngestTime
	case *eventsv1.ReferenceRecord_Stablecoin:
		return &b.Stablecoin.IngestTime
	case *eventsv1.ReferenceRecord_Protocol:
		return &b.Protocol.IngestTime
	case *eventsv1.ReferenceRecord_ChainTvl:
		return &b.ChainTvl.IngestTime
	case *eventsv1.ReferenceRecord_FearGreed:
		return &b.FearGreed.IngestTime
	case *eventsv1.ReferenceRecord_Global:
		return &b.Global.IngestTime
	case *eventsv1.ReferenceRecord_CoinPast:
		return &b.CoinPast.IngestTime
	case *eventsv1.ReferenceRecord_DefiPast:
		return &b.DefiPast.IngestTime
	case *eventsv1.ReferenceRecord_Notice:
		return &b.Notice.IngestTime
	case *eventsv1.ReferenceRecord_Override:
		return &b.Override.Time
	case *eventsv1.ReferenceRecord_Rate:
		return &b.Rate.IngestTime
	case *eventsv1.ReferenceRecord_Listing:
		return &b.Listing.IngestTime
	}
	return nil
}
