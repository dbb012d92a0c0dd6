package engine

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// The shape of a ticks table.
const ticksTable = `CREATE TABLE ticks (
	coin LowCardinality(String), venue LowCardinality(String), at DateTime64(3, 'UTC'), ingested DateTime64(3, 'UTC'),
	price Float64, size Float64, version UInt64, late Bool
) ENGINE = MergeTree PARTITION BY toYYYYMM(at) ORDER BY (coin, venue, at)`

func benchmarkInsert(b *testing.B, size int) {
	db := connect(b, openEngine(b))
	exec(b, db, ticksTable)
	coins, venues := []string{"btc", "eth", "sol", "xrp", "ada"}, []string{"kraken", "coinbase", "binance"}
	coin, venue := make([]string, size), make([]string, size)
	at, price, version, late := make([]time.Time, size), make([]float64, size), make([]uint64, size), make([]bool, size)
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range size {
		coin[i], venue[i], at[i] = coins[i%len(coins)], venues[i%len(venues)], start.Add(time.Duration(i)*time.Millisecond)
		price[i], version[i] = float64(i), uint64(i)
	}
	ctx := clickhouse.Context(b.Context(), clickhouse.WithColumnNamesAndTypes([]clickhouse.ColumnNameAndType{
		{Name: "coin", Type: "LowCardinality(String)"}, {Name: "venue", Type: "LowCardinality(String)"},
		{Name: "at", Type: "DateTime64(3, 'UTC')"}, {Name: "ingested", Type: "DateTime64(3, 'UTC')"},
		{Name: "price", Type: "Float64"}, {Name: "size", Type: "Float64"}, {Name: "version", Type: "UInt64"}, {Name: "late", Type: "Bool"},
	}))
	b.ReportAllocs()
	rows := 0
	for b.Loop() {
		batch, err := db.PrepareBatch(ctx, "INSERT INTO ticks")
		if err != nil {
			b.Fatal(err)
		}
		for i, column := range []any{coin, venue, at, at, price, price, version, late} {
			if err := batch.Column(i).Append(column); err != nil {
				b.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			b.Fatal(err)
		}
		rows += size
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkInsert_Columns10k(b *testing.B)  { benchmarkInsert(b, 10_000) }
func BenchmarkInsert_Columns100k(b *testing.B) { benchmarkInsert(b, 100_000) }

// The anchor of both: the engine fills the same table by itself.
func BenchmarkInsert_InsideTheEngine100k(b *testing.B) {
	db := connect(b, openEngine(b))
	exec(b, db, ticksTable)
	for b.Loop() {
		exec(b, db, `INSERT INTO ticks SELECT ['btc','eth','sol','xrp','ada'][number % 5 + 1], ['kraken','coinbase','binance'][number % 3 + 1],
			toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + number / 1000 AS at, at, number, number, number, false FROM numbers(100000)`)
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkPointQuery(b *testing.B) {
	db := connect(b, openEngine(b))
	exec(b, db, ticksTable, `INSERT INTO ticks SELECT toString(number % 1000), 'kraken',
		toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + number / 1000 AS at, at, number, number, number, false FROM numbers(1000000)`)
	for b.Loop() {
		var price float64
		if err := db.QueryRow(b.Context(), "SELECT price FROM ticks WHERE coin = {coin:String} ORDER BY at DESC LIMIT 1", clickhouse.Named("coin", "77")).Scan(&price); err != nil {
			b.Fatal(err)
		}
		if price != 999077 {
			b.Fatalf("got %v, want 999077", price)
		}
	}
}

func BenchmarkSelect1(b *testing.B) {
	db := connect(b, openEngine(b))
	for b.Loop() {
		exec(b, db, "SELECT 1")
	}
}
