package explain

import (
	"fmt"
	"math"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// Node is a number with what it was made of.
type Node struct {
	Number string   `json:"number" example:"market/bitcoin/marketCap" doc:"Name of the number. What can be asked for again has one of the forms that an unknown number is answered with; the others name what a record of the log states"`
	Value  *float64 `json:"value,omitempty" doc:"The number as it is stored and served; absent if it is not known"`
	Unit   string   `json:"unit,omitempty" example:"USD" doc:"Currency, coin, percent, bps, or empty for a count, a rank or an index"`
	Time   string   `json:"time,omitempty" format:"date-time" doc:"Which time the number is for: of a minute its end, of a candle its start"`
	// Published is only known of prices.
	Published  string   `json:"published,omitempty" format:"date-time" doc:"When it was written, in log time"`
	Method     *Method  `json:"method,omitempty" doc:"How it is made of its inputs; absent if a record states it"`
	Reproduced *bool    `json:"reproduced,omitempty" doc:"Whether computing it again from records of the log gives the same number to the last digit, or but for rounding if the note says so; absent if that was not tried: at the bound of depth, and for what a record states"`
	Recomputed *float64 `json:"recomputed,omitempty" doc:"The recomputed number, if it differs"`
	Note       string   `json:"note,omitempty" doc:"Why it does not count, or was not computed again"`
	Inputs     []*Node  `json:"inputs,omitempty" doc:"What it was made of"`
	LeftOut    *LeftOut `json:"leftOut,omitempty" doc:"The inputs that are not shown"`
	Records    []Place  `json:"records,omitempty" doc:"The records of the log that state it, or that hold what it was made of"`
}

// Method is the rule that makes a number.
type Method struct {
	Name    string `json:"name" example:"median" doc:"Name of the rule"`
	Version uint32 `json:"version" doc:"Version of the rule"`
	Formula string `json:"formula" doc:"In terms of the inputs"`
}

// LeftOut counts inputs.
type LeftOut struct {
	Count int      `json:"count" doc:"Number of inputs that are not shown"`
	Sum   *float64 `json:"sum,omitempty" doc:"Of their values, if the method adds them"`
}

// Place is a record of the log.
type Place struct {
	Topic     string `json:"topic" example:"prices.v1"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset" doc:"Offset of the record in its partition"`
	Href      string `json:"href" example:"/api/v1/log/prices.v1/0/17" doc:"Where the record is answered"`
}

func place(topic string, partition int32, offset int64) Place {
	return Place{topic, partition, offset, fmt.Sprintf("/api/v1/log/%s/%d/%d", topic, partition, offset)}
}

// shown bounds the inputs that a node lists.
const shown = 20

// compare reports whether a recomputation gave the number of the node. Nil is a value that is not known.
func (n *Node) compare(recomputed *float64) {
	same := (n.Value == nil) == (recomputed == nil) && (n.Value == nil || *n.Value == *recomputed)
	n.Reproduced = &same
	if !same {
		n.Recomputed = recomputed
	}
}

// anyOrder is the note of a sum that equals its recomputation but for rounding.
const anyOrder = "the tables add its parts up in an order of their own: it equals their sum in the order of time but for the rounding of the additions"

// compareSum compares a sum of so many floats, none negative, that was added up in an unknown order. Two such sums differ by at most two times one less than
// their number of roundings, each of half of the last digit (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2).
func (n *Node) compareSum(recomputed float64, parts int) {
	n.compare(&recomputed)
	if *n.Reproduced || n.Value == nil {
		return
	}
	const halfDigit = 0x1p-53
	if math.Abs(*n.Value-recomputed) <= 2*float64(parts-1)*halfDigit*max(*n.Value, recomputed) {
		*n.Reproduced, n.Note = true, anyOrder
	}
}

// recorded compares what a source reports with its record. Nothing is computed again of such a number, so it is not said to be reproduced; that it
// differs is.
func (n *Node) recorded(value *float64) {
	if n.Value == nil || value == nil || *n.Value != *value {
		n.compare(value)
		return
	}
	n.Note = "its source states it, which is not computed again"
}

// again is what computing a number again gave; nil where that was not tried or not possible.
func (n *Node) again() *float64 {
	if n.Reproduced != nil && *n.Reproduced {
		return n.Value
	}
	return n.Recomputed
}

// notReproduced reports why a number could not be computed again, which counts as a number that differs.
func (n *Node) notReproduced(why string) {
	no := false
	n.Reproduced, n.Note = &no, why
}

// headline is a number without its inputs.
func headline(number string, value *float64, unit string, at int64) *Node {
	return &Node{Number: number, Value: value, Unit: unit, Time: query.FormatTime(at)}
}

// stated is a number that a record states.
func stated(number string, value *float64, unit string, at int64, records ...Place) *Node {
	n := headline(number, value, unit, at)
	n.Records = records
	return n
}

// fewer keeps as many inputs as are shown, and counts the others.
func (n *Node) fewer(sum bool) {
	if len(n.Inputs) <= shown {
		return
	}
	rest := n.Inputs[shown:]
	n.LeftOut = &LeftOut{Count: len(rest)}
	if sum {
		total := 0.0
		for _, in := range rest {
			if in.Value != nil {
				total += *in.Value
			}
		}
		n.LeftOut.Sum = &total
	}
	n.Inputs = n.Inputs[:shown]
}

// partition is that of a coin's records.
func partition(coinID string, partitions int32) int32 { return views.PartitionOf(coinID, partitions) }
