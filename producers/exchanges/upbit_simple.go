package exchanges

import (
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// upbitSimple is the same under its short names: the fields are those of upbitEvent, in its order.
type upbitSimple struct {
	Type      string        `json:"ty"`
	Code      string        `json:"cd"`
	Market    string        `json:"-"`
	Price     producers.Num `json:"tp"`
	Size      producers.Num `json:"tv"`
	AskBid    string        `json:"ab"`
	ID        producers.Num `json:"sid"`
	Traded    producers.Num `json:"ttms"`
	Time      producers.Num `json:"tms"`
	Base24h   producers.Num `json:"atv24h"`
	Quote24h  producers.Num `json:"atp24h"`
	Stream    string        `json:"st"`
	StartUTC  string        `json:"cdttmu"`
	Open      producers.Num `json:"op"`
	High      producers.Num `json:"hp"`
	Low       producers.Num `json:"lp"`
	CandleVol producers.Num `json:"catv"`
}

// upbitRecorded also reads messages under short names, which a request may ask for and the engine does not.
type upbitRecorded struct{}

func (upbitRecorded) Decode(f adapter.Frame, out *adapter.Out) error {
	var short []upbitSimple
	if err := parseRows(f.Bytes, &short); err != nil {
		return err
	}
	return decodeUpbit(f.Bytes, short, out)
}
