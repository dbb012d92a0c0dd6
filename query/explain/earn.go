package explain

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// earnField is a number of a variant of an earn product. Of a rate the input is the entry's own APY, of a term what the entry has of it.
type earnField struct {
	name, unit, formula string
	rate                bool
	value               func(*eventsv1.EarnVariant) *float64
}

const (
	days       = "days"
	asReported = "as its source reports it"
	// tiersPart is the part of a name before the lower bound of a tier.
	tiersPart = "tiers"
)

var earnFields = []earnField{
	{"rate", percent, "APY of the entry of rates", true, func(v *eventsv1.EarnVariant) *float64 { return &v.Apy }},
	{"baseRate", percent, "the lowest of the APY without rewards in other tokens and of the tiers", true, func(v *eventsv1.EarnVariant) *float64 { return &v.BaseApy }},
	{"maxRate", percent, "the highest of the APY and of the tiers", true, func(v *eventsv1.EarnVariant) *float64 { return &v.MaxApy }},
	{"apr", percent, "APR of the entry of rates", true, func(v *eventsv1.EarnVariant) *float64 { return &v.Apr }},
	{"apy", percent, "APY of the entry of rates", true, func(v *eventsv1.EarnVariant) *float64 { return &v.Apy }},
	{"rewardRate", percent, "the part of the APY that is paid in other tokens", true, func(v *eventsv1.EarnVariant) *float64 { return v.RewardApy }},
	{"lockupDays", days, asReported, false, func(v *eventsv1.EarnVariant) *float64 { return v.LockupDays }},
	{"minDeposit", "", asReported, false, func(v *eventsv1.EarnVariant) *float64 { return amount(v.MinAmount) }},
	{"cap", "", asReported, false, func(v *eventsv1.EarnVariant) *float64 { return amount(v.MaxAmount) }},
	{"withdrawalNotice", days, asReported, false, func(v *eventsv1.EarnVariant) *float64 { return v.NoticeDays }},
	{"tvl", usd, "the TVL of the entry of rates", false, func(v *eventsv1.EarnVariant) *float64 { return v.TvlUsd }},
	{"confidence", "", "the product of a factor for each thing that speaks against the rate; see docs/formulas", true, func(v *eventsv1.EarnVariant) *float64 { return &v.Confidence }},
}

func earnFieldNames() []string {
	return namesOf(earnFields, func(f earnField) string { return f.name })
}

// earnTierFields are the numbers of a tier, which is named by its lower bound.
var earnTierFields = []string{"rate", "apr", "from", "to"}

// earnTier is a number of the tier of a variant that begins at an amount; false where there is no such number.
func earnTier(from, name string) (field earnField, ok bool) {
	begins, err := strconv.ParseFloat(from, 64)
	if err != nil || !slices.Contains(earnTierFields, name) {
		return field, false
	}
	field = earnField{name: name, unit: percent, formula: "the rate of the tier as its source reports it, by the conversion of the entry", rate: true}
	if name == "from" || name == "to" {
		field.unit, field.formula, field.rate = "", asReported, false
	}
	field.value = func(v *eventsv1.EarnVariant) *float64 {
		for _, t := range v.Tiers {
			if lower := amount(t.From); lower == nil && begins == 0 || lower != nil && *lower == begins {
				switch name {
				case "rate":
					return &t.Apy
				case "apr":
					return &t.Apr
				case "from":
					return &begins
				}
				return amount(t.To)
			}
		}
		return nil
	}
	return field, true
}

// amount reads a decimal of the log; nil where it is not one.
func amount(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &n
}

