-- +goose Up
-- Sources' own sums over the market, to compare ours with.
CREATE TABLE IF NOT EXISTS global_figures
(
    source           LowCardinality(String),
    ingest_time      DateTime64(9, 'UTC'),
    total_market_cap Nullable(Float64),
    total_volume_24h Nullable(Float64),
    btc_dominance    Nullable(Float64),
    eth_dominance    Nullable(Float64),
    active_coins     UInt32,
    active_markets   UInt32,
    event_time       DateTime64(9, 'UTC'),
    log_partition    Int32,
    log_offset       Int64,
    version          UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ingest_time)
ORDER BY (source, ingest_time);

-- +goose Down
DROP TABLE global_figures;
