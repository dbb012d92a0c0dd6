package symbols

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

const (
	maxMappings = 1_000
	// maxKept bounds the mappings that are held: sixteen venues list some ten thousand symbols.
	maxKept = 100_000
	// mappingsFor is how long mappings are answered again: to find when each was first read looks at all ticks that are
	// kept, and a new one is a listing or an operator's word.
	mappingsFor = 5 * time.Minute
)

var mappingsAsOfParam = query.AsOfParam("Point in time: the mappings that held then, by the ticks and overrides that had been read. Default: now.")

func (u *Unit) mappings() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/symbols/mappings", ID: "listSymbolMappings", Tag: "symbols",
		Summary:     "Mappings of venues' symbols to coins",
		Description: "Overrides first, then the symbols of venues whose ticks are stored.",
		Params: []query.Param{{Name: "limit", Kind: query.Integer, Default: "100", Min: 1, Max: maxMappings, Doc: "Maximum number of mappings."},
			{Name: "offset", Kind: query.Integer, Default: "0", Min: 0, Max: maxKept, Doc: "Mappings to skip."}, mappingsAsOfParam},
		Body: MappingsBody{}, Handle: u.getMappings,
	}
}

func (u *Unit) getMappings(ctx context.Context, r *query.Request) (query.Answer, error) {
	now := u.catalog.Snapshot()
	var kept []schemas.SymbolMapping
	var err error
	timestamp := u.timestamp(now)
	if at, past := r.Time(asOfParam.Name); past {
		kept, err = u.MappingsAsOf(ctx, at)
		err, timestamp = query.FaultOfPast(err, at), query.FormatTime(at.UnixNano())
	} else {
		kept, err = u.readMappings(ctx, r.Now)
	}
	if err != nil {
		return query.Answer{}, err
	}
	body := MappingsBody{Data: MappingsData{Mappings: []Mapping{}, Timestamp: timestamp}}
	offset := min(len(kept), int(r.Integer("offset")))
	page := kept[offset:]
	page = page[:min(len(page), int(r.Integer("limit")))]
	for _, m := range page {
		body.Data.Mappings = append(body.Data.Mappings, Mapping{Source: m.Source, Symbol: m.Symbol, CatalogID: m.CoinID, Confidence: m.Confidence,
			Method: string(m.Method), CreatedAt: query.FormatTime(m.Since.UnixNano())})
	}
	body.Data.Count = len(body.Data.Mappings)
	body.Meta = MappingsMeta{query.Meta{Count: body.Data.Count, LastUpdated: body.Data.Timestamp, Clamped: r.Clamped()}, offset, len(kept), offset+len(page) < len(kept)}
	answer, err := query.Encode(body)
	answer.Simulated = now.Simulated
	return answer, err
}

// readMappings reads them at most once in mappingsFor; who comes meanwhile waits for it.
func (u *Unit) readMappings(ctx context.Context, now time.Time) ([]schemas.SymbolMapping, error) {
	u.mapping.Lock()
	defer u.mapping.Unlock()
	if age := now.Sub(u.keptAt); u.kept != nil && age >= 0 && age < mappingsFor {
		return u.kept, nil
	}
	found, err := u.history.Mappings(ctx, maxKept)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = []schemas.SymbolMapping{}
	}
	u.kept, u.keptAt = found, now
	return found, nil
}

// Mappings are those that hold now. It is for explanations.
func (u *Unit) Mappings(ctx context.Context, now time.Time) ([]schemas.SymbolMapping, error) {
	return u.readMappings(ctx, now)
}