// earn explains a number of a variant of an earn product: its row is made again of the entry of rates that it was made of.
func (w *work) earn(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	product, id, wanted := parts[1], parts[2:len(parts)-1], parts[len(parts)-1]
	i := slices.IndexFunc(earnFields, func(f earnField) bool { return f.name == wanted })
	var field earnField
	tier := ""
	if at := len(id) - 2; at > 0 && id[at] == tiersPart {
		var ok bool
		if field, ok = earnTier(id[at+1], wanted); !ok {
			return nil, w.nearField(name, parts, len(parts)-1, earnTierFields)
		}
		tier, id = tiersPart+"/"+id[at+1]+"/", id[:at]
	} else if i < 0 {
		return nil, w.nearField(name, parts, len(parts)-1, earnFieldNames())
	} else {
		field = earnFields[i]
	}
	var variants []*eventsv1.EarnVariant
	var err error
	if product = strings.ToLower(product); w.past {
		variants, err = views.EarnVariantsAsOf(ctx, w.History, product, w.asOf)
	} else {
		variants, err = w.History.EarnVariantsAt(ctx, product, w.now)
	}
	if err != nil {
		return nil, query.FaultOfPast(err, w.asOf)
	}
	variant := strings.Join(id, "/")
	var row *eventsv1.EarnVariant
	ids := make([]string, len(variants))
	for i, v := range variants {
		if ids[i] = v.VariantId; v.VariantId == variant {
			row = v
		}
	}
	if row == nil {
		return nil, w.nearField(name, []string{"earn", product, variant, tier + wanted}, 2, ids)
	}
	w.simulated = w.simulated || row.Simulated
	n := headline("earn/"+row.ProductId+"/"+row.VariantId+"/"+tier+field.name, field.value(row), cmp.Or(field.unit, unitOfTerm(field.name, row)), row.Time)
	n.Method = &Method{Name: "earn-variant", Version: logic(schemas.TopicEarn), Formula: field.formula}
	if depth <= 0 {
		return n, nil
	}
	return n, w.earnAgain(ctx, n, row, field, depth)
}

// unitOfTerm is the coin where a term is an amount of it.
func unitOfTerm(name string, row *eventsv1.EarnVariant) string {
	if name == "confidence" {
		return ""
	}
	return row.CoinId
}

// earnAgain makes the row of a variant again and compares a number of it.
func (w *work) earnAgain(ctx context.Context, n *Node, row *eventsv1.EarnVariant, field earnField, depth int) error {
	at, ok, err := w.find(ctx, schemas.TopicEarn, 0, row.Time, row.Time, row.ProductId, func(rec eventsv1.Marked) bool {
		r, is := rec.(*eventsv1.EarnRecord)
		if !is || r.GetVariant().GetVariantId() != row.VariantId {
			return false
		}
		n.Method.Version = r.Mark.GetLogicVersion()
		return true
	})
	if err != nil {
		return err
	}
	if ok {
		n.Records = []Place{at}
	}
	entry, entryAt, err := w.entryOf(ctx, row)
	switch {
	case err != nil:
		return err
	case entry == nil:
		n.notReproduced("the entry of rates that it was made of is not in the log any more")
		return nil
	}
	again := schemas.NewEarnVariant(entry, row.Time)
	again.Status = row.Status // what became of the offer since
	again.Confidence = schemas.EarnConfidence(again)
	n.compare(field.value(again))
	in := stated("entry/"+entry.Source+"/"+entry.Category+"/"+entry.Pool+"/"+field.name, field.value(again), n.Unit, entry.Time, entryAt)
	if field.rate {
		in = stated(rateNumber(entry), &entry.Apy, percent, entry.Time, entryAt)
	}
	if w.expands(depth - 1) {
		if in, err = w.rateOf(ctx, entry, row.Time); err != nil {
			return err
		}
		in.Records = append(in.Records, entryAt)
	}
	n.Inputs = []*Node{in}
	return nil
}

// entryOf finds the entry of rates that the row of a variant was made of: the last one of its rate that was received at the row's time. It was written
// within an hour before the row, unless its source has been silent since; then within an hour after it was received.
func (w *work) entryOf(ctx context.Context, row *eventsv1.EarnVariant) (entry *eventsv1.RateEntry, at Place, err error) {
	for _, until := range []int64{row.Time, row.Heard + ratesRepeated} {
		_, err = w.scan(ctx, schemas.TopicRates, 0, until-ratesRepeated, min(until, row.Time), func(r *kgo.Record) bool {
			record, err := schemas.DecodeRecord(schemas.TopicRates, r.Value)
			rate, ok := record.(*eventsv1.RateRecord)
			if e := rate.GetEntry(); err == nil && ok && e.GetSource() == row.Source && e.GetCategory() == row.Category && e.GetPool() == row.Pool &&
				e.GetHeard() == row.Heard && schemas.EarnOffered(e) {
				entry, at = e, place(schemas.TopicRates, 0, r.Offset)
			}
			return true
		})
		if err != nil || entry != nil {
			return entry, at, err
		}
	}
	return nil, at, nil
}

// rateNumber names a rate.
func rateNumber(e *eventsv1.RateEntry) string {
	return "rate/" + e.Provider + "/" + e.Category + "/" + e.Pool
}
