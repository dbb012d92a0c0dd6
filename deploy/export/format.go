package export

import (
	"fmt"
	"slices"
	"strings"
)

// Format is one that files are written in.
type Format struct {
	Name string
	// suffix ends the names of files.
	suffix string
	// engine is ClickHouse's name of the format, and settings what it is written with.
	engine, settings string
	// gzip means that the output is compressed before it is written.
	gzip bool
	// flat means that it has no lists: columns that are lists are left out.
	flat bool
	// tardis means that rows have the columns of tardis.dev.
	tardis bool
	// count reads a file whole and counts its rows. The file must have exactly the columns.
	count func(f file, columns []string) (int64, error)
}

// bounds are settings of every statement. One thread: so the rows of a file come in blocks of the same size each time, and ingest
// is not disturbed. What does not fit is sorted on disk.
const bounds = "max_threads = 1, max_memory_usage = 1500000000, max_bytes_before_external_sort = 200000000, max_bytes_ratio_before_external_sort = 0, " +
	"max_execution_time = 7200, optimize_read_in_order = 1, session_timezone = 'UTC'"

// Formats are all of them.
var Formats = []Format{
	{
		Name: "parquet", suffix: ".parquet", engine: "Parquet", count: countParquet,
		settings: "output_format_parquet_compression_method = 'zstd', output_format_parquet_parallel_encoding = 0, output_format_parquet_row_group_size = 131072, output_format_parquet_row_group_size_bytes = 67108864, " +
			"output_format_parquet_string_as_string = 1, output_format_parquet_fixed_string_as_fixed_byte_array = 0",
	},
	{
		Name: "arrow", suffix: ".arrow", engine: "Arrow", count: countArrow,
		settings: "output_format_arrow_compression_method = 'zstd', output_format_arrow_string_as_string = 1, output_format_arrow_low_cardinality_as_dictionary = 0",
	},
	{
		Name: "csv", suffix: ".csv", engine: "CSVWithNames", flat: true, count: countCSV,
		settings: "format_csv_null_representation = '', date_time_output_format = 'iso', output_format_csv_crlf_end_of_line = 0",
	},
	{
		// https://docs.tardis.dev/downloadable-csv-files: commas, LF, no quotes, gzip.
		Name: "tardis-csv", suffix: ".csv.gz", engine: "CustomSeparatedWithNames", gzip: true, flat: true, tardis: true, count: countGzippedCSV,
		settings: `format_custom_escaping_rule = 'Raw', format_custom_field_delimiter = ',', format_custom_row_after_delimiter = '\n', format_custom_result_after_delimiter = ''`,
	},
}

// FormatNames are the names of all formats.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// FormatNamed finds one.
func FormatNamed(name string) (Format, error) {
	for _, f := range Formats {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("there is no format %q; there are %s", name, strings.Join(FormatNames(), ", "))
}

// writes reports why a dataset cannot be written in the format; nil if it can.
func (f Format) writes(d Dataset) error {
	if f.tardis && tardisColumns[d.Name] == nil {
		return fmt.Errorf("the format %s holds trades and quotes only; write %s as parquet, arrow or csv", f.Name, d.Name)
	}
	return nil
}

// tardisColumns are those of tardis.dev for a dataset, as expressions of our columns (https://docs.tardis.dev/downloadable-csv-files/data-types):
// times in microseconds; a cell without a value is empty. {exchange} is replaced by tardis' name of the venue. Venues' messages that
// quotes come from have no amounts that we keep.
var tardisColumns = map[string][]column{
	"trades": {
		{name: "exchange", expr: "{exchange}", comment: "Exchange, as tardis.dev names it"},
		{name: "symbol", expr: tardisSymbol, comment: "Symbol of the market as on the wire, upper case; of Bitfinex the pair"},
		{name: "timestamp", expr: "toUnixTimestamp64Micro(event_time)", comment: "When it happened at the exchange, microseconds; local_timestamp if it does not say"},
		{name: "local_timestamp", expr: "toUnixTimestamp64Micro(ingest_time)", comment: "When it was read, microseconds"},
		{name: "id", expr: "trade_id", comment: "Trade id of the exchange; empty if it has none"},
		{name: "side", expr: "if(side = '', 'unknown', toString(side))", comment: "Side of the taker: buy, sell or unknown"},
		{name: "price", expr: "ifNull(toString(price), '')", comment: "Price in the quote asset, exact"},
		{name: "amount", expr: "ifNull(toString(size), '')", comment: "Size in the base asset, exact"},
	},
	"quotes": {
		{name: "exchange", expr: "{exchange}", comment: "Exchange, as tardis.dev names it"},
		{name: "symbol", expr: tardisSymbol, comment: "Symbol of the market as on the wire, upper case; of Bitfinex the pair"},
		{name: "timestamp", expr: "toUnixTimestamp64Micro(event_time)", comment: "When it happened at the exchange, microseconds; local_timestamp if it does not say"},
		{name: "local_timestamp", expr: "toUnixTimestamp64Micro(ingest_time)", comment: "When it was read, microseconds"},
		{name: "ask_amount", expr: "''", comment: "Empty: amounts are not kept"},
		{name: "ask_price", expr: "ifNull(toString(ask), '')", comment: "Best ask in the quote asset, exact"},
		{name: "bid_price", expr: "ifNull(toString(bid), '')", comment: "Best bid in the quote asset, exact"},
		{name: "bid_amount", expr: "''", comment: "Empty: amounts are not kept"},
	},
}

// tardisSymbol is a market as tardis.dev spells it: Bitfinex calls BTCUSD tBTCUSD.
const tardisSymbol = "upper(if(venue = 'bitfinex', substring(symbol, 2), symbol))"

// tardisExchanges are the venues that tardis.dev names otherwise than we do (https://api.tardis.dev/v1/exchanges).
var tardisExchanges = map[string]string{
	"bybit": "bybit-spot", "cryptocom": "crypto-com", "gate": "gate-io", "htx": "huobi", "okx": "okex",
}

// tardisExchange is tardis' name of a venue.
func tardisExchange(venue string) string {
	if name, ok := tardisExchanges[venue]; ok {
		return name
	}
	return venue
}

// column is one of a file.
type column struct {
	name, kind, comment string
	// expr is what it is in the tables, in the form that is written.
	expr string
}

func namesOf(columns []column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return slices.Clip(names)
}
