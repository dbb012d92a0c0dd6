package imports

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// maxFiles bounds a command.
const maxFiles = 10_000

// Request is what an import is asked for.
type Request struct {
	// Files are absolute paths on the machine of the instance, at most 10,000.
	Files []string `json:"files"`
	// Format is a name of Formats.
	Format string `json:"format"`
	// Venue and Market say whose candles they are where the file does not; Base and Quote the market's assets as the venue names them,
	// where its symbol does not show it; Interval (1m, 1h or 1d) their length.
	Venue    string `json:"venue,omitempty"`
	Market   string `json:"market,omitempty"`
	Base     string `json:"base,omitempty"`
	Quote    string `json:"quote,omitempty"`
	Interval string `json:"interval,omitempty"`
	// DryRun checks the files and writes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Confirm imports files whose prices are far from what is known.
	Confirm bool `json:"confirm,omitempty"`
}

// Validate names all that is wrong.
func (r Request) Validate() error {
	var faults []error
	if _, err := formatNamed(r.Format); err != nil {
		faults = append(faults, err)
	}
	switch {
	case len(r.Files) == 0:
		faults = append(faults, errors.New("name the files to import"))
	case len(r.Files) > maxFiles:
		faults = append(faults, fmt.Errorf("%d files are named, and one command takes at most %d: name fewer", len(r.Files), maxFiles))
	}
	for _, f := range r.Files {
		if !filepath.IsAbs(f) {
			faults = append(faults, fmt.Errorf("file %q has no absolute path", f))
			break
		}
	}
	if (r.Base == "") != (r.Quote == "") {
		faults = append(faults, errors.New("--base and --quote name the assets of a market together"))
	}
	if r.Interval != "" {
		if _, err := intervalNamed(r.Interval); err != nil {
			faults = append(faults, fmt.Errorf("--interval %w", err))
		}
	}
	return errors.Join(faults...)
}

// lengths are the candles that charts and tables are made of.
var lengths = map[string]time.Duration{"1m": time.Minute, "1h": time.Hour, "1d": 24 * time.Hour}

// intervalNamed reads the length of a candle, as a name or in seconds.
func intervalNamed(name string) (time.Duration, error) {
	for known, length := range lengths {
		if name == known || name == fmt.Sprint(int64(length/time.Second)) {
			return length, nil
		}
	}
	return 0, fmt.Errorf("%q is not kept: candles are of 1m, 1h or 1d, and others are made of these; import those", name)
}

// Format is a kind of file.
type Format struct {
	Name, Holds string
	// One of both: a file of candles, or of trades, which become candles.
	decoder func(r Request, path string) (decoder, error)
	trades  func(r Request, path string) (tradeDecoder, error)
}

// Formats are all that can be imported.
var Formats = []Format{
	{Name: "binance-klines", Holds: "klines of data.binance.vision, spot: SYMBOL-INTERVAL-DATE.zip, or the .csv in it", decoder: newKlines},
	{Name: "binance-trades", Holds: "trades of data.binance.vision, spot: SYMBOL-trades-DATE.zip, or the .csv in it", trades: newBinanceTrades},
	{Name: "binance-aggtrades", Holds: "aggregated trades of data.binance.vision, spot: SYMBOL-aggTrades-DATE.zip, or the .csv in it", trades: newBinanceAggTrades},
	{Name: "tardis-trades", Holds: "trades of tardis.dev, or of export --format tardis-csv: .csv.gz, or the .csv in it", trades: newTardisTrades},
	{Name: "ticks", Holds: "trades as CSV with a header: venue, symbol, time, price, size; those of export --dataset trades too", trades: newTicks},
	{Name: "candles", Holds: "CSV with a header: venue, symbol, open_time, open, high, low, close, volume", decoder: newCandles},
}

// FormatNames are the names of Formats.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

func formatNamed(name string) (Format, error) {
	for _, f := range Formats {
		if f.Name == name {
			return f, nil
		}
	}
	if name == "" {
		return Format{}, errors.New("--format is missing: one of " + strings.Join(FormatNames(), ", "))
	}
	if strings.Contains(name, "quotes") {
		return Format{}, fmt.Errorf("there is no format %q: %w", name, errQuotes)
	}
	return Format{}, fmt.Errorf("there is no format %q: take one of %s", name, strings.Join(FormatNames(), ", "))
}
