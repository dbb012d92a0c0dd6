package reference

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
)

// ecb reads the euro foreign exchange reference rates of the European Central Bank: units of a currency for
// one euro, fixed at about 14:10 and published at about 16:00 Frankfurt time on working days of TARGET. The
// files are described on
// https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/html/index.en.html,
// the series of the data portal, which holds the same rates, on https://data.ecb.europa.eu/help/api/data.
func ecb() poll.Source {
	return poll.Source{
		Slug: "ecb", Name: "European Central Bank", Version: 1,
		URL:         "https://www.ecb.europa.eu/stats/eurofxref",
		License:     "free reuse, unchanged and with the source named (statistics of the ESCB)",
		Terms:       "https://www.ecb.europa.eu/home/disclaimer/html/index.en.html",
		Attribution: "Source: ECB euro foreign exchange reference rates",
		History:     ecbHistory,
		Past: dailyFile("eurofxref", "EUR", ecbWhole, time.Date(1999, 1, 4, 0, 0, 0, 0, time.UTC),
			producers.Recorded("ecb/eurofxref-hist-90d-2019.json.gz")),
		Feeds: []poll.Feed{{Name: "daily",
			Evidence: producers.Recorded("ecb/eurofxref-daily-2015-01-07.json"),
			Interval: time.Hour, Requests: poll.Fixed("/eurofxref-daily.xml")}},
		Kinds: []string{poll.KindFiat},
		// The bank names no limit; a start takes two requests, an hour one.
		Moves:    48 * time.Hour, // at Easter TARGET rests for four days
		Requests: 4, Per: time.Minute,
		MaxBody: 16 << 20, // the file of all days since 1999 has about 8 MB, that of 90 days 100 kB
		Decode:  decodeECB,
	}
}

const ecbWhole = "/eurofxref-hist.xml"

// ecbHistory is the file of all days since 1999 for a log that holds none, or none of the last 90: candles of all
// years are converted with them.
func ecbHistory(k poll.Known) []string {
	if k.Newest.Before(k.Now.AddDate(0, 0, -80)) {
		return []string{ecbWhole}
	}
	return []string{"/eurofxref-hist-90d.xml"}
}

// decodeECB reads the XML of one day, of 90 days or of all, the CSV of all days with
// one column a currency, and the CSV of the data portal with one row a rate.
func decodeECB(_ string, body []byte, out *poll.Readings) error {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\uFEFF")), " \t\r\n")
	var fixings []poll.Fixing
	var err error
	if bytes.HasPrefix(body, []byte("<")) {
		fixings, err = ecbXML(body)
	} else {
		fixings, err = ecbCSV(body)
	}
	switch {
	case err != nil:
		return err
	case len(fixings) == 0:
		return producers.Unreadable("no rates in it")
	}
	for _, f := range fixings {
		f.Base = "EUR"
		if f.Rate != "" && f.Rate != "N/A" && f.Rate != "NaN" { // how the files spell that there was no rate
			out.Fixing(f)
		}
	}
	return nil
}

const (
	ecbEnvelope = "http://www.gesmes.org/xml/2002-08-01"
	ecbCubes    = "http://www.ecb.int/vocabulary/2002-08-01/eurofxref"
	// ecbDepth is twice how deep the files are nested.
	ecbDepth = 8
)

// ecbXML reads <Envelope><Cube><Cube time=…><Cube currency=… rate=…/>. A document type is refused: the files
// have none, and it could define entities that grow without end.
func ecbXML(body []byte) ([]poll.Fixing, error) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	var fixings []poll.Fixing
	var date string
	depth := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return fixings, nil
		}
		if err != nil {
			return nil, producers.Unreadable("reading XML: %w", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return nil, producers.Unreadable("a document type in it")
		case xml.EndElement:
			depth--
			if depth == 2 {
				date = "" // the day ends
			}
		case xml.StartElement:
			depth++
			if depth == 1 && t.Name != (xml.Name{Space: ecbEnvelope, Local: "Envelope"}) {
				return nil, producers.Unreadable("a document %.40q and no envelope of rates", t.Name.Local)
			}
			if depth > ecbDepth {
				return nil, producers.Unreadable("elements nested deeper than %d", ecbDepth)
			}
			if t.Name != (xml.Name{Space: ecbCubes, Local: "Cube"}) {
				continue
			}
			if day := attribute(t, "time"); day != "" {
				date = day
			}
			if currency := attribute(t, "currency"); currency != "" {
				fixings = append(fixings, poll.Fixing{Quote: currency, Rate: attribute(t, "rate"), Date: date})
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func ecbCSV(body []byte) ([]poll.Fixing, error) {
	reader := csv.NewReader(bytes.NewReader(body))
	reader.TrimLeadingSpace, reader.ReuseRecord = true, true
	header, err := reader.Read()
	if err != nil {
		return nil, producers.Unreadable("reading CSV: %w", err)
	}
	header = slices.Clone(header)
	read := ecbSeries
	if header[0] == "Date" {
		read = ecbDays
	} else if !slices.Contains(header, "OBS_VALUE") {
		return nil, producers.Unreadable("columns %.80q of no known file", strings.Join(header, ","))
	}
	var fixings []poll.Fixing
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return fixings, nil
		}
		if err != nil {
			return nil, producers.Unreadable("reading CSV: %w", err)
		}
		fixings = read(fixings, header, row)
	}
}

// ecbDays reads a row "date, rate, rate, …"; the lines end with a comma.
func ecbDays(fixings []poll.Fixing, header, row []string) []poll.Fixing {
	for i := 1; i < len(row); i++ {
		if header[i] != "" {
			fixings = append(fixings, poll.Fixing{Quote: header[i], Rate: row[i], Date: row[0]})
		}
	}
	return fixings
}

// ecbSeries reads a row of series D.<currency>.EUR.SP00.A; others are left out. Not every answer has all
// columns of the key.
func ecbSeries(fixings []poll.Fixing, header, row []string) []poll.Fixing {
	var f poll.Fixing
	for i, column := range header {
		want := ""
		switch column {
		case "CURRENCY":
			f.Quote = row[i]
		case "TIME_PERIOD":
			f.Date = row[i]
		case "OBS_VALUE":
			f.Rate = row[i]
		case "FREQ":
			want = "D"
		case "CURRENCY_DENOM":
			want = "EUR"
		case "EXR_TYPE":
			want = "SP00"
		case "EXR_SUFFIX":
			want = "A"
		}
		if want != "" && row[i] != want {
			return fixings
		}
	}
	return append(fixings, f)
}
