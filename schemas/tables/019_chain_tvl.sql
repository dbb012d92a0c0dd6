-- +goose Up
CREATE TABLE IF NOT EXISTS chain_tvl
(
    source        LowCardinality(String),
    chain         String,
    ingest_time   DateTime64(9, 'UTC'),
    coin_id       String,
    symbol        String,
    tvl           Nullable(Float64),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ingest_time)
ORDER BY (source, chain, ingest_time);

-- +goose Down
DROP TABLE chain_tvl;
