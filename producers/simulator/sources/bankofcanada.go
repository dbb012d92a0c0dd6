package sources

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/provider"
)

// bankOfCanada serves the daily rates of the Canadian dollar by Valet's route of series, as described on
// https://www.bankofcanada.ca/valet/docs.
func bankOfCanada() Source {
	return Source{
		Slug: "bankofcanada", Base: "/valet", Tagged: true, MaxAge: time.Hour,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			return map[string]http.HandlerFunc{"GET /valet/observations/{series}/json": func(w http.ResponseWriter, req *http.Request) { r.observations(w, req) }}
		},
	}
}

type valetSeries struct {
	Label       string            `json:"label"`
	Description string            `json:"description"`
	Dimension   map[string]string `json:"dimension"`
}

// observations answers with the working days from start_date on, or with the most recent ones, oldest first.
func (r *Reference) observations(w http.ResponseWriter, req *http.Request) {
	refuse := func(status int, message string) {
		provider.Respond(w, status, map[string]string{"message": message, "docs": "https://www.bankofcanada.ca/valet/docs"})
	}
	names := strings.Split(req.PathValue("series"), ",")
	detail := map[string]valetSeries{}
	for _, name := range names {
		code, ok := strings.CutPrefix(name, "FXCAD")
		if !ok || r.world.Fiats[code] == nil {
			refuse(http.StatusNotFound, "Series "+name+" not found.")
			return
		}
		detail[name] = valetSeries{"CAD/" + code, "Canadian dollar to " + code + " daily exchange rate", map[string]string{"key": "d", "name": "Date"}}
	}
	query := req.URL.Query()
	newest := workingDay(r.Now())
	from, ok := dayOf(query.Get("start_date"), newest)
	if !ok {
		refuse(http.StatusBadRequest, "Bad start_date format.")
		return
	}
	recent := longestRange
	if text := query.Get("recent"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			refuse(http.StatusBadRequest, "Bad recent observations request parameters, must be numeric")
			return
		}
		recent, from = min(n, longestRange), time.Time{}
	}
	days := []map[string]any{}
	for day := newest; !day.Before(from) && len(days) < recent; day = day.AddDate(0, 0, -1) {
		if weekend(day) {
			continue
		}
		at := day.Add(fixedAt).UnixNano()
		observation := map[string]any{"d": day.Format(time.DateOnly)}
		for _, name := range names {
			rate := r.world.Fiats["CAD"].At(at) / r.world.Fiats[strings.TrimPrefix(name, "FXCAD")].At(at)
			observation[name] = map[string]string{"v": fiveDigits(rate)}
		}
		days = append([]map[string]any{observation}, days...)
	}
	provider.Respond(w, http.StatusOK, map[string]any{
		"terms": map[string]string{"url": "https://www.bankofcanada.ca/terms/"}, "seriesDetail": detail, "observations": days,
	})
}
